package client

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"net"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/flakehttp"
	"github.com/flake-go/flake/flake/flakeserver"
	"github.com/flake-go/flake/flake/sno"
	"github.com/flake-go/flake/flake/snowflake"
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

// webDoor gives the way to a source over HTTP, under the name ids.
func webDoor(t *testing.T, source flakeserver.Source) Door {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	web := httptest.NewServer(flakehttp.New(flakehttp.Options{
		Generators: []flakehttp.Generator{{Name: "ids", Server: &flakeserver.Server{IDs: source, Log: log}}}, Log: log,
	}))
	t.Cleanup(web.Close)
	h, err := NewHTTP(web.URL, HTTPOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// takeAll takes n ids, none of which may have been seen.
func takeAll[ID Octets](t *testing.T, l *Leased[ID], seen map[ID]bool, n int) (ids []ID) {
	t.Helper()
	for range n {
		id, err := l.Next(t.Context())
		if err != nil || seen[id] {
			t.Fatalf("after %d ids: %x, seen before: %t, %v", len(seen), id, seen[id], err)
		}
		seen[id] = true
		ids = append(ids, id)
	}
	return ids
}

// The ids of a millisecond start anywhere and go round, the milliseconds ascend.
func TestLeasedRandomStart(t *testing.T) {
	source, err := snowflake.Open(t.Context(), filepath.Join(t.TempDir(), "time"), snowflake.Twitter, snowflake.MachineID(1),
		snowflake.Options{RandomStart: true})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	l, err := NewIDs[[8]byte](webDoor(t, flakeserver.Snowflake(source)), "ids").Leased(LeaseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var last uint64
	for _, id := range takeAll(t, l, make(map[[8]byte]bool), 5*source.PerTick()) {
		milli := source.Layout().Decompose(snowflake.FromBytes(id)).Milli
		if milli < last {
			t.Fatalf("%d ms after %d", milli, last)
		}
		last = milli
	}
}

// The clock of a node that has sno is set back: it goes on with lower ids.
func TestLeasedSnoClock(t *testing.T) {
	var behind atomic.Int64
	system := flake.SystemClock()
	source, err := sno.Open(t.Context(), filepath.Join(t.TempDir(), "time"), nil,
		sno.Options{Clock: func() uint64 { return system() - uint64(behind.Load()) }})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	l, err := NewIDs[[10]byte](webDoor(t, flakeserver.Sno(source)), "ids").Leased(LeaseOptions{Size: 10})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	seen := make(map[[10]byte]bool)
	before := takeAll(t, l, seen, 100)
	behind.Store(time.Minute.Milliseconds())
	after := takeAll(t, l, seen, 100)
	if bytes.Compare(after[99][:], before[0][:]) > 0 {
		t.Errorf("%x after %x: the clock was not set back", after[99], before[0])
	}
}

// Of flake-idgen and snowflake another node is told by a lower millisecond.
func TestLeasedOtherSnowflake(t *testing.T) {
	const milli = 1 << 22 // of ids
	l, err := NewIDs[[8]byte](nil, "ids").Leased(LeaseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, tt := range []struct {
		id   uint64
		want error
	}{
		{7*milli + 9, nil},
		{7*milli + 3, nil},
		{7*milli - 2, ErrNotAbove},
		{8*milli - 1, nil},
	} {
		if got := l.arrived([]Run[[8]byte]{{idOf[[8]byte](number{lo: tt.id}), 1}}, 0); got != tt.want {
			t.Errorf("%#x: %v, want %v", tt.id, got, tt.want)
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

// What was leased ahead is dropped with the rest.
func TestLeasedCloseAhead(t *testing.T) {
	noLeak(t)
	f := new(fake)
	l := leased(t, f, LeaseOptions{Size: 2, MaxAge: MaxLeaseAge})
	for range 2 {
		if _, err := l.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "the next lease", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.next != nil })
	l.Close()
	for range 3 {
		if id, err := l.Next(t.Context()); !errors.Is(err, net.ErrClosed) {
			t.Errorf("closed: %v, %v", id, err)
		}
	}
}

// A lease that comes after Close is dropped too, whoever takes ids meanwhile.
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
						t.Error("an id of a call after Close")
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

// A lease must be above all of the one before, and its runs above each other.
func TestLeasedNotAbove(t *testing.T) {
	l := leased(t, new(fake), LeaseOptions{})
	run := func(first uint64, count int) Run[flake.ID] {
		return Run[flake.ID]{idOf[flake.ID](number{lo: first}), count}
	}
	for _, tt := range []struct {
		runs []Run[flake.ID]
		want error
	}{
		{[]Run[flake.ID]{run(1, 10)}, nil},
		{[]Run[flake.ID]{run(5, 1)}, ErrNotAbove},
		{[]Run[flake.ID]{run(10, 1)}, ErrNotAbove},
		{[]Run[flake.ID]{run(11, 5), run(20, 5)}, nil},
		{[]Run[flake.ID]{run(24, 1)}, ErrNotAbove},
		{[]Run[flake.ID]{run(30, 5), run(34, 1)}, ErrNotAbove},
		{[]Run[flake.ID]{run(50, 1)}, nil},
	} {
		if got := l.arrived(tt.runs, 0); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.runs, got, tt.want)
		}
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
