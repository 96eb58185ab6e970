package client

import (
	"bytes"
	"context"
	"errors"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/flake/sno"
	"github.com/flake-go/flake/flake/snowflake"
	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/idserver/idhttp"
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

// order checks that ids of concurrent callers are unique and ascend.
type order struct {
	t       *testing.T
	mu      sync.Mutex
	seen    map[flake.ID]bool
	highest flake.ID
}

func newOrder(t *testing.T) *order { return &order{t: t, seen: make(map[flake.ID]bool)} }

// next takes an id, which must be above all ids that existed when the call began.
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
		o.t.Errorf("%v was returned twice", id)
	case id.Compare(before) <= 0:
		o.t.Errorf("%v is not above %v, which existed before the call", id, before)
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

// Leased ids ascend after the node's clock steps back and is corrected or catches up.
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
				case behind == time.Hour: // too long to catch up
					f.behind.Store(0)
				}
			}
			f.behind.Store(0)
		}
	}
}

// webDoor returns an HTTP door to a generator with the name ids.
func webDoor(t *testing.T, source formats.Source) Door {
	t.Helper()
	web := httptest.NewServer(idhttp.New(idhttp.Options{
		Generators: []idhttp.Generator{{Name: "ids", Server: &idserver.Server{IDs: source}}}, Log: quiet,
	}))
	t.Cleanup(web.Close)
	h, err := NewHTTP(web.URL, HTTPOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// takeAll takes n ids, which must be new.
func takeAll[ID Format](t *testing.T, l *Leased[ID], seen map[ID]bool, n int) (ids []ID) {
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

// With random_start the ids of a millisecond wrap around, and the milliseconds ascend.
func TestLeasedRandomStart(t *testing.T) {
	source, err := snowflake.Twitter.NewGenerator(1, snowflake.Options{RandomStart: true})
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewIDs[snowflake.ID](webDoor(t, formats.Snowflake(source)), "ids").Leased(LeaseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var last uint64
	for _, id := range takeAll(t, l, make(map[snowflake.ID]bool), 5*source.PerTick()) {
		p, err := source.Layout().Decompose(id)
		if err != nil || p.Milli < last {
			t.Fatalf("an id from %d ms after one from %d ms: %v", p.Milli, last, err)
		}
		last = p.Milli
	}
}

// After a node's clock is set back, its sno generator continues with lower ids.
func TestLeasedSnoClock(t *testing.T) {
	var behind atomic.Int64
	system := flake.SystemClock()
	source, err := sno.NewGenerator(nil, sno.Options{Clock: func() uint64 { return system() - uint64(behind.Load()) }})
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewIDs[sno.ID](webDoor(t, formats.Sno(source)), "ids").Leased(LeaseOptions{Size: 10})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	seen := make(map[sno.ID]bool)
	before := takeAll(t, l, seen, 100)
	behind.Store(time.Minute.Milliseconds())
	after := takeAll(t, l, seen, 100)
	if bytes.Compare(after[99][:], before[0][:]) > 0 {
		t.Errorf("%x after %x: the clock was not set back", after[99], before[0])
	}
}

// Leased ids are returned in order. Ids that are too old for new calls can still be returned to a
// caller that waited for them.
func TestLeasedWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		f := &fake{wait: make(chan struct{})} // does not answer
		l := leased(t, f, LeaseOptions{MaxAge: time.Second})
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		of := func(first uint64, count int) *lease {
			return &lease{runs: []formats.Run{{First: formats.Number{Lo: first}, Count: count}}, total: count, asked: time.Now()}
		}
		l.current.Store(of(1, 1))
		l.next = of(2, 10)
		l.next.runs = []formats.Run{{First: formats.Number{Lo: 2}, Count: 2}, {First: formats.Number{Lo: 9}, Count: 8}}
		next := func(began time.Time, want uint64) {
			t.Helper()
			n, due, err := l.wait(ended, began)
			if taken := want > 0; n.Lo != want || (err == nil) != taken || due != taken {
				t.Errorf("%v, the next due: %t, %v, want %d", n, due, err, want)
			}
		}
		next(time.Now(), 1)
		l.mu.Lock()
		l.fetch()
		l.mu.Unlock()
		synctest.Wait()
		if f.asked.Load() > 0 {
			t.Error("a lease was requested, although the next one had arrived")
		}
		time.Sleep(2 * time.Second)
		next(time.Now(), 0) // too old
		next(time.Now(), 0)
		next(start, 9) // but not for a caller that waited for it
		synctest.Wait()
		if n := f.asked.Load(); n != 1 {
			t.Errorf("asked for %d leases", n)
		}
	})
}
