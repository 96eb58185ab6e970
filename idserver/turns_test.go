package idserver

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/flake-go/flake/flake/formats"
)

// gated is a source that returns ids once it is open, and counts them.
type gated struct {
	formats.Source
	open    chan struct{}
	entered atomic.Int32 // calls of Reserve
	taken   int
}

func (g *gated) Reserve(_ context.Context, n int, _ uint8) (formats.Run, error) {
	g.entered.Add(1)
	<-g.open
	n = min(n, g.PerTick()-g.taken%g.PerTick())
	first := formats.Number{Lo: uint64(g.taken)}
	g.taken += n
	return formats.Run{First: first, Count: n}, nil
}

// asked is a server with leases in progress. Its source opens when all of them have arrived.
type asked struct {
	*Server
	ids *gated
}

func newAsked(t *testing.T) asked {
	s := serverOf(t, &stock{perTick: 1 << 16})
	ids := &gated{Source: s.IDs, open: make(chan struct{})}
	s.IDs = ids
	return asked{s, ids}
}

// lease starts a lease of n ids. Once it ends, *first and *last are the positions of its first and
// last ids among all ids.
func (a asked) lease(t *testing.T, n int, turn *Turn) (first, last *int) {
	first, last = new(int), new(int)
	go func() {
		defer turn.End()
		runs, err := a.Take(t.Context(), KindLease, n, Meta{}, turn)
		if err != nil {
			t.Error(err)
			return
		}
		end := runs[len(runs)-1]
		*first, *last = int(runs[0].First.Lo), int(end.First.Lo)+end.Count-1
	}()
	synctest.Wait()
	return first, last
}

func (a asked) node(t *testing.T, n int) (first, last *int)  { return a.lease(t, n, a.TurnOfNode(n)) }
func (a asked) other(t *testing.T, n int) (first, last *int) { return a.lease(t, n, a.TurnOfOther(n)) }

// A small request finishes before larger ones that arrived earlier, whether from nodes or others.
func TestLessIsSooner(t *testing.T) { synctest.Test(t, testLessIsSooner) }

func testLessIsSooner(t *testing.T) {
	const many = 20
	a := newAsked(t)
	share := a.share()
	for range many {
		a.other(t, MaxLease)
		a.other(t, MaxMany)
		a.node(t, MaxLease)
	}
	_, some := a.other(t, 2*share)
	_, little := a.node(t, 1000)
	_, less := a.node(t, 257)
	close(a.ids.open)
	synctest.Wait()
	for _, tt := range []struct{ last, most int }{
		{*some, 3 * (many + 3) * 4 * share}, // in two turns, or in three if a tick ends
		{*little, 3 * 4 * share},
		{*less, 3 * 4 * share},
	} {
		if tt.last == 0 || tt.last > tt.most {
			t.Errorf("finished after %d of %d ids", tt.last, a.ids.taken)
		}
	}
}

// The longest requests of nodes finish one at a time, and so do those of others, however many
// smaller requests wait.
func TestLongest(t *testing.T) { synctest.Test(t, testLongest) }

func testLongest(t *testing.T) {
	a := newAsked(t)
	_, last := a.other(t, MaxLease)
	first, _ := a.other(t, MaxLease)
	for range 20 {
		a.other(t, MaxMany)
	}
	_, other := a.node(t, MaxLease)
	close(a.ids.open)
	synctest.Wait()
	if *first < *last {
		t.Errorf("the second began at %d, the first ended at %d", *first, *last)
	}
	if *other > 3*(MaxLease+2*a.share()) {
		t.Errorf("finished after %d ids", *other)
	}
}

// Long requests finish in the order in which they arrived. Shorter ones in one queue alternate.
func TestQueues(t *testing.T) { synctest.Test(t, testQueues) }

func testQueues(t *testing.T) {
	a := newAsked(t)
	_, end1 := a.node(t, MaxLease)
	begin2, end2 := a.node(t, MaxLease)
	begin3, _ := a.node(t, MaxLease)
	_, end4 := a.other(t, MaxMany)
	begin5, _ := a.other(t, MaxMany)
	close(a.ids.open)
	synctest.Wait()
	if *begin2 < *end1 || *begin3 < *end2 {
		t.Errorf("the first ended at %d, the second had %d to %d, the third began at %d", *end1, *begin2, *end2, *begin3)
	}
	if *begin5 > *end4 {
		t.Errorf("one ended at %d, the other began at %d", *end4, *begin5)
	}
}

// No ids are taken for a caller that has gone, whether it had its turn or waited for it.
func TestGone(t *testing.T) { synctest.Test(t, testGone) }

func testGone(t *testing.T) {
	const many = 20
	s := newAsked(t)
	ids := s.ids
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	for i := range many {
		n := MaxLease
		if i%2 == 0 {
			n = 257
		}
		go func() {
			_, err := s.Server.lease(ctx, n)
			done <- err
		}()
		synctest.Wait()
	}
	cancel()
	synctest.Wait()
	for i := range many - 1 {
		if err := <-done; err != context.Canceled {
			t.Errorf("%d: %v", i, err)
		}
	}
	close(ids.open)
	if err := <-done; ids.taken > s.share() || err != nil && err != context.Canceled {
		t.Errorf("%d ids were taken, %v", ids.taken, err)
	}
	if _, err := s.Server.lease(t.Context(), MaxLease); err != nil {
		t.Errorf("a later lease: %v", err)
	}
}

// A request that gives up while it waits does not pass on another request's turn.
func TestGivesUp(t *testing.T) { synctest.Test(t, testGivesUp) }

func testGivesUp(t *testing.T) {
	a := newAsked(t)
	a.node(t, MaxMany)
	ctx, cancel := context.WithCancel(t.Context())
	var left sync.WaitGroup
	left.Go(func() {
		if _, err := a.Server.lease(ctx, MaxMany); err != context.Canceled {
			t.Error(err)
		}
	})
	synctest.Wait()
	a.node(t, MaxMany)
	cancel()
	left.Wait()
	synctest.Wait()
	if n := a.ids.entered.Load(); n != 1 {
		t.Errorf("%d requests have their turn at the same time", n)
	}
	close(a.ids.open)
	synctest.Wait()
}

// Only large requests wait for their turns, or are refused.
func TestSmallRequest(t *testing.T) {
	s := new(Server)
	if s.TurnOfNode(MaxInline) != nil || s.TurnOfOther(MaxInline) != nil || s.TurnOfNode(MaxInline+1) == nil {
		t.Error("MaxInline is not the limit")
	}
	turn := s.TurnOfNode(MaxInline)
	turn.Refuse()
	turn.End()
}
