package commands

import (
	"context"
	"errors"
	"io"
	"math"
	"testing"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/rel/flake/setup"
)

// Memory does not depend on the number of ids.
func TestGenerateMemory(t *testing.T) {
	ids, end, err := setup.OpenLocal(t.Context(), config.Generator{Format: "flake", Random: true}, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	allocations := testing.AllocsPerRun(1, func() {
		if err := printIDs(t.Context(), io.Discard, ids, 100_000, formats.Canonical, 0); err != nil {
			t.Error(err)
		}
	})
	if allocations > 20 {
		t.Errorf("%v allocations, want at most 20", allocations)
	}
}

// A signal ends generate, however many ids are left.
func TestGenerateEnds(t *testing.T) {
	ids, end, err := setup.OpenLocal(t.Context(), config.Generator{Format: "flake", Random: true}, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := errors.New("ended")
	r, w := io.Pipe()
	go func() {
		io.ReadFull(r, make([]byte, 1))
		cancel(ended)
		io.Copy(io.Discard, r)
	}()
	if err := printIDs(ctx, w, ids, math.MaxInt, formats.Canonical, 0); !errors.Is(err, ended) {
		t.Error(err)
	}
	w.Close()
}
