package etcd

import (
	"context"
	"flag"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/etcd/etcdtest"
	"github.com/flake-go/flake/flake/workers/storetest"
)

var rounds = flag.Int("faults.rounds", 1, "how many times to cause each fault of etcd")

const hold = 3 * time.Second

// patient is a store that, once waits is set, ignores the deadlines of requests.
type patient struct {
	workers.Store
	waits atomic.Bool
}

func (p *patient) asking(ctx context.Context) context.Context {
	if p.waits.Load() {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

func (p *patient) Get(ctx context.Context, keys ...string) ([]string, error) {
	return p.Store.Get(p.asking(ctx), keys...)
}

func (p *patient) Swap(ctx context.Context, have, write map[string]string) (bool, error) {
	return p.Store.Swap(p.asking(ctx), have, write)
}

// Members are killed, paused and cut off, most often the leader. No id repeats, and all nodes
// continue afterwards.
func TestFaults(t *testing.T) {
	c := etcdtest.Start(t, 3)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	f := storetest.NewFleet(t, hold)
	for range 4 {
		f.Start(&patient{Store: open(t, Config{Endpoints: c.Endpoints()})})
	}
	var wg sync.WaitGroup
	shared := open(t, Config{Endpoints: c.Endpoints()}) // used by many callers
	var answered atomic.Int64
	for range 8 {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				call := []func(*Store) error{swap, list, cluster}[i%3]
				if call(shared) == nil {
					answered.Add(1)
				}
				select {
				case <-ctx.Done():
				case <-time.After(10 * time.Millisecond):
				}
			}
		})
	}
	f.GoOn("at the start")
	for range *rounds {
		leader := c.Leader()
		leader.Kill()
		f.GoOn("the leader is killed")
		leader.Start()
		leader = c.Leader()
		leader.Pause()
		f.GoOn("the leader is paused")
		leader.Resume()
		leader = c.Leader()
		leader.Cut()
		f.Beyond()
		f.GoOn("the leader is cut off")
		leader.Join()
		c.Leader()
		for _, m := range c.Members {
			m.Pause()
		}
		f.Beyond()
		for _, m := range c.Members {
			m.Resume()
		}
		f.GoOn("all are paused, longer than hold")
		for _, m := range c.Members {
			m.Kill()
		}
		for _, m := range c.Members {
			m.Start()
		}
		c.Leader()
		f.GoOn("all are killed")
		claim, changed := f.Nodes[0].IDs.Owner().Claim()
		if _, err := workers.Release(ctx, open(t, Config{Endpoints: c.Endpoints()}), "flake", claim.Number(),
			uint64(time.Now().UnixMilli())); err != nil {
			t.Fatal(err)
		}
		<-changed
		f.GoOn("a number is taken away")
	}
	const enough = 300
	for start := time.Now(); answered.Load() < enough && time.Since(start) < patience; {
		time.Sleep(time.Millisecond)
	}
	stop()
	wg.Wait()
	wantSign(t, shared, "")
	history, _ := shared.history.Before()
	t.Logf("%d answers, up to raft term %d", answered.Load(), history.Facts.term)
	if answered.Load() < enough {
		t.Errorf("%d answers", answered.Load())
	}
	for _, n := range f.Nodes {
		n.Store.(*patient).waits.Store(true)
	}
	if err := f.End(); err != nil {
		t.Error(err)
	}
	for _, n := range f.Nodes {
		wantSign(t, n.Store.(*patient).Store.(*Store), "")
	}
	// A node may also lose its number when members do not answer.
	if n := f.Nodes[0].Opened.Load(); n < 1+int64(*rounds) {
		t.Errorf("%d numbers", n)
	}
}
