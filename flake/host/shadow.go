package host

import (
	"context"
	"time"

	"github.com/flake-go/flake/flake/internal/mark"
	"github.com/flake-go/flake/flake/workers"
)

// shadowDisk is a disk that takes no lock, and to which nothing is written.
type shadowDisk struct {
	mark.Disk
	empty bool // it counts as having no file, and every folder
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

// nothing is a lock that is not taken, and a file that is not written.
type nothing struct{}

func (nothing) Keep() (bool, error)         { return false, nil }
func (nothing) Write(b []byte) (int, error) { return len(b), nil }
func (nothing) Sync() error                 { return nil }
func (nothing) Close() error                { return nil }

// shadowStore is what a store has when it is first asked, for one owner that claims. Writes
// succeed, and nothing is written.
type shadowStore struct {
	workers.Store
	clock func() uint64     // that the store's are compared with
	floor []string          // nil: not known yet
	all   map[string]string // as well
	err   error             // of the store, which is then not asked again
}

func (s *shadowStore) List(ctx context.Context, prefix string) (map[string]string, error) {
	if s.all == nil { // Get comes before it, and fails if there was an error
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

// Cluster implements [workers.Clustered], with no id if the store has none.
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
