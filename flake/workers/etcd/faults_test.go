package etcd

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/generators"
	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/etcd/etcdtest"
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

// node makes ids with its number, and with another when that is lost.
type node struct {
	t         *testing.T
	ids       *generators.Set[*flake.Generator]
	generator *generators.Generator[*flake.Generator]
	store     *patient
	made      atomic.Int64
	all       []flake.ID
	refused   atomic.Int64
	opened    atomic.Int64
}

func startNode(t *testing.T, ctx context.Context, endpoints []string, i, numbers int) (n *node, err error) {
	n = &node{t: t, store: &patient{Store: open(t, Config{Endpoints: endpoints})}}
	n.ids, err = generators.Open[*flake.Generator](generators.Config{Path: filepath.Join(t.TempDir(), "marks"),
		Numbers: &workers.Config{
			Store: n.store, Prefix: "flake", First: 1, Last: uint64(numbers), Hold: hold, Name: fmt.Sprint("node",
				i), Wait: true,
		}})
	if err == nil {
		err = n.ids.Claim(ctx)
	}
	if err != nil {
		return nil, err
	}
	n.generator, err = n.ids.Add(ctx, "", true,
		func(ctx context.Context, name string, number uint64, bound flake.Bound) (*flake.Generator, error) {
			n.opened.Add(1)
			return flake.Open(ctx, name, flake.Worker(number), flake.Options{Marks: n.ids.Marks(), Bound: bound})
		})
	n.ids.Follow()
	return n, err
}

// run makes some ids until ctx is done: only their times matter.
func (n *node) run(ctx context.Context) {
	last := flake.ID{}
	for ctx.Err() == nil {
		id, err := n.generator.Get().Next(ctx)
		switch err = n.generator.Explain(err); {
		case err == nil:
			if id.Compare(last) <= 0 {
				n.t.Errorf("%v after %v", id, last)
			}
			last = id
			n.all = append(n.all, id)
			n.made.Add(1)
		case errors.Is(err, flake.ErrTimestampNotSaved):
			n.refused.Add(1)
		case ctx.Err() == nil:
			n.t.Error(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Millisecond / 2):
		}
	}
	n.store.waits.Store(true)
	if err := n.ids.Close(); err != nil {
		n.t.Error(err)
	}
}

// Members are killed, paused and cut off, most often the leader. No id repeats, and all nodes
// continue afterwards.
func TestFaults(t *testing.T) {
	c := etcdtest.Start(t, 3)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var nodes []*node
	var wg sync.WaitGroup
	for i := range 4 {
		n, err := startNode(t, ctx, c.Endpoints(), i, 6)
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, n)
		wg.Go(func() { n.run(ctx) })
	}
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
	goOn := func(what string) {
		for i, n := range nodes {
			start, before := time.Now(), n.made.Load()
			for n.made.Load() == before {
				if time.Since(start) > patience {
					_, err := n.ids.Owner().State()
					t.Fatalf("%s: node %d no longer makes ids: %v", what, i, err)
				}
				time.Sleep(time.Millisecond)
			}
		}
		refused := int64(0)
		for _, n := range nodes {
			refused += n.refused.Swap(0)
		}
		t.Logf("%s: %d calls were refused", what, refused)
	}
	beyond := func() { // wait until no node can be sure of its number
		var until uint64
		for _, n := range nodes {
			claim, _ := n.ids.Owner().Claim()
			until = max(until, claim.Milli())
		}
		for uint64(time.Now().UnixMilli()) <= until {
			time.Sleep(10 * time.Millisecond)
		}
	}
	goOn("at the start")
	for range *rounds {
		leader := c.Leader()
		leader.Kill()
		goOn("the leader is killed")
		leader.Start()
		leader = c.Leader()
		leader.Pause()
		goOn("the leader is paused")
		leader.Resume()
		leader = c.Leader()
		leader.Cut()
		beyond()
		goOn("the leader is cut off")
		leader.Join()
		c.Leader()
		for _, m := range c.Members {
			m.Pause()
		}
		beyond()
		for _, m := range c.Members {
			m.Resume()
		}
		goOn("all are paused, longer than hold")
		for _, m := range c.Members {
			m.Kill()
		}
		for _, m := range c.Members {
			m.Start()
		}
		c.Leader()
		goOn("all are killed")
		claim, changed := nodes[0].ids.Owner().Claim()
		if _, err := workers.Release(ctx, open(t, Config{Endpoints: c.Endpoints()}), "flake", claim.Number(),
			uint64(time.Now().UnixMilli())); err != nil {
			t.Fatal(err)
		}
		<-changed
		goOn("a number is taken away")
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
	seen, count := map[flake.ID]bool{}, 0
	for i, n := range nodes {
		wantSign(t, n.store.Store.(*Store), "")
		t.Logf("node %d: %d ids, %d generators", i, len(n.all), n.opened.Load())
		for _, id := range n.all {
			if count++; seen[id] {
				t.Errorf("id %v repeats", id)
			}
			seen[id] = true
		}
	}
	// A node may also lose its number when members do not answer.
	if count == 0 || nodes[0].opened.Load() < 1+int64(*rounds) {
		t.Errorf("%d ids, with %d numbers", count, nodes[0].opened.Load())
	}
}
