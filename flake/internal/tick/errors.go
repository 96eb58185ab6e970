package tick

import "errors"

// The errors a caller may branch on. Each names in brackets the atom that an
// Erlang caller sees.
var (
	// ErrClockBackwards: the clock is behind the last id. It passes by itself
	// once the clock has caught up.
	ErrClockBackwards = errors.New("flake: the clock is behind the last id (clock_running_backwards)")

	// ErrClockAdvanced: the clock is further ahead of the last id than a node
	// may have been down.
	ErrClockAdvanced = errors.New("flake: the clock is too far ahead of the last id (clock_advanced)")

	// ErrTimestampNotSaved: the time could not be made durable, so that an id
	// handed out now might be repeated after a crash. It passes by itself once
	// the file can be written.
	ErrTimestampNotSaved = errors.New("flake: the time cannot be saved (timestamp_not_saved)")

	// ErrClosed: the generator was stopped.
	ErrClosed = errors.New("flake: the generator is closed")

	// ErrUsedUp: all ids of the tick are used, and the caller did not want to
	// wait for the next one.
	ErrUsedUp = errors.New("flake: the ids of this moment are used up")

	// ErrZero: the generator is a zero value.
	ErrZero = errors.New("flake: a generator that nothing made: use NewGenerator or Open")
)
