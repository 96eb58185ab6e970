package client

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flake-go/flake/flake"
)

func leased(t *testing.T, door Door, o LeaseOptions) *Leased[flake.ID] {
	t.Helper()
	l, err := NewIDs[flake.ID](door, "flake").Leased(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// order checks what is promised of ids, whoever gets them.
type order struct {
	t       *testing.T
	mu      sync.Mutex
	seen    map[flake.ID]bool
	highest flake.ID
}

func newOrder(t *testing.T) *order { return &order{t: t, seen: make(map[flake.ID]bool)} }

// next takes an id. It must be above all that were there when the call began.
func (o *order) next(l *Leased[flake.ID]) error {
	o.mu.Lock()
	before := o.highest
	o.mu.Unlock()
	began := time.Now()
	id, err := l.Next(o.t.Context())
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.seen[id]:
		o.t.Errorf("%v twice", id)
	case id.Compare(before) <= 0:
		o.t.Errorf("%v, and %v was there before", id, before)
	case id.Time().Before(began.Add(-l.maxAge - time.Millisecond)):
		o.t.Errorf("%v is older than %v", id, l.maxAge)
	}
	o.seen[id] = true
	if id.Compare(o.highest) > 0 {
		o.highest = id
	}
	return nil
}

func TestLeased(t *testing.T) {
	noLeak(t)
	for what, door := range startFlakes(t).doors(t) {
		for _, tt := range []struct {
			LeaseOptions
			each int // ids that a caller takes
		}{
			{LeaseOptions{}, 2000},
			{LeaseOptions{Size: 1}, 100},
			{LeaseOptions{Size: 7, MaxAge: MinLeaseAge}, 200},
			{LeaseOptions{Size: MaxLeaseSize, MaxAge: MaxLeaseAge}, 2000},
		} {
			l, o := leased(t, door, tt.LeaseOptions), newOrder(t)
			var callers sync.WaitGroup
			for range 8 {
				callers.Go(func() {
					for range tt.each {
						if err := o.next(l); err != nil {
							t.Errorf("%s: %+v: %v", what, tt, err)
							return
						}
					}
				})
			}
			callers.Wait()
		}
	}
}

// The clock of the node steps back, and is set right or catches up.
func TestLeasedClock(t *testing.T) {
	f := startFlakes(t)
	for what, door := range f.doors(t) {
		l, o := leased(t, door, LeaseOptions{Size: 10, MaxAge: MaxLeaseAge}), newOrder(t)
		for _, behind := range []time.Duration{time.Hour, 50 * time.Millisecond, time.Hour} {
			if err := o.next(l); err != nil {
				t.Fatal(err)
			}
			f.behind.Store(behind.Milliseconds())
			for taken := 0; taken < 100; {
				switch err := o.next(l); {
				case err == nil:
					taken++
				case !errors.Is(err, flake.ErrClockBackwards):
					t.Fatalf("%s: %v", what, err)
				case behind == time.Hour: // nothing else sets it right
					f.behind.Store(0)
				}
			}
			f.behind.Store(0)
		}
	}
}

// fake is a door that leases ids 1, 2, 3 and so on.
type fake struct {
	Door
	asked atomic.Int32
	last  atomic.Uint64
	fail  atomic.Pointer[error]
	stuck atomic.Bool   // it leases the same again
	wait  chan struct{} // unless nil, before an answer
}

func (f *fake) lease(ctx context.Context, _ string, n, size int) ([]run, error) {
	f.asked.Add(1)
	if f.wait != nil {
		select {
		case <-f.wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if err := f.fail.Load(); err != nil {
		return nil, *err
	}
	first := make([]byte, size)
	if f.stuck.Load() {
		f.last.Store(0)
	}
	binary.BigEndian.PutUint64(first[size-8:], f.last.Add(uint64(n))-uint64(n)+1)
	return []run{{first, n}}, nil
}

func TestLeasedAhead(t *testing.T) {
	f := new(fake)
	l := leased(t, f, LeaseOptions{Size: 10, MaxAge: MaxLeaseAge})
	for i, want := range []int32{1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3} {
		id, err := l.Next(t.Context())
		if err != nil || id.Sequence() != uint16(i+1) {
			t.Fatalf("%v, %v, want %d", id, err, i+1)
		}
		await(t, "the next lease", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.fetching == nil })
		if got := f.asked.Load(); got != want {
			t.Errorf("after %d ids %d leases, want %d", i+1, got, want)
		}
	}
}

func TestLeasedTooOld(t *testing.T) {
	f := new(fake)
	l := leased(t, f, LeaseOptions{Size: 10, MaxAge: MinLeaseAge})
	for want := range uint16(5) {
		// An id of a lease that has just come may be too old already; then it is
		// the first of the next.
		id, err := l.Next(t.Context())
		if err != nil || id.Sequence() < 10*want+1 {
			t.Fatalf("%v, %v, want %d or more", id, err, 10*want+1)
		}
		old := l.current.Load()
		await(t, "old age", func() bool { return l.now()-old.asked > l.maxAge })
		await(t, "no fetch", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.fetching == nil })
	}
}

func TestLeasedFailure(t *testing.T) {
	f := new(fake)
	l := leased(t, f, LeaseOptions{Size: 2, MaxAge: MaxLeaseAge})
	why := errors.New("why")
	f.fail.Store(&why)
	for range 3 {
		if _, err := l.Next(t.Context()); !errors.Is(err, why) {
			t.Error(err)
		}
	}
	f.fail.Store(nil)
	if _, err := l.Next(t.Context()); err != nil {
		t.Error(err)
	}
	f.stuck.Store(true)
	var err error
	for range 4 {
		if _, err = l.Next(t.Context()); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrNotAbove) {
		t.Error(err)
	}
}

func TestLeasedContext(t *testing.T) {
	noLeak(t)
	f := &fake{wait: make(chan struct{})}
	l := leased(t, f, LeaseOptions{})
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	ended := make(chan error)
	next := func(ctx context.Context) {
		_, err := l.Next(ctx)
		ended <- err
	}
	go next(ctx)
	await(t, "a fetch", func() bool { return f.asked.Load() == 1 })
	cancel(why)
	if err := <-ended; !errors.Is(err, why) {
		t.Error(err)
	}
	go next(t.Context())
	await(t, "a caller", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.waiting == 1 })
	close(f.wait)
	if err := <-ended; err != nil || f.asked.Load() != 1 {
		t.Errorf("%v, after %d leases", err, f.asked.Load())
	}
	l.Close()
	if _, err := l.Next(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	l.Close()
}

func TestLeasedClose(t *testing.T) {
	noLeak(t)
	f := &fake{wait: make(chan struct{})}
	l := leased(t, f, LeaseOptions{})
	ended := make(chan error)
	go func() {
		_, err := l.Next(t.Context())
		ended <- err
	}()
	await(t, "a fetch", func() bool { return f.asked.Load() == 1 })
	go l.Close()
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}
