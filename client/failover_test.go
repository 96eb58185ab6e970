package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/snowflake"
)

// scripted is a door with answers from the test.
type scripted struct {
	Door
	closed bool
	asked  int
	answer func(ctx context.Context) (uint64, error)
}

func (s *scripted) Close() error { s.closed = true; return nil }

func (s *scripted) ask(ctx context.Context, r request) (answer, error) {
	s.asked++
	id, err := s.answer(ctx)
	if r.verb == askTexts {
		if r.base == Canonical {
			r.base = 10
		}
		return answer{texts: []string{strconv.FormatUint(id, r.base)}}, err
	}
	return answer{runs: []run{oddRun(id, r.n)}}, err
}

func fails(err error) func(context.Context) (uint64, error) {
	return func(context.Context) (uint64, error) { return 0, err }
}

// once fails with an error the first time, and then does not answer.
func once(err error) func(context.Context) (uint64, error) {
	return func(ctx context.Context) (uint64, error) {
		if first := err; first != nil {
			err = nil
			return 0, first
		}
		return silent(ctx)
	}
}

// changes fails with one error the first time, and then with another.
func changes(err, then error) func(context.Context) (uint64, error) {
	return func(context.Context) (uint64, error) {
		defer func() { err = then }()
		return 0, err
	}
}

func slow(delay time.Duration) func(context.Context) (uint64, error) {
	return func(ctx context.Context) (uint64, error) {
		select {
		case <-time.After(delay):
			return 1, nil
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

func counts(from uint64) func(context.Context) (uint64, error) {
	return func(context.Context) (uint64, error) { from++; return from - 1, nil }
}

// behind makes the snowflakes of a node whose clock is behind by lag.
func behind(lag time.Duration) func(context.Context) (uint64, error) {
	return func(context.Context) (uint64, error) { return uint64(time.Now().Add(-lag).UnixMilli()) << 22, nil }
}

func silent(ctx context.Context) (uint64, error) {
	<-ctx.Done()
	return 0, context.Cause(ctx)
}

// When a node fails, the next one is used from then on.
func TestFailover(t *testing.T) {
	a, b, c := new(scripted), new(scripted), new(scripted)
	f := NewFailover(a, b, c)
	ids := NewIDs[snowflake.ID](f, "ids")
	down := fails(errors.New("down"))
	for i, tt := range []struct {
		a, b, c func(context.Context) (uint64, error)
		want    uint64
		asked   []int
	}{
		{counts(10), counts(0), counts(0), 10, []int{1, 0, 0}},
		{counts(11), counts(0), counts(0), 11, []int{1, 0, 0}},
		{down, counts(20), counts(0), 20, []int{1, 1, 0}},
		{counts(30), counts(21), counts(0), 21, []int{0, 1, 0}},
		{counts(30), down, down, 30, []int{1, 1, 1}},
		{down, down, counts(31), 31, []int{1, 1, 1}},
		{counts(40), down, down, 40, []int{1, 0, 1}},
	} {
		a.answer, b.answer, c.answer = tt.a, tt.b, tt.c
		a.asked, b.asked, c.asked = 0, 0, 0
		id, err := ids.Next(t.Context())
		if asked := []int{a.asked, b.asked, c.asked}; err != nil || numberOf(id).Lo != tt.want ||
			!slices.Equal(asked, tt.asked) {
			t.Errorf("%d: %d, %v, asked %v, want %d, %v", i, numberOf(id).Lo, err, asked, tt.want, tt.asked)
		}
	}
	if err := f.Close(); err != nil || !a.closed || !b.closed || !c.closed {
		t.Errorf("%v, closed: %t, %t, %t", err, a.closed, b.closed, c.closed)
	}
}

// The ids of the next node are dropped until they are above earlier ones.
func TestFailoverOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := fails(errors.New("down"))
		a, b := &scripted{answer: counts(10)}, &scripted{answer: counts(6)}
		f := NewFailover(a, b)
		ids, others := NewIDs[snowflake.ID](f, "ids"), NewIDs[snowflake.ID](f, "others")
		next := func(from *IDs[snowflake.ID], want uint64) {
			t.Helper()
			if id, err := from.Next(t.Context()); err != nil || numberOf(id).Lo != want {
				t.Errorf("%d, %v, want %d", numberOf(id).Lo, err, want)
			}
		}
		next(ids, 10)
		a.answer = down
		next(ids, 11)    // after 6, 7, 8, 9 and 10
		next(others, 12) // of another generator
		a.answer, b.answer = counts(3), down
		next(others, 13)
		a.answer = counts(3)
		next(ids, 12)
		a.answer = counts(5) // allowed for the node of the highest id, as with random_start or sno
		next(ids, 5)
		a.answer, b.answer = down, counts(0)
		next(ids, 13)

		a.answer, b.answer = fails(ErrLost), fails(flake.ErrClockBackwards)
		_, err := ids.Next(t.Context())
		if !errors.Is(err, ErrLost) || !errors.Is(err, flake.ErrClockBackwards) {
			t.Error(err)
		}
		a.answer = fails(nil) // always 0
		if _, err := ids.Next(t.Context()); !errors.Is(err, ErrNotAbove) ||
			!strings.Contains(err.Error(), "node 1 of 2") {
			t.Error(err)
		}
	})
}

