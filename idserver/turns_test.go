package idserver

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/flake-go/flake/node/etf"
)

// gated is a source that hands out ids once it is open, and counts them.
type gated struct {
	*stock
	open  chan struct{}
	taken int
}

func (g *gated) Reserve(ctx context.Context, n int, meta uint8) (Run, error) {
	<-g.open
	run, err := g.stock.Reserve(ctx, n, meta)
	g.taken += run.Count
	return run, err
}

// place is how many ids were taken before the id.
func place(id Number) int {
	f := id.flake()
	return int(f.Milli())*(1<<16) + int(f.Sequence())
}

// asked are leases under way. The source opens when all of them have come, in order.
type asked struct {
	*Server
	ids *gated
}

func newAsked() asked {
	ids := &gated{stock: &stock{perTick: 1 << 16, left: 1 << 20}, open: make(chan struct{})}
	return asked{&Server{IDs: ids}, ids}
}

// lease asks as who is no node does, and tells where the first and the last id are
// among all, once the ids are there.
func (a asked) lease(t *testing.T, n int) (first, last *int) {
	first, last = new(int), new(int)
	go func() {
		runs, err := a.Server.lease(t.Context(), n)
		if err != nil {
			t.Error(err)
			return
		}
		end := runs[len(runs)-1]
		*first, *last = place(runs[0].First), place(end.First)+end.Count-1
	}()
	synctest.Wait()
	return first, last
}

// leaseOfNode asks as a node does.
func (a asked) leaseOfNode(t *testing.T, n int) (last *int) {
	last = new(int)
	c := &caller{ctx: t.Context(), caps: etf.AllCaps}
	request, err := etf.Append(nil, etf.Tuple{etf.Atom("lease"), int64(n)}, etf.AllCaps)
	if err != nil {
		t.Fatal(err)
	}
	c.ask(a.Server, request)
	go func() {
		c.waiting[0]()
		answer, err := etf.Decode([]byte(c.answers[0]))
		if err != nil {
			t.Error(err)
			return
		}
		runs := answer.(etf.Tuple)[1].(etf.Tuple)[1].(etf.List)
		end := runs[len(runs)-1].(etf.Tuple)
		*last = place(numberOf(string(end[0].([]byte)))) + int(end[1].(int64)) - 1
	}()
	synctest.Wait()
	return last
}

// Who wants less than others who were there before has it sooner, nodes and others.
func TestLessIsSooner(t *testing.T) { synctest.Test(t, testLessIsSooner) }

func testLessIsSooner(t *testing.T) {
	const many = 20
	a := newAsked()
	share := (&Server{IDs: a.ids}).share()
	for range many {
		a.lease(t, MaxLease)
		a.lease(t, MaxMany)
		a.leaseOfNode(t, MaxLease)
	}
	_, some := a.lease(t, 2*share)
	little, less := a.leaseOfNode(t, 1000), a.leaseOfNode(t, 257)
	close(a.ids.open)
	synctest.Wait()
	for _, tt := range []struct{ last, most int }{
		{*some, 3 * (many + 3) * 4 * share}, // in two turns, or three: a tick may end
		{*little, 3 * 4 * share},
		{*less, 3 * 4 * share},
	} {
		if tt.last == 0 || tt.last > tt.most {
			t.Errorf("%d ids were taken before, of %d", tt.last, a.ids.taken)
		}
	}
}

// Those who want the most go one at a time, and one of nodes and one of others: however
// many of these wait.
func TestLongest(t *testing.T) { synctest.Test(t, testLongest) }

func testLongest(t *testing.T) {
	a := newAsked()
	_, last := a.lease(t, MaxLease)
	first, _ := a.lease(t, MaxLease)
	for range 20 {
		a.lease(t, MaxMany)
	}
	other := a.leaseOfNode(t, MaxLease)
	close(a.ids.open)
	synctest.Wait()
	if *first < *last {
		t.Errorf("the second began at %d, the first ended at %d", *first, *last)
	}
	if *other > 3*(MaxLease+2*(&Server{IDs: a.ids}).share()) {
		t.Errorf("%d ids were taken before", *other)
	}
}

// For who has gone no id is taken any more, whether it had its turn or waited for it.
func TestGone(t *testing.T) { synctest.Test(t, testGone) }

func testGone(t *testing.T) {
	const many = 20
	ids := newAsked().ids
	s := &Server{IDs: ids}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	for i := range many {
		n := MaxLease
		if i%2 == 0 {
			n = 257
		}
		go func() {
			_, err := s.lease(ctx, n)
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
	if _, err := s.lease(t.Context(), MaxLease); err != nil {
		t.Errorf("then: %v", err)
	}
}

// Only what is large waits for its turn.
func TestNoTurn(t *testing.T) {
	s := new(Server)
	if s.TurnOfNode(MaxInline) != nil || s.TurnOfOther(MaxInline) != nil || s.TurnOfNode(MaxInline+1) == nil {
		t.Error("MaxInline is not the bound")
	}
}
