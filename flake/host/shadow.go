package host

import (
	"context"
	"time"

	"github.com/flake-go/flake/flake/internal/mark"
	"github.com/flake-go/flake/flake/workers"
)

// shadowDisk reads a disk, but takes no lock and discards writes.
type shadowDisk struct {
	mark.Disk
	empty bool // pretend that no file exists, but every folder does
}

func (d shadowDisk) Resolve(path string) (string, error) {
	if d.empty {
		return path, nil
	}
	return d.Disk.Resolve(path)
}

func (shadowDisk) Lock(string) (mark.Lock, error)        { return nothing{}, nil }
func (shadowDisk) Overwrite(string, int64, []byte) error { return nil }
func (shadowDisk) Create(string) (mark.Writer, error)    { return nothing{}, nil }
func (shadowDisk) Rename(string, string) error           { return nil }
func (shadowDisk) SyncDir(string) error                  { return nil }

// nothing is a lock that locks nothing, and a file that discards writes.
type nothing struct{}

func (nothing) Keep() (bool, error)         { return false, nil }
func (nothing) Write(b []byte) (int, error) { return len(b), nil }
func (nothing) Sync() error                 { return nil }
func (nothing) Close() error                { return nil }

// shadowStore returns what the store contained when first read, for a single claiming owner.
// Writes succeed, but change nothing.
type shadowStore struct {
	workers.Store
	clock func() uint64     // to compare with the clocks of the store
	floor []string          // nil before it is read
	all   map[string]string // nil before it is read
	err   error             // of the store, which is not asked again after an error
}

func (s *shadowStore) List(ctx context.Context, prefix string) (map[string]string, error) {
	if s.all == nil { // Get is called first, and fails if there was an error
		s.all, s.err = s.Store.List(ctx, prefix)
	}
	return s.all, s.err
}

func (s *shadowStore) Get(ctx context.Context, keys ...string) ([]string, error) {
	if s.floor == nil && s.err == nil {
		s.floor, s.err = s.Store.Get(ctx, keys...)
	}
	return s.floor, s.err
}

func (s *shadowStore) Swap(context.Context, map[string]string, string, string) (bool, error) {
	return true, nil
}

// Cluster implements [workers.Clustered]. The id is empty if the store has none.
func (s *shadowStore) Cluster(ctx context.Context) (id string, err error) {
	if c, ok := s.Store.(workers.Clustered); ok {
		id, s.err = c.Cluster(ctx)
	}
	return id, s.err
}

// Clocks implements [workers.Dated].
func (s *shadowStore) Clocks(ctx context.Context, _ func() uint64) []time.Duration {
	if d, ok := s.Store.(workers.Dated); ok {
		return d.Clocks(ctx, s.clock)
	}
	return nil
}