// If a node is replaced at the same address by another whose clock is behind, the new node's ids
// are dropped until they are above the earlier ones, or a node at another address is used.
func TestFailoverReplaced(t *testing.T) {
	const late = 1900 * time.Millisecond
	down := errors.New("down")
	for _, tt := range []struct {
		what  string
		other func(context.Context) (uint64, error)
		took  time.Duration // at most, without a pause
	}{
		{"the other is down", fails(down), late},
		{"the other is there", behind(-time.Millisecond), 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			door := &scripted{answer: behind(0)}
			ids := NewIDs[snowflake.ID](NewFailover(door, &scripted{answer: tt.other}), "ids")
			before, err := ids.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
			door.answer = behind(late)
			start := time.Now()
			after, err := ids.Next(t.Context())
			if took := time.Since(start); err != nil || after < before || took > tt.took+lastRoundPause {
				t.Errorf("%s: %d after %d, %v, in %v", tt.what, after, before, err, took)
			}
			door.answer = behind(time.Hour)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if id, err := NewIDs[snowflake.ID](ids.door, "ids").Next(ctx); tt.took > 0 && !errors.Is(err, ErrNotAbove) {
				t.Errorf("%s, with a clock an hour behind: %d, %v", tt.what, id, err)
			}
		})
	}
}

func TestFailoverContext(t *testing.T) { synctest.Test(t, testFailoverContext) }

func testFailoverContext(t *testing.T) {
	var asked context.Context
	door := &scripted{answer: func(ctx context.Context) (uint64, error) { asked = ctx; return 1, nil }}
	ids := NewIDs[snowflake.ID](NewFailover(door), "events")
	if id, err := ids.Next(t.Context()); err != nil || id != 1 {
		t.Errorf("%v, %v", id, err)
	}
	if asked.Err() == nil {
		t.Error("the context of a call outlives it")
	}
}

// The last id from Texts or Lease counts as the highest.
func TestFailoverRuns(t *testing.T) { synctest.Test(t, testFailoverRuns) }

func testFailoverRuns(t *testing.T) {
	a, b := new(fake), new(fake)
	ids := NewIDs[snowflake.ID](NewFailover(a, b), "ids")
	b.last.Store(4)
	down := errors.New("down")
	for _, want := range []uint64{1, 15} { // 5 to 14 of b are dropped: not all are above 10
		runs, err := ids.Lease(t.Context(), 10)
		if err != nil || len(runs) != 1 || numberOf(runs[0].First).Lo != want {
			t.Errorf("%v, %v, want %d", runs, err, want)
		}
		a.fail.Store(&down)
	}

	// The runs of sno, and of snowflake with random_start, need not ascend.
	other := new(fake)
	backwards := &odd{runs: []run{oddRun(20, 1), oddRun(10, 1)}}
	ids = NewIDs[snowflake.ID](NewFailover(backwards, other), "ids")
	for _, want := range []uint64{20, 21} {
		runs, err := ids.Lease(t.Context(), 2)
		if err != nil || numberOf(runs[0].First).Lo != want {
			t.Errorf("%v, %v, want %d", runs, err, want)
		}
		backwards.err = down
	}

	c, d := &scripted{answer: counts(10)}, &scripted{answer: counts(9)}
	f := NewFailover(c, d)
	for _, want := range []string{"1010", "1011"} {
		texts, err := NewIDs[snowflake.ID](f, "ids").Texts(t.Context(), 1, 2)
		if err != nil || texts[0] != want {
			t.Errorf("%s, %v, want %s", texts, err, want)
		}
		c.answer = fails(down)
	}
	c.answer, d.answer = counts(10), fails(down)
	texts, err := NewIDs[snowflake.ID](f, "ids").Texts(t.Context(), 1, Canonical)
	if err != nil || texts[0] != "12" {
		t.Errorf("canonical: %s, %v, want 12", texts, err)
	}
}

