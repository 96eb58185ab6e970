package workers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flake-go/flake/flake/internal/tick"
)

// run steps every third of hold, and at once when asked to.
func (o *Owner) run(ctx context.Context) {
	defer close(o.stopped)
	for ctx.Err() == nil {
		next := o.Hold / 3
		if _, err := o.State(); err != nil {
			next = o.pause(err)
		}
		next -= time.Duration(o.Random() % uint64(next/8)) // not all nodes at a time
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		case <-o.kick:
		}
		if ctx.Err() == nil { // else the step fails, and is told of as trouble
			o.Step(ctx)
		}
	}
}

// pause returns how long to wait after a step that failed. While all numbers are taken the
// whole table is read each time.
func (o *Owner) pause(err error) time.Duration {
	if errors.Is(err, ErrNoneFree) {
		return min(10*retry, o.sixth)
	}
	return min(retry, o.sixth)
}

// State returns when the last good step was, and the error of the last step, or nil.
func (o *Owner) State() (time.Time, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.at, o.err
}

// settle records the result of a step, and wakes those who await it.
func (o *Owner) settle(err error) {
	o.mu.Lock()
	before, c, first := o.err, o.claim, o.at.IsZero()
	if o.err = err; err == nil {
		o.at = time.Now()
	}
	close(o.round)
	o.round = make(chan struct{})
	o.mu.Unlock()
	switch {
	case c == nil, first: // Open returns or logs it
	case err != nil && before == nil:
		o.Log.Error("the mark of the worker id cannot be moved: ids go on to it, and then stop until it can", "err", err, "mark", show(c.Milli()))
	case err == nil && before != nil:
		o.Log.Info("the mark of the worker id is moved again", "mark", show(c.Milli()))
	}
}

// await asks for steps until done returns true or a step fails.
func (o *Owner) await(ctx context.Context, done func() bool) error {
	tooLong := time.After(min(patience, o.sixth))
	for {
		o.mu.Lock()
		round, err := o.round, o.err
		o.mu.Unlock()
		// Looked at after the round, so that its end cannot be missed.
		if done() {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %w", tick.ErrTimestampNotSaved, err)
		}
		select {
		case o.kick <- struct{}{}:
		default: // already asked for
		}
		select {
		case <-round:
		case <-o.stopped:
			return tick.ErrClosed
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tooLong:
			// What has happened by now counts, though on a busy machine this goroutine
			// may be the last to hear of it.
			switch {
			case done():
				return nil
			case ctx.Err() != nil:
				return context.Cause(ctx)
			}
			return fmt.Errorf("%w: the store of worker ids has not answered for %v", tick.ErrTimestampNotSaved, min(patience, o.sixth))
		}
	}
}

// Close gives the number back, which no generator may use any more: all that kept their
// marks in the memory have ended. Others may have it at once, with ids later than the latest
// that the memory knows of; without a memory, or if the store does not answer, they wait
// for the mark.
func (o *Owner) Close(ctx context.Context) error {
	if o.stop != nil {
		o.stop()
		<-o.stopped
	}
	if c, _ := o.Claim(); c != nil && !c.isLost() {
		return o.release(ctx, c)
	}
	return nil
}

// asking returns a context for one request to the store.
func (o *Owner) asking(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, min(patience, o.sixth))
}

func (o *Owner) read(ctx context.Context) (table, error) {
	ctx, cancel := o.asking(ctx)
	defer cancel()
	return read(ctx, o.Store, keys{o.Prefix})
}

func (o *Owner) get(ctx context.Context, keys ...string) ([]string, error) {
	ctx, cancel := o.asking(ctx)
	defer cancel()
	return o.Store.Get(ctx, keys...)
}

func (o *Owner) swap(ctx context.Context, have map[string]string, key, value string) (bool, error) {
	ctx, cancel := o.asking(ctx)
	defer cancel()
	return o.Store.Swap(ctx, have, key, value)
}
