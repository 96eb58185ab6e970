package durable

import "context"

// Bound is a limit on ids that does not come from the file, such as a claim from package workers.
// The file's mark never passes it.
type Bound interface {
	// After returns the time that ids must be later than.
	After() uint64
	// Milli returns the time that no id may pass. It only rises.
	Milli() uint64
	// Extend raises Milli to at least the argument. If ctx is done first, it returns ctx's
	// cause.
	Extend(ctx context.Context, milli uint64) error
}
