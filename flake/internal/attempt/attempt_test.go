package attempt

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flake-go/flake/flake/internal/tick"
)

const patience = 3 * time.Second

var errFailed = errors.New("it fails")

// results records the calls of changed.
type results [][2]error

func newAttempts() (*Attempts, *results) {
	var got results
	return New(patience, "the disk", func(before, now error) { got = append(got, [2]error{before, now}) }), &got
}

func TestSlow(t *testing.T) {
	a, _ := newAttempts()
	want := tick.ErrTimestampNotSaved.Error() + ": the disk has not answered for 3s"
	if err := a.Slow(); !errors.Is(err, tick.ErrTimestampNotSaved) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// A caller asks for attempts until its condition is true.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, got := newAttempts()
		var made int
		var all sync.WaitGroup
		for want := range 4 {
			all.Go(func() {
				if err := a.Await(t.Context(), nil, func() bool { return made >= want }); err != nil {
					t.Error(err)
				}
			})
		}
		for range 3 {
			<-a.Asked()
			synctest.Wait()
			made++
			a.Settle(nil)
			synctest.Wait()
		}
		all.Wait()
		select {
		case <-a.Asked():
			t.Error("an unnecessary attempt is requested")
		default:
		}
		if !slices.Equal(*got, results{{}, {}, {}}) || a.Err() != nil {
			t.Errorf("got %v, %v", *got, a.Err())
		}
	})
}

// After a failed attempt, callers fail immediately, unless their condition is true.
func TestAwaitFails(t *testing.T) {
	a, got := newAttempts()
	a.Settle(errFailed)
	no := func() bool { return false }
	if err := a.Await(t.Context(), nil, no); err != errFailed || a.Err() != errFailed {
		t.Error(err)
	}
	if err := a.Await(t.Context(), nil, func() bool { return true }); err != nil {
		t.Error(err)
	}
	a.Settle(nil)
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if err := a.Await(ctx, nil, no); err != why {
		t.Error(err)
	}
	ended := make(chan struct{})
	close(ended)
	if err := a.Await(t.Context(), ended, no); !errors.Is(err, tick.ErrClosed) {
		t.Error(err)
	}
	if !slices.Equal(*got, results{{nil, errFailed}, {errFailed, nil}}) {
		t.Errorf("got %v", *got)
	}
}

// While an attempt takes too long, later callers fail too.
func TestAwaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, got := newAttempts()
		for _, want := range []time.Duration{patience, 0} {
			began := time.Now()
			err := a.Await(t.Context(), nil, func() bool { return false })
			if took := time.Since(began); err != a.Slow() || a.Err() != err || took != want {
				t.Errorf("Await returned %v after %v, want after %v", err, took, want)
			}
		}
		a.Settle(nil)
		a.Settle(errFailed)
		a.End(nil)
		if err := a.Err(); err != nil {
			t.Error(err)
		}
		a.End(errFailed)
		if err := a.Err(); err != errFailed {
			t.Error(err)
		}
		if !slices.Equal(*got, results{{nil, a.Slow()}, {a.Slow(), nil}, {nil, errFailed}}) {
			t.Errorf("got %v", *got)
		}
	})
}

// A caller may be suspended until after its patience has run out. It then gets the result as of that
// moment, and does not affect a later attempt.
func TestHeldUp(t *testing.T) {
	a, got := newAttempts()
	yes, no := func() bool { return true }, func() bool { return false }
	round, _ := a.state()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ended := make(chan struct{})
	close(ended)
	for name, c := range map[string]struct{ got, want error }{
		"its context is done":   {a.late(ctx, nil, yes, round), context.Canceled},
		"ended is closed":       {a.late(t.Context(), ended, yes, round), tick.ErrClosed},
		"its condition is true": {a.late(t.Context(), nil, yes, round), nil},
	} {
		if !errors.Is(c.got, c.want) || a.Err() != nil {
			t.Errorf("%s: %v, and the state is %v", name, c.got, a.Err())
		}
	}
	a.Settle(nil)
	select {
	case <-round:
	default:
		t.Error("a waiting caller is not woken")
	}
	if err := a.late(t.Context(), nil, no, round); err != a.Slow() || a.Err() != nil {
		t.Errorf("%v, and the state is %v", err, a.Err())
	}
	a.Settle(errFailed)
	round, _ = a.state()
	if err := a.late(t.Context(), nil, no, round); err != errFailed {
		t.Error(err)
	}
	if len(*got) != 2 {
		t.Errorf("got %v", *got)
	}
}
