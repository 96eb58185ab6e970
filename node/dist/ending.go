package dist

import (
	"context"
	"errors"
	"io"
	"os"
)

// Ending is the reason a connection ended, in one word.
type Ending string

const (
	EndedHere    Ending = "closed_here"
	EndedThere   Ending = "closed_by_peer"
	EndedNetwork Ending = "network" // the connection was lost

	// What the peer did or failed to do.
	EndedSilent Ending = "net_tick_timeout"
	EndedFrame  Ending = "frame_too_long"
	EndedHeader Ending = "distribution_header"
	EndedUnread Ending = "answers_not_read"
	EndedShared Ending = "shared_memory"

	EndedFault Ending = "fault" // of ours
)

// Hostile reports whether the peer is to blame.
func (e Ending) Hostile() bool {
	switch e {
	case EndedSilent, EndedFrame, EndedHeader, EndedUnread, EndedShared:
		return true
	}
	return false
}

var (
	errClosed = errors.New("closed by us")
	errUnread = errors.New("the peer does not read its answers")
)

// endingOf returns the word for the error that ended a connection.
func endingOf(err error) Ending {
	for _, known := range []struct {
		err  error
		word Ending
	}{
		{errClosed, EndedHere},
		{context.Canceled, EndedHere}, // the node's end
		{io.EOF, EndedThere},
		{os.ErrDeadlineExceeded, EndedSilent},
		{errLong, EndedFrame},
		{errPassThrough, EndedHeader},
		{errUnread, EndedUnread},
		{errShared, EndedShared},
		{errFault, EndedFault},
	} {
		if errors.Is(err, known.err) {
			return known.word
		}
	}
	return EndedNetwork
}

// reasonOf returns the reason a connection ended, for the log.
func reasonOf(err error) string {
	switch endingOf(err) {
	case EndedHere:
		return errClosed.Error()
	case EndedThere:
		return "closed by peer"
	case EndedSilent:
		return string(EndedSilent)
	}
	return err.Error()
}
