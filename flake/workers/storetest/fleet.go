package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/generators"
	"github.com/flake-go/flake/flake/workers"
)

// Fleet is nodes that make ids with numbers from a store.
type Fleet struct {
	Nodes []*Node // those that run

	tb   testing.TB
	hold time.Duration
	all  []*Node
}

// Node makes ids with its number, and with another when that is lost.
type Node struct {
	Store  workers.Store
	IDs    *generators.Set[*flake.Generator]
	Opened atomic.Int64 // how many generators it opened

	generator     *generators.Generator[*flake.Generator]
	made, refused atomic.Int64
	log           bytes.Buffer
	stop          context.CancelFunc
	done          chan struct{} // closed when it has stopped
	ids           []flake.ID
	err           error // of its end
}

// NewFleet returns a fleet without nodes.
func NewFleet(tb testing.TB, hold time.Duration) *Fleet { return &Fleet{tb: tb, hold: hold} }

// Start starts a node, which gets one of six numbers.
func (f *Fleet) Start(s workers.Store) *Node {
	f.tb.Helper()
	n := &Node{Store: s, done: make(chan struct{})}
	var ctx context.Context
	ctx, n.stop = context.WithCancel(f.tb.Context())
	var err error
	n.IDs, err = generators.Open[*flake.Generator](generators.Config{
		Path: filepath.Join(f.tb.TempDir(), "marks"), Log: slog.New(slog.NewTextHandler(&n.log, nil)),
		Numbers: &workers.Config{Store: s, Prefix: "flake", First: 1, Last: 6, Hold: f.hold,
			Name: fmt.Sprint("node", len(f.all)), Wait: true},
	})
	if err == nil {
		err = n.IDs.Claim(ctx)
	}
	if err == nil {
		n.generator, err = n.IDs.Add(ctx, "", true,
			func(ctx context.Context, name string, number uint64, bound flake.Bound) (*flake.Generator, error) {
				n.Opened.Add(1)
				return flake.Open(ctx, name, flake.Worker(number), flake.Options{Marks: n.IDs.Marks(), Bound: bound})
			})
	}
	if err != nil {
		f.tb.Fatal(err)
	}
	n.IDs.Follow()
	f.Nodes, f.all = append(f.Nodes, n), append(f.all, n)
	f.tb.Cleanup(n.end)
	go n.run(ctx, f.tb)
	return n
}

// run makes some ids until ctx is done: only their times matter.
func (n *Node) run(ctx context.Context, tb testing.TB) {
	defer close(n.done)
	last := flake.ID{}
	for ctx.Err() == nil {
		id, err := n.generator.Get().Next(ctx)
		switch err = n.generator.Explain(err); {
		case err == nil:
			if id.Compare(last) <= 0 {
				tb.Errorf("%v after %v", id, last)
			}
			last = id
			n.ids = append(n.ids, id)
			n.made.Add(1)
		case errors.Is(err, flake.ErrTimestampNotSaved):
			n.refused.Add(1)
		case ctx.Err() == nil:
			tb.Error(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Millisecond / 2):
		}
	}
	n.err = n.IDs.Close()
}

func (n *Node) end() {
	n.stop()
	<-n.done
}

// StopLast stops the node that was started last.
func (f *Fleet) StopLast() {
	last := len(f.Nodes) - 1
	f.Nodes[last].end()
	f.Nodes = f.Nodes[:last]
}

// GoOn waits until all nodes have made ids.
func (f *Fleet) GoOn(what string) {
	f.tb.Helper()
	refused := int64(0)
	for i, n := range f.Nodes {
		before := n.made.Load()
		f.await(fmt.Sprintf("%s: node %d no longer makes ids", what, i), n, func() bool { return n.made.Load() > before })
	}
	for _, n := range f.Nodes {
		refused += n.refused.Swap(0)
	}
	f.tb.Logf("%s: %d calls were refused", what, refused)
}

// Written waits until all nodes have moved their marks in the store.
func (f *Fleet) Written(what string) {
	f.tb.Helper()
	now := time.Now()
	for i, n := range f.Nodes {
		f.await(fmt.Sprintf("%s: node %d does not move its mark", what, i), n, func() bool {
			at, err := n.IDs.Owner().State()
			return err == nil && at.After(now)
		})
	}
}

func (f *Fleet) await(what string, n *Node, done func() bool) {
	f.tb.Helper()
	for start := time.Now(); !done(); time.Sleep(time.Millisecond) {
		if time.Since(start) > 5*time.Minute {
			_, err := n.IDs.Owner().State()
			f.tb.Fatalf("%s: %v", what, err)
		}
	}
}

// Beyond waits until no node can be sure of its number.
func (f *Fleet) Beyond() {
	var until uint64
	for _, n := range f.Nodes {
		claim, _ := n.IDs.Owner().Claim()
		until = max(until, claim.Milli())
	}
	for uint64(time.Now().UnixMilli()) <= until {
		time.Sleep(10 * time.Millisecond)
	}
}

// End stops all nodes, and checks that no id repeats. It returns the errors of nodes that did not end
// cleanly.
func (f *Fleet) End() (err error) {
	f.tb.Helper()
	for _, n := range f.all {
		n.stop()
	}
	maker, count, twice := map[flake.ID]int{}, 0, 0
	for i, n := range f.all {
		n.end()
		err = errors.Join(err, n.err)
		for _, id := range n.ids {
			other, found := maker[id]
			if count++; found {
				if twice++; twice == 1 {
					f.tb.Errorf("id %v of node %d repeats one of node %d:\n%s\n%s", id, i, other, &n.log, &f.all[other].log)
				}
			}
			maker[id] = i
		}
		f.tb.Logf("node %d: %d ids, %d generators", i, len(n.ids), n.Opened.Load())
	}
	if f.tb.Logf("%d ids, %d repeat", count, twice); count == 0 {
		f.tb.Error("no ids")
	}
	return err
}
