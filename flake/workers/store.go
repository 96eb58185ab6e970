package workers

import (
	"context"
	"errors"
)

// Store is the engine that the marks are kept in. Many nodes use one.
type Store interface {
	// List returns all keys that begin with prefix, and their values, as they are at
	// one moment during the call.
	List(ctx context.Context, prefix string) (map[string]string, error)

	// Get returns the values of keys, "" for one that is not there, as they are at
	// one moment during the call.
	Get(ctx context.Context, keys ...string) ([]string, error)

	// Swap writes a value if all keys of have have the values there, and tells whether
	// they had. After an error it may have been written, or may be later.
	Swap(ctx context.Context, have map[string]string, key, value string) (bool, error)
}

// ErrRefused: the store does not let us in, and asking again is no use. An error of a
// [Store] wraps it.
var ErrRefused = errors.New("the store refuses")
