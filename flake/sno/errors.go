package sno

import (
	"github.com/flake-go/flake/flake/internal/digits"
	"github.com/flake-go/flake/flake/internal/tick"
)

// The errors a caller may branch on, which are those of package flake.
var (
	// ErrClockBackwards: the clock was set back into a time in which the ids
	// with either tick-tock bit may be used. It passes by itself once the clock
	// is past it.
	ErrClockBackwards = tick.ErrClockBackwards

	// ErrClockAdvanced: the clock is further ahead of the last id than a node
	// may have been down.
	ErrClockAdvanced = tick.ErrClockAdvanced

	// ErrTimestampNotSaved: the time could not be made durable, so that an id
	// handed out now might be repeated after a crash. It passes by itself once
	// the file can be written.
	ErrTimestampNotSaved = tick.ErrTimestampNotSaved

	// ErrClosed: the generator was stopped.
	ErrClosed = tick.ErrClosed
)

// ParseError tells why a text is not an id.
type ParseError struct {
	Text string // what was to be an id, cut short if it is longer than any
	At   int    // the byte where it goes wrong
	What string // what is wrong there
}

func (e *ParseError) Error() string { return (*digits.ParseError)(e).Error() }

func errorf[T string | []byte](text T, at int, format string, args ...any) error {
	return (*ParseError)(digits.Errorf(text, at, format, args...))
}
