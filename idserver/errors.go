package idserver

import (
	"errors"

	"github.com/flake-go/flake/flake"
)

var (
	// ErrBadArgument means that an argument is out of range.
	ErrBadArgument = errors.New("badarg")

	// ErrBusy means that the server has no room for the request.
	ErrBusy = errors.New("system_limit")

	// ErrNotRegistered means that Erlang nodes cannot reach the id server.
	ErrNotRegistered = errors.New("no server is registered for Erlang nodes")

	// ErrStopping means that the node still answers, but will soon stop.
	ErrStopping = errors.New("shutting down: retry another node")
)

// Result is the outcome of a call, or why a call would fail.
type Result struct {
	Reason string // the reason as Erlang names it; "ok" if Err is nil
	Err    error
	Remedy string // what an operator can do
}

// Results lists all results. The first is success; the last stands for all errors that are not
// listed. Both doors use these reasons, and so do the counts of calls.
var Results = [...]Result{
	{Reason: "ok"},
	{Reason: "badarg", Err: ErrBadArgument},
	{"clock_running_backwards", flake.ErrClockBackwards,
		"Ids resume when the clock has passed the last id. Until then, find out what set the clock, whether it is " +
			"right now, and whether NTP keeps it right. If it was far ahead, and so is the last id, start the node with " +
			"another timestamp_path and a worker id that no node has had: ids resume immediately, below the last one."},
	{"timestamp_not_saved", flake.ErrTimestampNotSaved,
		"Check whether there is room on the disk of timestamp_path, and whether the node may write there. Ids resume when " +
			"the time can be saved."},
	{"shutdown", flake.ErrClosed, "The node is about to stop. Start it again, unless that is intended."},
	{"noproc", ErrNotRegistered,
		"Restart the node, and please report this: its supervisor should have started the server."},
	{Reason: "stopping", Err: ErrStopping},
	{Reason: "system_limit", Err: ErrBusy},
}

// ResultOf returns the result for an error, or success if err is nil.
func ResultOf(err error) *Result { return &Results[resultOf(err)] }

// Reason returns the reason of ResultOf(err).
func Reason(err error) string { return ResultOf(err).Reason }

func resultOf(err error) int {
	for i := range Results {
		if errors.Is(err, Results[i].Err) {
			return i
		}
	}
	return len(Results) - 1
}
