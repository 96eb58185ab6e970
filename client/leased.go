package client

import (
	"cmp"
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/flake/formats"
)

// The ranges of [LeaseOptions].
const (
	MaxLeaseSize = maxLease
	MinLeaseAge  = time.Millisecond
	MaxLeaseAge  = time.Minute
)

const (
	defaultLeaseSize = 1000
	defaultLeaseAge  = 100 * time.Millisecond

	fetchTime = 5 * time.Second // limits the request for one lease
)

// LeaseOptions configure leases. A zero field means the default.
type LeaseOptions struct {
	Size   int           // number of ids in a lease, from 1 to MaxLeaseSize; default 1000
	MaxAge time.Duration // of a lease, from MinLeaseAge to MaxLeaseAge; default 100 ms
}

// Leased returns ids of a generator from leases that it fetches ahead, without a round trip
// for each id. It is safe for concurrent use. Its ids have these guarantees:
//
//   - No id is returned twice, or to another caller of the node.
//   - An id is above the ids of all calls of Next that returned before its own call started, in
//     any goroutine, even if the node is killed and restarted or its clock steps. There are
//     two exceptions: snowflakes with random_start are not ordered within a millisecond, and
//     sno's ids are lower after the node's clock has been set back.
//   - The node returned the id at most MaxAge ago, or during the call. The remaining ids of an
//     older lease are dropped.
//
// There is no order between these ids and the ids of other calls to the same generator.
//
// Taking an id from a lease that is half used, or has reached half its maximum age, fetches the
// next lease. An unused lease is not renewed.
type Leased[ID Format] struct {
	ids     *IDs[ID]
	size    int
	maxAge  time.Duration
	ctx     context.Context // for the fetches
	cancel  context.CancelFunc
	fetches sync.WaitGroup

	current atomic.Pointer[lease] // the lease that ids are taken from

	mu      sync.Mutex // guards the fields below, and changes to current
	next    *lease     // the lease after current, which may not have arrived yet, or nil
	waiting int        // the number of callers that wait for a lease
}

// lease is a request for ids, and the ids of its answer.
type lease struct {
	asked time.Time     // when it was requested
	done  chan struct{} // closed when the ids have arrived or the request has failed
	err   error
	runs  []formats.Run
	total int // the number of ids; 0 until they arrive

	taken   atomic.Int64 // the number of ids taken; may exceed total
	renewed atomic.Bool  // whether the next lease has been requested
}

// Leased returns a Leased for this generator. The first call of Next makes the first request. The
// caller must Close the Leased after use.
func (g *IDs[ID]) Leased(o LeaseOptions) (*Leased[ID], error) {
	o.Size, o.MaxAge = cmp.Or(o.Size, defaultLeaseSize), cmp.Or(o.MaxAge, defaultLeaseAge)
	if o.Size < 1 || o.Size > MaxLeaseSize {
		return nil, outOfRange("Size", o.Size, 1, MaxLeaseSize)
	}
	if o.MaxAge < MinLeaseAge || o.MaxAge > MaxLeaseAge {
		return nil, outOfRange("MaxAge", o.MaxAge, MinLeaseAge, MaxLeaseAge)
	}
	l := &Leased[ID]{ids: g, size: o.Size, maxAge: o.MaxAge}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l, nil
}

// Close drops the leased ids. Later calls of Next fail.
func (l *Leased[ID]) Close() {
	l.mu.Lock()
	l.cancel() // after this, no fetch stores a lease
	l.current.Store(nil)
	l.next = nil
	l.mu.Unlock()
	l.fetches.Wait()
}

// Next returns the next id, immediately unless it must wait for a lease. If the lease cannot be
// fetched, Next returns the error of the fetch; if ctx is done first, it returns ctx's error.
func (l *Leased[ID]) Next(ctx context.Context) (id ID, err error) {
	n, ok, due := l.take(time.Time{})
	if !ok {
		n, due, err = l.wait(ctx, time.Now())
	}
	if due {
		l.mu.Lock()
		l.fetch()
		l.mu.Unlock()
	}
	if err != nil {
		return id, err
	}
	return idOf[ID](n), nil
}

// take returns the next id of the current lease. ok is false if there is no current lease, or if it
// is used up or too old. A lease that was requested after the call of Next began is never too old;
// began is zero if that call has just begun. due is true once for each lease, when the next lease
// should be fetched.
func (l *Leased[ID]) take(began time.Time) (n formats.Number, ok, due bool) {
	from := l.current.Load()
	if from == nil {
		return n, false, false
	}
	i := int(from.taken.Add(1) - 1)
	if i >= from.total {
		return n, false, false
	}
	age := time.Since(from.asked) // read after taking i, to include a delay of the goroutine
	if age > l.maxAge && (began.IsZero() || from.asked.Before(began)) {
		return n, false, false
	}
	due = i >= from.total/2 || age >= l.maxAge/2
	due = due && from.renewed.CompareAndSwap(false, true)
	return from.at(i), true, due
}

func (from *lease) at(i int) formats.Number {
	for _, r := range from.runs {
		if i < r.Count {
			return r.At(i)
		}
		i -= r.Count
	}
	panic("unreachable: i is below total")
}

// wait makes the next lease current, once it has arrived, and takes an id from it. It waits at most
// for the first lease requested after the call began.
func (l *Leased[ID]) wait(ctx context.Context, began time.Time) (n formats.Number, due bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting++
	defer func() { l.waiting-- }()
	for {
		n, ok, due := l.take(began)
		if ok {
			return n, due, nil
		}
		if l.next != nil && l.next.total > 0 {
			l.current.Store(l.next)
			l.next = nil
			continue
		}
		f := l.fetch()
		l.mu.Unlock()
		select {
		case <-f.done:
		case <-ctx.Done():
		}
		l.mu.Lock()
		switch {
		case ctx.Err() != nil:
			return n, false, context.Cause(ctx)
		case f.err != nil && !f.asked.Before(began):
			return n, false, f.err
		}
	}
}

// fetch returns the next lease. If there is none, it requests one with enough ids for all waiting
// callers.
func (l *Leased[ID]) fetch() *lease {
	if l.next != nil {
		return l.next
	}
	f := &lease{asked: time.Now(), done: make(chan struct{})}
	if l.ctx.Err() != nil {
		f.err = net.ErrClosed
		close(f.done)
		return f
	}
	l.next = f
	size := min(max(l.size, l.waiting), MaxLeaseSize)
	l.fetches.Go(func() {
		defer close(f.done)
		ctx, cancel := context.WithTimeout(l.ctx, fetchTime)
		defer cancel()
		runs, err := l.ids.lease(ctx, size)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.ctx.Err() != nil {
			return // waiting callers call fetch again, and get net.ErrClosed
		}
		if f.runs, f.err = runs, err; err != nil {
			l.next = nil
		}
		for _, r := range runs {
			f.total += r.Count
		}
	})
	return f
}
