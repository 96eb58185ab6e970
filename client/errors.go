package client

import (
	"errors"
	"fmt"

	"github.com/flake-go/flake/flake"
)

// What a generator may answer instead of ids. Besides these there are
// [flake.ErrClockBackwards] and [flake.ErrTimestampNotSaved], which pass by
// themselves, and [flake.ErrClosed].
var (
	// ErrBadArgument: an argument is not in its range, or not for this format.
	ErrBadArgument = errors.New("badarg: an argument is not allowed")

	// ErrBusy: too many large calls of this program wait already.
	ErrBusy = errors.New("system_limit: the node has no room for the call")

	// ErrUnknown: the node does not know the call, as it is an older one.
	ErrUnknown = errors.New("the node does not know the call")
)

// refusals are the reasons of {error, Reason}.
var refusals = map[string]error{
	"badarg":                  ErrBadArgument,
	"system_limit":            ErrBusy,
	"clock_running_backwards": flake.ErrClockBackwards,
	"timestamp_not_saved":     flake.ErrTimestampNotSaved,
	"shutdown":                flake.ErrClosed,
}

func refusal(reason string) error {
	if err := refusals[reason]; err != nil {
		return err
	}
	return fmt.Errorf("the node answered {error, %s}", reason)
}

func outOfRange(what string, n, from, to int) error {
	return fmt.Errorf("%w: %s is %d, want %d to %d", ErrBadArgument, what, n, from, to)
}
