package snowflake

import (
	"fmt"

	"github.com/flake-go/flake/flake/internal/digits"
	"github.com/flake-go/flake/flake/internal/tick"
)

// The errors a caller may branch on, those of package flake among them.
var (
	// ErrClockBackwards: the clock is behind the last id. What is returned is a
	// [*ClockError], which is it.
	ErrClockBackwards = tick.ErrClockBackwards

	// ErrClockAdvanced: the clock is further ahead of the last id than a node
	// may have been down.
	ErrClockAdvanced = tick.ErrClockAdvanced

	// ErrTimestampNotSaved: the time could not be made durable. It passes by
	// itself once the file can be written.
	ErrTimestampNotSaved = tick.ErrTimestampNotSaved

	// ErrClosed: the generator was stopped.
	ErrClosed = tick.ErrClosed

	// ErrBase: a base that is not from 2 to 62.
	ErrBase = digits.ErrBase
)

// ErrSequence: the sequences of the millisecond are used up, and the caller did
// not want to wait. The words are flake-idgen's.
const ErrSequence = words("Sequence exceeded its maximum value. Provide callback function to handle sequence overflow")

type words string

func (w words) Error() string { return string(w) }

// ClockError tells how far the clock is behind the last id, in the words of
// flake-idgen. It is an [ErrClockBackwards], and passes by itself.
type ClockError struct {
	Behind uint64 // milliseconds
}

func (e *ClockError) Error() string {
	return fmt.Sprintf("Clock moved backwards. Refusing to generate id for %d milliseconds", e.Behind)
}

// Unwrap gives [ErrClockBackwards].
func (e *ClockError) Unwrap() error { return ErrClockBackwards }

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

// ours gives a [*ParseError] for that of package digits.
func ours(err error) error {
	if e, ok := err.(*digits.ParseError); ok {
		return (*ParseError)(e)
	}
	return err
}
