package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/flake/formats"
)

const (
	// failoverTime limits a call whose context has no deadline.
	failoverTime = 5 * time.Second

	// The pause after a round in which all nodes failed; it doubles with each round.
	firstRoundPause = 2 * time.Millisecond
	lastRoundPause  = 500 * time.Millisecond
)

// Failover combines several nodes. It uses one node until that node fails, then switches to the
// next, and from the last to the first.
//
// If no node answers a call, the Failover repeats it, with pauses, until the context's
// deadline, or for 5 s if the context has none. A silent node uses up only part of that time. The
// error wraps the errors of all nodes. After [ErrBadArgument] no other node is tried.
//
// Ids ascend across nodes as [IDs] and [Leased] describe for one node. The clock of the next node,
// or of a node that replaces another at the same address, may be behind. The ids of such a node are
// dropped until they are above the earlier ones. If time runs out first, the error is
// [ErrNotAbove]. A Failover remembers the highest id of each generator but does not share it with
// other Failovers.
//
// A Failover does not compare the workers of nodes. Two nodes with the same worker may make
// duplicate ids.
type Failover struct {
	doors []Door
	asked atomic.Int64 // the index of the door to try first

	mu      sync.Mutex        // guards highest
	highest map[string]lastID // by generator
}

// lastID is the highest id returned, with the index of the door that returned it.
type lastID struct {
	id   formats.Number
	door int
}

var _ Door = (*Failover)(nil)

// NewFailover returns a Failover for several nodes, in order of preference. Their generators
// must have the same names and formats, but different workers.
func NewFailover(first Door, others ...Door) *Failover {
	return &Failover{doors: append([]Door{first}, others...), highest: make(map[string]lastID)}
}

// Close closes all doors.
func (f *Failover) Close() error {
	var errs []error
	for _, door := range f.doors {
		errs = append(errs, door.Close())
	}
	return errors.Join(errs...)
}

// ask asks one door after another until check accepts an answer.
func (f *Failover) ask(ctx context.Context, r request) (answer, error) {
	f.mu.Lock()
	before := f.highest[r.generator] // may be zero
	f.mu.Unlock()
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(failoverTime)
	}
	errs := make([]error, len(f.doors)) // the latest of each
	for pause := firstRoundPause; ; pause = min(2*pause, lastRoundPause) {
		first := f.asked.Load()
		for i := range f.doors {
			at := (int(first) + i) % len(f.doors)
			part := time.Until(deadline) / time.Duration(len(f.doors)-i)
			bounded, cancel := context.WithTimeout(ctx, part)
			a, err := f.doors[at].ask(bounded, r)
			cancel()
			if err == nil {
				err = f.check(r, a, at, before)
			}
			switch {
			case err == nil:
				f.asked.CompareAndSwap(first, int64(at))
				return a, nil
			case errors.Is(err, ErrBadArgument):
				return answer{}, err
			case errs[at] == nil || !errors.Is(err, context.DeadlineExceeded): // a timeout must not hide an earlier error
				errs[at] = err
			}
			if ctx.Err() != nil {
				return answer{}, gaveUp(ctx, errs)
			}
		}
		if !slices.ContainsFunc(errs, passes) || time.Until(deadline) <= pause {
			return answer{}, noneOf(errs)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return answer{}, gaveUp(ctx, errs)
		}
	}
}

// check records the highest id in an answer from the door with index at. It fails if an id cannot
// follow the id in before, or if before is from another door and the id is not above it.
func (f *Failover) check(r request, a answer, at int, before lastID) error {
	var taken []formats.Run
	for _, text := range a.texts {
		if id, ok := r.inText(text); ok {
			taken = append(taken, formats.Run{First: id, Count: 1})
		}
	}
	for _, got := range a.runs {
		if first, err := numberIn(got.first, r.format); err == nil { // otherwise IDs fails
			taken = append(taken, formats.Run{First: first, Count: got.count})
		}
	}
	var highest formats.Number
	for _, ids := range taken {
		if !r.format.Follows(before.id, ids.First) || before.door != at && ids.First.Compare(before.id) <= 0 {
			return fmt.Errorf("node %d of %d: %w", at+1, len(f.doors), ErrNotAbove)
		}
		if last := r.format.Plus(ids.First, max(ids.Count, 1)-1); last.Compare(highest) > 0 {
			highest = last
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if last := f.highest[r.generator]; highest.Compare(last.id) > 0 {
		f.highest[r.generator] = lastID{highest, at}
	}
	return nil
}

// passes reports whether an error may be temporary.
func passes(err error) bool { return !errors.Is(err, ErrUnknown) && !errors.Is(err, net.ErrClosed) }

func gaveUp(ctx context.Context, errs []error) error {
	return fmt.Errorf("%w; %w", context.Cause(ctx), noneOf(errs))
}

// noneOf joins the errors of the nodes on one line.
func noneOf(errs []error) error {
	var all []any
	for _, err := range errs {
		if err != nil { // otherwise the node was not tried
			all = append(all, err)
		}
	}
	return fmt.Errorf("no node answered"+strings.Repeat("; %w", len(all)), all...)
}
