package idserver

import (
	"errors"

	"github.com/flake-go/flake/flake"
)

var (
	// ErrBadArgument is the answer to an argument out of range.
	ErrBadArgument = errors.New("badarg")

	// ErrBusy is the answer to a request for which there is no room.
	ErrBusy = errors.New("system_limit")
)

// results are what calls come to, in the words of Erlang: success first, and last what
// any other error comes to.
var results = [...]struct {
	word string
	err  error
}{
	{"ok", nil},
	{"badarg", ErrBadArgument},
	{"clock_running_backwards", flake.ErrClockBackwards},
	{"timestamp_not_saved", flake.ErrTimestampNotSaved},
	{"shutdown", flake.ErrClosed},
	{"system_limit", ErrBusy},
}

// Reason returns the word for an error of a Server.
func Reason(err error) string { return results[resultOf(err)].word }

// resultOf returns the place of an error in results.
func resultOf(err error) int {
	for i := range results {
		if errors.Is(err, results[i].err) {
			return i
		}
	}
	return len(results) - 1
}
