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

	// What a [Halt] may be stopped for.
	ErrPeersNotAsked = errors.New("peers_not_asked")
	ErrWorkerTaken   = errors.New("worker_taken")
	ErrClockDiffers  = errors.New("clock_differs")
)

// results are what comes of calls, in the words of Erlang.
var results = [...]string{
	"ok", "badarg", "clock_running_backwards", "timestamp_not_saved", "shutdown", "system_limit",
	"peers_not_asked", "worker_taken", "clock_differs",
}

// Reason returns the word for an error of a Server.
func Reason(err error) string { return results[resultOf(err)] }

// resultOf returns the place of an error in results.
func resultOf(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, ErrBadArgument):
		return 1
	case errors.Is(err, flake.ErrClockBackwards):
		return 2
	case errors.Is(err, flake.ErrTimestampNotSaved):
		return 3
	case errors.Is(err, flake.ErrClosed):
		return 4
	case errors.Is(err, ErrPeersNotAsked):
		return 6
	case errors.Is(err, ErrWorkerTaken):
		return 7
	case errors.Is(err, ErrClockDiffers):
		return 8
	}
	return 5
}
