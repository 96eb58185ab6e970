package client

import (
	"errors"
	"fmt"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/internal/escape"
)

// Errors of asking a generator. Others are [flake.ErrClockBackwards] and
// [flake.ErrTimestampNotSaved], which pass by themselves, and [flake.ErrClosed].
var (
	// ErrBadArgument: an argument is out of range, or not for this format.
	ErrBadArgument = errors.New("badarg: an argument is not allowed")

	// ErrBusy: too many large calls of this program are waiting already.
	ErrBusy = errors.New("system_limit: the node has no room for the call")

	// ErrNotAbove: the ids of a node are not above the earlier ones. Then it is another
	// node, of a [Failover] or at the same address: one node's ids ascend as [IDs]
	// describes, whatever happens to it or its clock.
	ErrNotAbove = errors.New("the node's ids are not above those before")

	// ErrUnknown: the node is too old to know the call.
	ErrUnknown = errors.New("the node does not know the call")
)

// refusals maps the reasons of {error, Reason} to errors.
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
	return fmt.Errorf("the node answered {error, %s}", escape.Text(reason))
}

func outOfRange(what string, n, from, to int) error {
	return fmt.Errorf("%w: %s is %d, want %d to %d", ErrBadArgument, what, n, from, to)
}
