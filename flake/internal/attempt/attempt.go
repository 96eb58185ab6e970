// Package attempt lets callers wait for attempts that one goroutine makes, one after another,
// such as writes to a disk or requests to a store. See [Attempts].
package attempt

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/flake-go/flake/flake/internal/tick"
)

// Attempts coordinates one goroutine, which makes attempts, with any number of callers. The
// goroutine may make an attempt at any time, and must make one when [Attempts.Asked] has a value.
// It reports each result with [Attempts.Settle]. Callers wait in [Attempts.Await].
type Attempts struct {
	patience time.Duration
	slow     error
	changed  func(before, now error)
	asked    chan struct{}

	mu    sync.Mutex    // guards round and err
	round chan struct{} // closed when the next attempt ends
	err   error         // the error of the last attempt, or slow
}

// New returns Attempts whose callers wait for at most patience. A caller that has waited that
// long gets an error that wraps [tick.ErrTimestampNotSaved] and says what has not answered, such
// as "the disk"; later callers get this error until the attempt ends. Each new result is passed
// to changed, with the previous one; changed must not use the Attempts.
func New(patience time.Duration, what string, changed func(before, now error)) *Attempts {
	slow := fmt.Errorf("%w: %s has not answered for %v", tick.ErrTimestampNotSaved, what, patience)
	return &Attempts{
		patience: patience, slow: slow, changed: changed,
		asked: make(chan struct{}, 1), round: make(chan struct{}),
	}
}

// Asked returns a channel that has a value when a caller waits for an attempt.
func (a *Attempts) Asked() <-chan struct{} { return a.asked }

// Slow returns the error that callers get when they have waited too long.
func (a *Attempts) Slow() error { return a.slow }

// Err returns the error of the last attempt, or Slow if the current attempt takes too long.
func (a *Attempts) Err() error {
	_, err := a.state()
	return err
}

func (a *Attempts) state() (round chan struct{}, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.round, a.err
}

// Settle records the result of an attempt and wakes the waiting callers.
func (a *Attempts) Settle(err error) {
	a.mu.Lock()
	before := a.err
	a.err = err
	close(a.round)
	a.round = make(chan struct{})
	a.mu.Unlock()
	a.changed(before, err)
}

// End records the result of the final attempt. It neither wakes callers nor calls changed.
func (a *Attempts) End(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
}

// Await asks for attempts until done returns true. It fails if the last attempt failed, with
// [tick.ErrClosed] when ended is closed, and with ctx's cause when ctx is done.
func (a *Attempts) Await(ctx context.Context, ended <-chan struct{}, done func() bool) error {
	patience := time.After(a.patience)
	for {
		round, err := a.state()
		// Call done after reading round, so that the end of the round is not missed.
		if done() {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case a.asked <- struct{}{}:
		default: // an attempt has already been asked for
		}
		select {
		case <-round:
		case <-ended:
			return tick.ErrClosed
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-patience:
			return a.late(ctx, ended, done, round)
		}
	}
}

// late returns the result of Await after patience has run out. On a busy machine the attempt
// may have ended before this goroutine could run, so late checks all conditions again.
func (a *Attempts) late(ctx context.Context, ended <-chan struct{}, done func() bool, round chan struct{}) error {
	select {
	case <-ended:
		return tick.ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	default:
	}
	if done() {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.round == round && a.err == nil {
		a.err = a.slow
		a.changed(nil, a.slow)
	}
	return cmp.Or(a.err, a.slow)
}
