package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// failoverTime limits a call whose context has no deadline.
	failoverTime = 5 * time.Second

	// The pause after a round in which all nodes failed; it doubles with each round.
	firstRoundPause = 2 * time.Millisecond
	lastRoundPause  = 500 * time.Millisecond
)

// Failover combines several nodes. It uses one node until that node fails, then switches to the
// next; after the last comes the first.
//
// If no node answers a call, the Failover repeats it, with pauses, until the context's
// deadline, or for 5 s if there is none. A silent node uses up only part of that time. The
// error wraps the errors of all nodes. After [ErrBadArgument] no other node is tried.
//
// Ids ascend across nodes as [IDs] and [Leased] describe for one node. If the clock of the next
// node, or of a node that replaces another at the same address, is behind, its ids are dropped
// until they are above the earlier ones. If time runs out first, the error is [ErrNotAbove]. A
// Failover remembers the highest id of each generator but does not share it with other Failovers.
//
// A Failover does not compare the workers of nodes. Two nodes with the same worker may make
// duplicate ids.
type Failover struct {
	// SameWorker is never called.
	//
	// Deprecated: numbers from etcd keep the workers of nodes apart.
	SameWorker func(error)

	doors []Door
	asked atomic.Int64 // the index of the door to try first

	mu      sync.Mutex
	highest map[string]lastID // by generator
}

// lastID is the highest id returned, with the index of the door that returned it.
type lastID struct {
	id   number
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

func (f *Failover) get(ctx context.Context, generator string) (id []byte, err error) {
	err = f.take(ctx, generator, func(ctx context.Context, door Door) ([]run, error) {
		id, err = door.get(ctx, generator)
		return []run{{id, 1}}, err
	})
	return id, err
}

func (f *Failover) lease(ctx context.Context, generator string, n, size int) (runs []run, err error) {
	err = f.take(ctx, generator, func(ctx context.Context, door Door) ([]run, error) {
		runs, err = door.lease(ctx, generator, n, size)
		return runs, err
	})
	return runs, err
}

func (f *Failover) texts(ctx context.Context, generator string, n, base int) (texts []string, err error) {
	if base == Canonical {
		return nil, fmt.Errorf("%w: canonical texts from several nodes", ErrBadArgument)
	}
	err = f.take(ctx, generator, func(ctx context.Context, door Door) ([]run, error) {
		if texts, err = door.texts(ctx, generator, n, base); err != nil {
			return nil, err
		}
		runs := make([]run, len(texts))
		for i, text := range texts {
			id, err := parseBase(text, base)
			if err != nil {
				return nil, err
			}
			runs[i] = run{id[:], 1}
		}
		return runs, nil
	})
	return texts, err
}

func (f *Failover) notional(ctx context.Context, generator string, milli uint64) (id []byte, err error) {
	err = f.ask(ctx, func(ctx context.Context, at int) error {
		id, err = f.doors[at].notional(ctx, generator, milli)
		return err
	})
	return id, err
}

func (f *Failover) span(ctx context.Context, generator string, first, last uint64) (lowest, highest []byte, err error) {
	err = f.ask(ctx, func(ctx context.Context, at int) error {
		lowest, highest, err = f.doors[at].span(ctx, generator, first, last)
		return err
	})
	return lowest, highest, err
}

func (f *Failover) decompose(ctx context.Context, generator string, id []byte) (fields []Field, err error) {
	err = f.ask(ctx, func(ctx context.Context, at int) error {
		fields, err = f.doors[at].decompose(ctx, generator, id)
		return err
	})
	return fields, err
}

// take requests ids, which must be above all those returned before take was called.
func (f *Failover) take(ctx context.Context, generator string, do func(context.Context, Door) ([]run, error)) error {
	f.mu.Lock()
	before := f.highest[generator] // may be zero
	f.mu.Unlock()
	return f.ask(ctx, func(ctx context.Context, at int) error {
		runs, err := do(ctx, f.doors[at])
		if err != nil {
			return err
		}
		var highest number
		for _, r := range runs {
			first := numberOfBytes(r.first)
			if !first.follows(before.id) || before.door != at && !before.id.below(first) {
				return fmt.Errorf("node %d of %d: %w", at+1, len(f.doors), ErrNotAbove)
			}
			if last := first.plus(uint64(max(r.count, 1)) - 1); highest.below(last) {
				highest = last
			}
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if last := f.highest[generator]; last.id.below(highest) {
			f.highest[generator] = lastID{highest, at}
		}
		return nil
	})
}

// ask calls one door after another until one answers.
func (f *Failover) ask(ctx context.Context, do func(ctx context.Context, at int) error) error {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(failoverTime)
	}
	errs := make([]error, len(f.doors))
	for pause := firstRoundPause; ; pause = min(2*pause, lastRoundPause) {
		if done, err := f.round(ctx, deadline, errs, do); done {
			return err
		}
		if !anyPasses(errs) || time.Until(deadline) <= pause {
			return noneOf(errs)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return gaveUp(ctx, errs)
		}
	}
}

// round tries each door once and records its error in errs. done means that ask must return err.
func (f *Failover) round(ctx context.Context, deadline time.Time, errs []error,
	do func(context.Context, int) error) (done bool, err error) {
	first := int(f.asked.Load())
	for i := range f.doors {
		at := (first + i) % len(f.doors)
		part := time.Until(deadline) / time.Duration(len(f.doors)-i)
		bounded, cancel := context.WithTimeout(ctx, part)
		err := do(bounded, at)
		cancel()
		switch {
		case err == nil:
			f.asked.CompareAndSwap(int64(first), int64(at))
			return true, nil
		case errors.Is(err, ErrBadArgument):
			return true, err
		case errs[at] == nil || !errors.Is(err, context.DeadlineExceeded): // a timeout must not hide an earlier error
			errs[at] = err
		}
		if ctx.Err() != nil {
			return true, gaveUp(ctx, errs)
		}
	}
	return false, nil
}

// anyPasses reports whether any of the errors may be temporary.
func anyPasses(errs []error) bool {
	for _, err := range errs {
		if !errors.Is(err, ErrUnknown) && !errors.Is(err, net.ErrClosed) {
			return true
		}
	}
	return false
}

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
