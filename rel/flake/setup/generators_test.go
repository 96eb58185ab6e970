package setup

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/flake/generators"
	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/etcd"
	"github.com/flake-go/flake/flake/workers/etcd/etcdtest"
)

// shelf is a store of numbers in memory.
type shelf struct {
	mu   sync.Mutex
	data map[string]string
}

func (s *shelf) List(_ context.Context, prefix string) (map[string]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := maps.Clone(s.data)
	maps.DeleteFunc(all, func(key, _ string) bool { return !strings.HasPrefix(key, prefix) })
	return all, nil
}

func (s *shelf) Get(_ context.Context, keys ...string) (texts []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		texts = append(texts, s.data[key])
	}
	return texts, nil
}

func (s *shelf) Swap(_ context.Context, have, write map[string]string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, text := range have {
		if s.data[key] != text {
			return false, nil
		}
	}
	maps.Copy(s.data, write)
	return true, nil
}

// reserving is a source that has only Reserve.
type reserving struct {
	formats.Source
	reserve func() error
}

func (s reserving) Close() error { return nil }
func (s reserving) Reserve(context.Context, int, uint8) (run formats.Run, err error) {
	return run, s.reserve()
}

// A call during a move gets ids with the next number, or ErrMoving. It gets ErrClosed only when the node
// shuts down.
func TestReserveMeetsMove(t *testing.T) {
	store := &shelf{data: map[string]string{}}
	set, err := generators.Open[formats.Generator](generators.Config{
		Path:    filepath.Join(t.TempDir(), "marks"),
		Numbers: &workers.Config{Store: store, Prefix: "p", Last: 1, Hold: 3 * time.Second},
	})
	if err == nil {
		err = set.Claim(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	var ids numbered
	moves := func() error { return flake.ErrClosed }
	g, err := set.Add(t.Context(), "", true,
		func(context.Context, string, uint64, flake.Bound) (formats.Generator, error) {
			s := reserving{reserve: func() error { return nil }}
			if ids.ids == nil {
				s.reserve = func() error { return moves() }
			}
			return &s, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	ids = numbered{g, set.Owner()}
	if _, err := ids.Reserve(t.Context(), 1, 0); !errors.Is(err, generators.ErrMoving) || errors.Is(err, flake.ErrClosed) {
		t.Errorf("before there is another number: %v", err)
	}
	set.Follow()
	first := ids.ids.Get()
	moves = func() error {
		claim, _ := set.Owner().Claim()
		if _, err := workers.Release(t.Context(), store, "p", claim.Number(), 0); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(time.Minute); ids.ids.Get() == first; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("the generator got no next number")
			}
		}
		return flake.ErrClosed
	}
	if _, err := ids.Reserve(t.Context(), 1, 0); err != nil {
		t.Errorf("a call that met a move: %v", err)
	}
	if err := set.Close(); err != nil {
		t.Error(err)
	}
	ids.ids.Get().(*reserving).reserve = func() error { return flake.ErrClosed }
	if _, err := ids.Reserve(t.Context(), 1, 0); !errors.Is(err, flake.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// While the store does not answer, a node is ready until half of hold is left.
func TestStoreReady(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	s, err := etcd.New(etcd.Config{Endpoints: c.Endpoints()})
	if err != nil {
		t.Fatal(err)
	}
	var behind time.Duration
	o, err := workers.New(workers.Config{Store: struct{ workers.Store }{s}, Prefix: "flake", Hold: time.Hour,
		Clock: func() uint64 { return uint64(time.Now().Add(-behind).UnixMilli()) }})
	if err != nil {
		t.Fatal(err)
	}
	behind = 40 * time.Minute // how long ago the mark was moved
	if err := o.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	n := numbered{owner: o}
	if err := n.held(); err != nil {
		t.Fatal(err)
	}
	c.Members[0].Kill()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := o.Step(ctx); err == nil {
		t.Fatal("the mark was moved without the store")
	}
	if err := n.held(); !errors.Is(err, flake.ErrTimestampNotSaved) ||
		!strings.Contains(err.Error(), " unless the store answers: ") || strings.Count(err.Error(), "etcd at ") != 1 {
		t.Error(err)
	}
	claim, _ := o.Claim()
	if got := n.origin(); got.From != "store" || got.Until.UnixMilli() != int64(claim.Milli()) || got.Err == nil {
		t.Errorf("%+v", got)
	}
}
