package flake

import (
	"github.com/flake-go/flake/flake/internal/digits"
	"github.com/flake-go/flake/flake/internal/tick"
)

// The errors a caller may branch on, of this package, of snowflake and of sno. Each
// names in brackets the atom that an Erlang caller sees.
var (
	// ErrClockBackwards: the clock is behind the last id. It passes by itself
	// once the clock has caught up.
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

	// ErrBase: a base that is not from 2 to 62.
	ErrBase = digits.ErrBase
)
