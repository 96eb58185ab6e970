// Package attempt lets callers await attempts at something that one goroutine makes, one
// after another, such as a write to a disk or a request to a store. See [Attempts].
package attempt

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/flake-go/flake/flake/internal/tick"
)

// Attempts are made by one goroutine, which reports each with [Attempts.Settle], at
// times of its own and when [Attempts.Asked]. Any number of others call [Attempts.Await].
type Attempts struct {
	patience time.Duration
	slow     error
	changed  func(before, now error)
	asked    chan struct{}

	mu    sync.Mutex
	round chan struct{} // closed when the next attempt ends
	err   error         // of the last one, or slow
}

// New returns attempts that nobody is kept waiting for longer than patience: who is, gets
// an error that wraps [tick.ErrTimestampNotSaved] and names what is slow, and so does who
// comes before the attempt has ended. Changed is called with each result and the one before,
// and must not call the attempts.
func New(patience time.Duration, what string, changed func(before, now error)) *Attempts {
	slow := fmt.Errorf("%w: %s has not answered for %v", tick.ErrTimestampNotSaved, what, patience)
	return &Attempts{
		patience: patience, slow: slow, changed: changed,
		asked: make(chan struct{}, 1), round: make(chan struct{}),
	}
}

// Asked receives when an attempt is awaited.
func (a *Attempts) Asked() <-chan struct{} { return a.asked }

// Slow is the error of a caller whose patience has ended.
func (a *Attempts) Slow() error { return a.slow }

// Err returns the error of the last attempt, or Slow if one under way takes too long.
func (a *Attempts) Err() error {
	_, err := a.state()
	return err
}

func (a *Attempts) state() (round chan struct{}, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.round, a.err
}

// Settle records the result of an attempt, and wakes those who await it.
func (a *Attempts) Settle(err error) {
	a.mu.Lock()
	before := a.err
	a.err = err
	close(a.round)
	a.round = make(chan struct{})
	a.mu.Unlock()
	a.changed(before, err)
}

// End records the result of the very last attempt. Nobody is woken or told.
func (a *Attempts) End(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
}

// Await asks for attempts until done returns true. It fails at once if the last attempt
// failed, if ended is closed, with [tick.ErrClosed], and with the cause of ctx.
func (a *Attempts) Await(ctx context.Context, ended <-chan struct{}, done func() bool) error {
	patience := time.After(a.patience)
	for {
		round, err := a.state()
		// Looked at after the round, so that its end cannot be missed.
		if done() {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case a.asked <- struct{}{}:
		default: // already asked for
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

// late is what Await returns when its patience ends. What has happened by then counts,
// though on a busy machine this goroutine may be the last to hear of it.
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
