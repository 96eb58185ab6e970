package client

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flake-go/flake/flake"
)

// fake is a door that leases the ids 1, 2, 3 and so on. In ids of 16 bytes the time is not 0.
type fake struct {
	Door
	asked atomic.Int32
	last  atomic.Uint64
	fail  atomic.Pointer[error]
	stuck atomic.Bool   // each lease has the same ids
	wait  chan struct{} // if not nil, ask waits for this before it answers
	size  atomic.Int32  // of the last lease
}

func (f *fake) ask(ctx context.Context, r request) (answer, error) {
	f.asked.Add(1)
	f.size.Store(int32(r.n))
	if f.wait != nil {
		select {
		case <-f.wait:
		case <-ctx.Done():
			return answer{}, ctx.Err()
		}
	}
	if err := f.fail.Load(); err != nil {
		return answer{}, *err
	}
	first := make([]byte, r.format.Size)
	if r.format.Size == len(flake.ID{}) {
		first[2] = 1
	}
	if f.stuck.Load() {
		f.last.Store(0)
	}
	n := uint64(r.n)
	end := f.last.Add(n)
	if end>>16 != (end-n+1)>>16 { // the ids of a run have the same worker
		end = f.last.Add(n)
	}
	binary.BigEndian.PutUint64(first[r.format.Size-8:], end-n+1)
	return answer{runs: []run{{first, r.n}}}, nil
}

// fetching reports whether a lease has been requested and has not arrived.
func fetching(l *Leased[flake.ID]) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next != nil && l.next.total == 0
}

func TestLeasedAhead(t *testing.T) {
	f := new(fake)
	l := leased(t, f, LeaseOptions{Size: 10, MaxAge: MaxLeaseAge})
	for i, want := range []int32{1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3} {
		id, err := l.Next(t.Context())
		if err != nil || id.Sequence() != uint16(i+1) {
			t.Fatalf("%v, %v, want %d", id, err, i+1)
		}
		await(t, "the next lease", func() bool { return !fetching(l) })
		if got := f.asked.Load(); got != want {
			t.Errorf("after %d ids, asked for %d leases, want %d", i+1, got, want)
		}
	}
}

func TestLeasedTooOld(t *testing.T) {
	f := new(fake)
	l := leased(t, f, LeaseOptions{Size: 10, MaxAge: MinLeaseAge})
	for want := range uint16(5) {
		// An id of a new lease may already be too old. Then the first id of the next lease
		// is returned.
		id, err := l.Next(t.Context())
		if err != nil || id.Sequence() < 10*want+1 {
			t.Fatalf("%v, %v, want %d or more", id, err, 10*want+1)
		}
		old := l.current.Load()
		await(t, "old age", func() bool { return time.Since(old.asked) > l.maxAge })
		await(t, "no fetch", func() bool { return !fetching(l) })
	}
}

// When a lease has reached half its age, or half its ids are used, the next one is requested: only
// once, even if the request fails.
func TestLeasedRenewedOnce(t *testing.T) {
	for _, tt := range []struct {
		what  string
		pause time.Duration // after the first id
		ids   int
		want  int32
	}{
		{"young and hardly used", time.Second/2 - 1, 1, 1},
		{"of half the age", time.Second / 2, 4, 2},
		{"half used", 0, 9, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			f, down := new(fake), errors.New("down")
			l := leased(t, f, LeaseOptions{Size: 10, MaxAge: time.Second})
			time.Sleep(time.Minute) // so that the start is long ago
			for i := range 1 + tt.ids {
				if _, err := l.Next(t.Context()); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if i == 0 {
					f.fail.Store(&down)
					time.Sleep(tt.pause)
				}
			}
			if got := f.asked.Load(); got != tt.want {
				t.Errorf("%s: asked for %d leases, want %d", tt.what, got, tt.want)
			}
		})
	}
}

// The age of an id counts from the request for its lease.
func TestLeasedAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const age = time.Second
		l := leased(t, new(fake), LeaseOptions{Size: 10, MaxAge: age})
		for _, tt := range []struct {
			pause time.Duration
			want  uint16
		}{{0, 1}, {age, 2}, {age + 1, 21}} { // ids 11 to 20 were requested with id 2
			time.Sleep(tt.pause)
			id, err := l.Next(t.Context())
			if err != nil || id.Sequence() != tt.want {
				t.Errorf("after %v: %v, %v, want %d", tt.pause, id, err, tt.want)
			}
			synctest.Wait()
		}
	})
}

