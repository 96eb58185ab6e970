package workers

import (
	"context"
	"errors"
	"time"
)

// Store keeps the marks. All nodes of a fleet share one store.
type Store interface {
	// List returns all keys that begin with prefix, and their values, as of a single moment
	// during the call.
	List(ctx context.Context, prefix string) (map[string]string, error)

	// Get returns the values of keys, as of a single moment during the call. The value of a
	// missing key is "".
	Get(ctx context.Context, keys ...string) ([]string, error)

	// Swap writes all values in write, by key, if every key in have has the value given there
	// ("" for a missing key), and reports whether it did. It writes all values at the same
	// moment. After an error they may have been written, or may still be written later.
	Swap(ctx context.Context, have, write map[string]string) (bool, error)
}

// ErrRefused means that the store refuses requests and retrying does not help. A [Store]
// returns errors that wrap it.
var ErrRefused = errors.New("the store refuses")

// Clustered is a [Store] that knows the id of its cluster.
type Clustered interface {
	// Cluster returns the id of the cluster.
	Cluster(ctx context.Context) (string, error)
}

// Restorable is a [Store] that notices when it was restored to an earlier state.
type Restorable interface {
	// Restored returns the evidence of a restore, once. After the store has noticed the restore,
	// all other calls fail until Restored has returned the evidence.
	Restored() (sign string, ok bool)
}

// Dated is a [Store] that knows the time on its machines.
type Dated interface {
	// Clocks compares now, in milliseconds since 1970-01-01 UTC, with the clock of each machine
	// that answers. For each of them it returns the least by which now can be ahead; negative
	// means behind.
	Clocks(ctx context.Context, now func() uint64) []time.Duration
}
