package workers

import (
	"context"
	"errors"
	"time"
)

// Store is the engine that the marks are kept in. Many nodes use one.
type Store interface {
	// List returns all keys that begin with prefix, and their values, as they are at
	// one moment during the call.
	List(ctx context.Context, prefix string) (map[string]string, error)

	// Get returns the values of keys, "" for one that is not there, as they are at
	// one moment during the call.
	Get(ctx context.Context, keys ...string) ([]string, error)

	// Swap writes a value if the keys in have all have the values given there, and
	// reports whether they had. After an error it may have been written, or be written
	// later.
	Swap(ctx context.Context, have map[string]string, key, value string) (bool, error)
}

// ErrRefused means that the store refuses us, and asking again does not help. Errors of a
// [Store] wrap it.
var ErrRefused = errors.New("the store refuses")

// Clustered is a [Store] that tells which cluster it is.
type Clustered interface {
	// Cluster returns the id of the cluster.
	Cluster(ctx context.Context) (string, error)
}

// Restorable is a [Store] that notices when it was restored to what it had before.
type Restorable interface {
	// Restored returns what shows that, once. Until then all calls fail.
	Restored() (sign string, ok bool)
}

// Dated is a [Store] that tells what time it is on its machines.
type Dated interface {
	// Clocks returns by how much now, in milliseconds since 1970-01-01 UTC, is ahead of
	// the clock of each machine that answered, as far as that is sure.
	Clocks(ctx context.Context, now func() uint64) []time.Duration
}
