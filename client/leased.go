package client

import (
	"context"
	"fmt"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"
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

	fetchTime = 5 * time.Second // for one lease
)

// LeaseOptions say how far ahead to lease ids. Zero values stand for the defaults.
type LeaseOptions struct {
	Size   int           // ids in a lease, 1 to MaxLeaseSize; default 1000
	MaxAge time.Duration // of a lease, MinLeaseAge to MaxLeaseAge; default 100 ms
}

// Leased are ids of a generator, leased ahead so that they cost no round trip. Any
// number of goroutines may use it. Its ids have these guarantees:
//
//   - No id comes twice or goes to anybody else.
//   - An id is above those of all calls of Next that returned before its call began,
//     in any goroutine, and across kills and restarts of the node and steps of its
//     clock. There are two exceptions: a snowflake's ids of one millisecond with
//     random_start are in no order, and sno's are lower after the node's clock has
//     been set back.
//   - The node handed it out at most MaxAge ago, or during the call. Ids left in an
//     older lease are dropped, and nobody ever gets them.
//
// Ids taken in other ways from the same generator are above or below.
//
// The next lease is fetched when a lease is half used or has reached half its age, and
// ids are taken from it: an unused lease asks for nothing.
type Leased[ID Format] struct {
	ids     *IDs[ID]
	size    int
	maxAge  time.Duration
	start   time.Time
	ctx     context.Context // of the fetches
	cancel  context.CancelFunc
	fetches sync.WaitGroup

	current atomic.Pointer[lease] // from which ids are taken

	mu       sync.Mutex // for what follows, and to change current
	next     *lease     // after current, or nil
	fetching *fetch     // the one under way, or nil
	waiting  int        // callers
}

// lease is the runs of ids of one answer.
type lease struct {
	runs  []numbers
	total uint64
	asked time.Duration // before they were handed out

	taken   atomic.Uint64 // more than total once the ids are used up
	renewed atomic.Bool   // the next lease has been asked for
}

// fetch is a request for a lease. When it is done the lease is Leased.next.
type fetch struct {
	asked time.Duration
	done  chan struct{} // closed when the lease has come, or err is set
	err   error
}

// Leased returns ids leased ahead. It leases nothing yet. Close it after use.
func (g *IDs[ID]) Leased(o LeaseOptions) (*Leased[ID], error) {
	if o.Size == 0 {
		o.Size = defaultLeaseSize
	}
	if o.MaxAge == 0 {
		o.MaxAge = defaultLeaseAge
	}
	if o.Size < 1 || o.Size > MaxLeaseSize {
		return nil, outOfRange("Size", o.Size, 1, MaxLeaseSize)
	}
	if o.MaxAge < MinLeaseAge || o.MaxAge > MaxLeaseAge {
		return nil, fmt.Errorf("%w: MaxAge is %v, want %v to %v", ErrBadArgument, o.MaxAge, MinLeaseAge, MaxLeaseAge)
	}
	l := &Leased[ID]{ids: g, size: o.Size, maxAge: o.MaxAge, start: time.Now()}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l, nil
}

// Close drops leased ids. Next fails from then on.
func (l *Leased[ID]) Close() {
	l.mu.Lock()
	l.cancel() // no lease arrives after that
	l.current.Store(nil)
	l.next = nil
	l.mu.Unlock()
	l.fetches.Wait()
}

// Next returns the next id: at once from a lease, else when the next lease comes. It
// fails with the error of that, or with ctx's error once ctx is done.
func (l *Leased[ID]) Next(ctx context.Context) (id ID, err error) {
	n, ok, due := l.take(l.current.Load(), later)
	if !ok {
		n, err = l.wait(ctx)
	}
	if due {
		l.renew()
	}
	if err != nil {
		return id, err
	}
	return idOf[ID](n.fresh()), nil
}

func (l *Leased[ID]) now() time.Duration { return time.Since(l.start) }

// later is after any lease was asked for.
const later time.Duration = math.MaxInt64

// take returns the next id of a lease, unless the lease is used up or too old; once
// that is so it never returns one. A lease asked for after the call began is not too
// old. due means that the next lease should be fetched, once for each lease.
func (l *Leased[ID]) take(from *lease, began time.Duration) (n number, ok, due bool) {
	if from == nil {
		return n, false, false
	}
	i := from.taken.Add(1) - 1
	if i >= from.total {
		return n, false, false
	}
	age := l.now() - from.asked // read last, as the caller may have been held up
	if age > l.maxAge && from.asked < began {
		return n, false, false
	}
	due = i >= from.total/2 || age >= l.maxAge/2
	due = due && from.renewed.CompareAndSwap(false, true)
	return from.at(i), true, due
}

func (from *lease) at(i uint64) number {
	for _, r := range from.runs {
		if i < r.count {
			return r.first.plus(i)
		}
		i -= r.count
	}
	panic("unreachable: i is below total")
}

// wait takes an id of the next lease. If none comes before, it waits for one asked for
// after it began.
func (l *Leased[ID]) wait(ctx context.Context) (n number, err error) {
	began := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting++
	defer func() { l.waiting-- }()
	for {
		if n, ok := l.takeNext(began); ok {
			return n, nil
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
			return n, context.Cause(ctx)
		case f.err != nil && f.asked >= began:
			return n, f.err
		}
	}
}

// takeNext takes an id of the current lease, or of the next, which replaces it.
func (l *Leased[ID]) takeNext(began time.Duration) (n number, ok bool) {
	n, ok, due := l.take(l.current.Load(), began)
	if !ok && l.next != nil {
		l.current.Store(l.next)
		l.next = nil
		n, ok, due = l.take(l.current.Load(), began)
	}
	if due && l.next == nil {
		l.fetch()
	}
	return n, ok
}

// renew fetches a lease ahead, unless there is one.
func (l *Leased[ID]) renew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == nil {
		l.fetch()
	}
}

// fetch returns the fetch under way, or begins one. Everyone who waits gets an id of
// it.
func (l *Leased[ID]) fetch() *fetch {
	if l.fetching != nil {
		return l.fetching
	}
	f := &fetch{asked: l.now(), done: make(chan struct{})}
	if l.ctx.Err() != nil {
		f.err = net.ErrClosed
		close(f.done)
		return f
	}
	l.fetching = f
	size := min(max(l.size, l.waiting), MaxLeaseSize)
	l.fetches.Go(func() {
		defer close(f.done)
		ctx, cancel := context.WithTimeout(l.ctx, fetchTime)
		defer cancel()
		runs, err := l.ids.Lease(ctx, size)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.fetching = nil
		if l.ctx.Err() != nil {
			return // waiting callers ask again and learn that it is closed
		}
		if f.err = err; err != nil {
			return
		}
		l.next = &lease{asked: f.asked}
		for _, r := range runs {
			l.next.runs = append(l.next.runs, numbersOf(r))
			l.next.total += uint64(r.Count)
		}
	})
	return f
}
