package host

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/flake-go/flake/flake/internal/mark"
	"github.com/flake-go/flake/flake/workers"
)

// shadowDisk is a disk whose writes stay in memory. It takes no lock.
type shadowDisk struct {
	mark.Disk
	makesFolder bool              // a folder that is missing counts as there
	files       map[string][]byte // that were read or written
}

func (d *shadowDisk) Resolve(path string) (string, error) {
	real, err := d.Disk.Resolve(path)
	if d.makesFolder && errors.Is(err, fs.ErrNotExist) {
		return path, nil
	}
	return real, err
}

func (d *shadowDisk) Lock(string) (mark.Lock, error) { return noLock{}, nil }

type noLock struct{}

func (noLock) Keep() (bool, error) { return false, nil }
func (noLock) Close() error        { return nil }

func (d *shadowDisk) Read(path string, max int64) ([]byte, error) {
	if _, known := d.files[path]; !known {
		data, err := d.Disk.Read(path, max)
		if err != nil {
			return nil, err
		}
		d.files[path] = data
	}
	return d.files[path], nil
}

func (d *shadowDisk) Overwrite(path string, offset int64, data []byte) error {
	d.files[path] = slices.Clone(d.files[path])
	copy(d.files[path][offset:], data)
	return nil
}

func (d *shadowDisk) Create(path string) (mark.Writer, error) {
	return &shadowFile{d: d, path: path}, nil
}

type shadowFile struct {
	bytes.Buffer
	d    *shadowDisk
	path string
}

func (f *shadowFile) Sync() error  { return nil }
func (f *shadowFile) Close() error { f.d.files[f.path] = f.Bytes(); return nil }

func (d *shadowDisk) Rename(from, to string) error {
	d.files[to] = d.files[from]
	delete(d.files, from)
	return nil
}

func (d *shadowDisk) SyncDir(string) error { return nil }

// shadowStore is what a store has when it is first asked. Writes stay in memory.
type shadowStore struct {
	workers.Store
	clock  func() uint64     // that the store's are compared with
	known  map[string]string // by key
	listed map[string]bool   // by prefix
	err    error             // of the store, which is then not asked again
}

func (s *shadowStore) List(ctx context.Context, prefix string) (map[string]string, error) {
	if s.err != nil {
		return nil, s.err
	}
	if !s.listed[prefix] {
		var all map[string]string
		if all, s.err = s.Store.List(ctx, prefix); s.err != nil {
			return nil, s.err
		}
		maps.Copy(s.known, all)
		s.listed[prefix] = true
	}
	all := maps.Clone(s.known)
	maps.DeleteFunc(all, func(key, text string) bool { return text == "" || !strings.HasPrefix(key, prefix) })
	return all, nil
}

func (s *shadowStore) Get(ctx context.Context, keys ...string) (texts []string, err error) {
	if s.err != nil {
		return nil, s.err
	}
	for _, key := range keys {
		if _, known := s.known[key]; !known {
			var got []string
			if got, s.err = s.Store.Get(ctx, key); s.err != nil {
				return nil, s.err
			}
			s.known[key] = got[0]
		}
		texts = append(texts, s.known[key])
	}
	return texts, nil
}

func (s *shadowStore) Swap(ctx context.Context, have map[string]string, key, value string) (bool, error) {
	for key, text := range have {
		if there, err := s.Get(ctx, key); err != nil || there[0] != text {
			return false, err
		}
	}
	s.known[key] = value
	return true, nil
}

// Cluster implements [workers.Clustered], with no id if the store has none.
func (s *shadowStore) Cluster(ctx context.Context) (id string, err error) {
	if c, ok := s.Store.(workers.Clustered); ok && s.err == nil {
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
