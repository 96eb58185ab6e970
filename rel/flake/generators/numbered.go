package generators

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/flake/host"
	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/idserver"
)

// numbered is a Source whose number comes from etcd and can change.
type numbered struct {
	ids   *host.Generator[formats.Generator]
	owner *workers.Owner
}

// Reserve tries again if the number changed while it ran.
func (g numbered) Reserve(ctx context.Context, n int, meta uint8) (formats.Run, error) {
	now := g.ids.Get()
	run, err := now.Reserve(ctx, n, meta)
	if errors.Is(err, flake.ErrClosed) && g.ids.Get() != now {
		run, err = g.ids.Get().Reserve(ctx, n, meta)
	}
	return run, g.ids.Explain(err)
}

// Ready returns an error before ids run out: once the claim has less time left than it ever has while etcd answers.
func (g numbered) Ready() error {
	if err := g.ids.Explain(g.ids.Get().Ready()); err != nil {
		return err
	}
	return g.held()
}

func (g numbered) held() error {
	claim, _ := g.owner.Claim()
	left := time.Until(time.UnixMilli(int64(claim.Milli()))).Round(time.Second)
	if _, err := g.owner.State(); err != nil && left < g.owner.Hold/2 {
		return fmt.Errorf("ids run out in %v unless etcd answers: %w", max(left, 0), err)
	}
	return nil
}

func (g numbered) origin() idserver.Origin {
	claim, _ := g.owner.Claim()
	_, err := g.owner.State()
	return idserver.Origin{From: "etcd", Until: time.UnixMilli(int64(claim.Milli())), Err: err}
}

func (g numbered) Format() *formats.Format               { return g.ids.Get().Format() }
func (g numbered) Last() (milli uint64, sequence uint32) { return g.ids.Get().Last() }
func (g numbered) Behind() time.Duration                 { return g.ids.Get().Behind() }
func (g numbered) Worker() uint64                        { return g.ids.Get().Worker() }
func (g numbered) Waits() uint64                         { return g.ids.Get().Waits() }
func (g numbered) PerTick() int                          { return g.ids.Get().PerTick() }
func (g numbered) Mark() time.Time                       { return g.ids.Get().Mark() }
func (g numbered) LastSaved() (time.Time, error)         { return g.ids.Get().LastSaved() }
