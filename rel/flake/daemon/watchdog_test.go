package daemon

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/rel/flake/setup"
)

// stuckSource is a source that can be stuck, or refuse ids.
type stuckSource struct {
	formats.Source
	stuck, refuses bool
	taken          int
}

func (s *stuckSource) Reserve(ctx context.Context, n int, meta uint8) (formats.Run, error) {
	if s.refuses {
		return formats.Run{}, flake.ErrClosed
	}
	if s.stuck {
		<-ctx.Done()
		return formats.Run{}, ctx.Err()
	}
	s.taken++
	return s.Source.Reserve(ctx, n, meta)
}

// The watchdog takes an id from a generator that others use, but not from an idle one. A generator that
// hangs is reported; one that refuses is not stuck.
func TestWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := flake.NewGenerator(1, flake.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s := &stuckSource{Source: formats.Flake(g)}
		w, all := make(watchdog), []*setup.Generator{{Generator: config.Generator{Name: "a"},
			Server: &idserver.Server{IDs: s}}}
		look := func(stuck string, taken int) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if got := w.look(ctx, all); got != stuck || s.taken != taken {
				t.Errorf("stuck %q, %d taken, want %q, %d", got, s.taken, stuck, taken)
			}
		}
		ask := func() {
			t.Helper()
			if _, err := g.Reserve(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
		}
		look("", 1) // at first
		look("", 1) // idle
		ask()
		look("", 2)
		look("", 2)
		ask()
		s.stuck = true
		look("a", 2)
		s.refuses = true
		look("", 2)
		s.stuck, s.refuses = false, false
		look("", 3)
	})
}
