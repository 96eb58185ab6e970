package durable

import "context"

// Bound is a limit on ids that comes from elsewhere than the file, as from whoever
// gives nodes their workers. The file's mark never passes it.
type Bound interface {
	// After is a time that ids have to be later than.
	After() uint64
	// Milli is the time that no id may be later than. It only rises.
	Milli() uint64
	// Extend asks for it to be raised to milli, until ctx is done.
	Extend(ctx context.Context, milli uint64) error
}
