package workers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flake-go/flake/flake/internal/tick"
)

// run steps each third of hold, and at once when it is asked to.
func (o *Owner) run(ctx context.Context) {
	defer close(o.stopped)
	for ctx.Err() == nil {
		next := o.Hold / 3
		if _, err := o.State(); err != nil {
			next = min(retry, o.sixth)
		}
		next -= time.Duration(o.Random() % uint64(next/8)) // not all nodes at a time
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		case <-o.kick:
		}
		o.Step(ctx)
	}
}

// State is when the store last answered as it should, and the trouble there has been
// with it since, or nil.
func (o *Owner) State() (time.Time, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.at, o.err
}

// settle notes what a step came to, and wakes those who await it.
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
	case c == nil, first: // Open tells
	case err != nil && before == nil:
		o.Log.Error("the mark of the worker id cannot be moved: ids go on to it, and then stop until it can", "err", err, "mark", show(c.Milli()))
	case err == nil && before != nil:
		o.Log.Info("the mark of the worker id is moved again", "mark", show(c.Milli()))
	}
}

// await asks for a step, until done says that all is well or a step has failed.
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
			return errSlow
		}
	}
}

var errSlow = fmt.Errorf("%w: the store of worker ids has not answered for %v", tick.ErrTimestampNotSaved, patience)

// Close gives the number back. No generator makes ids with it any more; last is the
// latest time of any id that they made, or 0 if that is not known, and then others wait
// for the mark. A node that cannot reach the store leaves it its number, until the mark.
func (o *Owner) Close(ctx context.Context, last uint64) error {
	if o.stop != nil {
		o.stop()
		<-o.stopped
	}
	var err error
	if c, _ := o.Claim(); c != nil && !c.isLost() {
		err = o.release(ctx, c, last)
	}
	if o.Memory != nil {
		err = errors.Join(err, o.Memory.Close())
	}
	return err
}

// asking is for how long the store is asked at a time.
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