func TestFailoverTime(t *testing.T) {
	down, stop := errors.New("down"), errors.New("stop")
	for _, tt := range []struct {
		what string
		a, b func(context.Context) (uint64, error)
		time time.Duration // of the context; 0 means no deadline
		want error         // nil means an id
		took time.Duration // maximum, and without an id also the minimum
	}{
		{"a silent node has its share", silent, counts(1), 0, nil, failoverTime / 2},
		{"a silent node has its share of the context's time", silent, counts(1), time.Second, nil, time.Second / 2},
		{"the last has the rest of the time", silent, slow(2 * time.Second), 0, nil, failoverTime/2 + 2*time.Second},
		{"both are silent", silent, silent, 0, context.DeadlineExceeded, failoverTime},
		{"both are silent, with a context", silent, silent, time.Second, context.DeadlineExceeded, time.Second},
		{"both are down", fails(down), fails(down), time.Second, down, time.Second},
		{"the first errors, although both are silent afterwards", once(down), once(down), time.Second, down, time.Second},
		{"the latest error of a node", changes(ErrBusy, down), fails(down), time.Second, down, time.Second},
		{"an argument", fails(ErrBadArgument), counts(1), 0, ErrBadArgument, 0},
		{"an unknown call", fails(ErrUnknown), fails(ErrUnknown), 0, ErrUnknown, 0},
		{"a closed door", fails(net.ErrClosed), fails(net.ErrClosed), 0, net.ErrClosed, 0},
		{"an unknown call, and one is down", fails(ErrUnknown), fails(down), 0, down, failoverTime},
		{"a context ends", silent, fails(down), -time.Second, stop, time.Second},
		{"a context ends in a pause", fails(down), fails(down), -time.Second, stop, time.Second},
	} {
		t.Run(tt.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if tt.time > 0 {
					var end context.CancelFunc
					ctx, end = context.WithTimeout(ctx, tt.time)
					defer end()
				}
				if tt.time < 0 {
					time.AfterFunc(-tt.time, func() { cancel(stop) })
				}
				start := time.Now()
				_, err := NewIDs[snowflake.ID](NewFailover(&scripted{answer: tt.a}, &scripted{answer: tt.b}),
					"ids").Next(ctx)
				took := time.Since(start)
				if !errors.Is(err, tt.want) || errors.Is(err, ErrBusy) || took > tt.took ||
					took < tt.took-lastRoundPause {
					t.Errorf("%v after %v, want %v after %v", err, took, tt.want, tt.took)
				}
			})
		})
	}
}

// No other node is used after the end of the context.
func TestFailoverEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	a := &scripted{answer: func(ctx context.Context) (uint64, error) { cancel(); return 0, ctx.Err() }}
	b := &scripted{answer: counts(1)}
	_, err := NewIDs[snowflake.ID](NewFailover(a, b), "ids").Next(ctx)
	if !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "%!") || b.asked > 0 {
		t.Errorf("%v; the other node was asked %d times", err, b.asked)
	}
}

// A node stops while all methods are being called, and the clock of the other node is behind.
func TestFailoverLive(t *testing.T) {
	noLeak(t)
	a, b := startFlakes(t), startWorker(t, worker+1)
	b.behind.Store(100)
	f := NewFailover(a.doors(t)["distribution"], b.doors(t)["HTTP"])
	defer f.Close()
	ids := NewIDs[flake.ID](f, "flake")
	l, err := ids.Leased(LeaseOptions{Size: 10})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var workers [2]atomic.Int64 // number of ids of each worker
	o := newOrder(t)
	take := func(next func(context.Context) (flake.ID, error)) {
		for range 300 {
			o.mu.Lock()
			before := o.highest
			o.mu.Unlock()
			id, err := next(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			o.mu.Lock()
			if o.seen[id] || id.Compare(before) <= 0 {
				t.Errorf("%v after %v, seen before: %t", id, before, o.seen[id])
			}
			o.seen[id] = true
			o.highest = slices.MaxFunc([]flake.ID{id, o.highest}, flake.ID.Compare)
			o.mu.Unlock()
			if of := id.Worker() - worker; workers[of].Add(1) == 50 && of == 0 {
				a.Stop()
			}
		}
	}
	text := func(ctx context.Context) (id flake.ID, err error) {
		texts, err := ids.Texts(ctx, 1, 36)
		if err != nil {
			return id, err
		}
		return flake.ParseBase(texts[0], 36)
	}
	for _, next := range []func(context.Context) (flake.ID, error){ids.Next, text} {
		var callers sync.WaitGroup
		for range 4 {
			callers.Go(func() { take(next) })
		}
		callers.Wait()
	}
	take(l.Next)
	for i := range workers {
		if workers[i].Load() == 0 {
			t.Errorf("no ids from node %d", i)
		}
	}
	day := time.UnixMilli(1_700_000_000_000)
	lowest, highest, err := ids.Span(t.Context(), day, day)
	if notional, err2 := ids.Notional(t.Context(), day); notional != lowest || highest.Compare(lowest) <= 0 ||
		err != nil || err2 != nil {
		t.Error(lowest, highest, notional, err, err2)
	}
	if fields, err := ids.Decompose(t.Context(), lowest); err != nil ||
		fmt.Sprint(fields) != "[{time 1700000000000} {worker 0} {sequence 0}]" {
		t.Error(fields, err)
	}
}
