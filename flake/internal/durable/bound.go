package durable

import "context"

// Bound is a limit on ids that does not come from the file, such as a claim from package workers.
// The file's mark never passes it.
type Bound interface {
	// After returns an exclusive lower bound on the times of ids.
	After() uint64
	// Milli returns the latest time an id may have. It only rises.
	Milli() uint64
	// Extend raises Milli to at least the argument. If ctx is done first, it returns ctx's
	// cause.
	Extend(ctx context.Context, milli uint64) error
}