// lingering is a door that returns late when a call is canceled.
type lingering struct {
	Door
	ended bool
}

func (d *lingering) ask(ctx context.Context, _ request) (answer, error) {
	<-ctx.Done()
	time.Sleep(time.Second) // virtual time
	d.ended = true
	return answer{}, ctx.Err()
}

func TestLeasedCloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := new(lingering)
		l := leased(t, d, LeaseOptions{})
		go l.Next(t.Context())
		synctest.Wait()
		if l.Close(); !d.ended {
			t.Error("a fetch continues after Close")
		}
	})
}

// A lease that arrives when it is already too old is still used for the callers that waited for it.
func TestLeasedSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{wait: make(chan struct{})}
		l := leased(t, f, LeaseOptions{MaxAge: MinLeaseAge})
		go func() {
			time.Sleep(time.Second)
			close(f.wait)
		}()
		if _, err := l.Next(t.Context()); err != nil || f.asked.Load() != 1 {
			t.Errorf("%v, asked for %d leases", err, f.asked.Load())
		}
	})
}

// A caller that starts during a fetch does not fail if that fetch fails, but fetches again.
func TestLeasedLaterCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, down := &fake{wait: make(chan struct{})}, errors.New("down")
		l := leased(t, f, LeaseOptions{})
		var errs [2]error
		var callers sync.WaitGroup
		for i := range errs {
			callers.Go(func() { _, errs[i] = l.Next(t.Context()) })
			time.Sleep(time.Millisecond)
		}
		f.fail.Store(&down)
		f.wait <- struct{}{}
		synctest.Wait()
		f.fail.Store(nil)
		close(f.wait)
		callers.Wait()
		if !errors.Is(errs[0], down) || errs[1] != nil {
			t.Error(errs)
		}
	})
}

// A lease has an id for each waiting caller.
func TestLeasedForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers = 50
		f := &fake{wait: make(chan struct{})}
		l := leased(t, f, LeaseOptions{Size: 1, MaxAge: MaxLeaseAge})
		next := func() {
			if _, err := l.Next(t.Context()); err != nil {
				t.Error(err)
			}
		}
		var all sync.WaitGroup
		for range callers {
			all.Go(next)
		}
		synctest.Wait()
		close(f.wait)
		all.Wait()
		if asked := f.asked.Load(); asked > callers/5 {
			t.Errorf("asked for %d leases for %d callers", asked, callers)
		}
		for range 4 * callers {
			next()
			synctest.Wait()
		}
		if size := f.size.Load(); size != 1 {
			t.Errorf("a lease of %d ids for one caller", size)
		}
	})
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
	l := leased(t, f, LeaseOptions{MaxAge: MaxLeaseAge}) // so that the lease is not too old
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
		t.Errorf("Next after Close: %v", err)
	}
	l.Close()
}

// A lease fetched ahead is dropped by Close too.
func TestLeasedCloseAhead(t *testing.T) {
	noLeak(t)
	f := new(fake)
	l := leased(t, f, LeaseOptions{Size: 2, MaxAge: MaxLeaseAge})
	for range 2 {
		if _, err := l.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "the next lease", func() bool { return !fetching(l) })
	l.Close()
	for range 3 {
		if id, err := l.Next(t.Context()); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Next after Close: %v, %v", id, err)
		}
	}
}

// A lease that arrives after Close is dropped too, even if callers are waiting.
func TestLeasedCloseConcurrently(t *testing.T) {
	noLeak(t)
	for range 200 {
		l := leased(t, new(fake), LeaseOptions{Size: 1, MaxAge: MaxLeaseAge})
		var closed atomic.Bool
		var callers sync.WaitGroup
		for range 4 {
			callers.Go(func() {
				for {
					late := closed.Load()
					_, err := l.Next(t.Context())
					if late && err == nil {
						t.Error("a call after Close got an id")
					}
					if err != nil {
						if !errors.Is(err, net.ErrClosed) {
							t.Error(err)
						}
						return
					}
				}
			})
		}
		if _, err := l.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.Close()
		closed.Store(true)
		callers.Wait()
	}
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
