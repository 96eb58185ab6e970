package workers

import (
	"context"
	"errors"
	"time"
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
		case <-o.steps.Asked():
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
	at := o.at
	o.mu.Unlock()
	return at, o.steps.Err()
}

// settle records the result of a step.
func (o *Owner) settle(err error) {
	o.steps.Settle(err)
	if err == nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.at, o.good = time.Now(), o.Clock()
	}
}

// tell tells of a step, but not until one was good: Open does that.
func (o *Owner) tell(before, err error) {
	o.mu.Lock()
	c, first := o.claim, o.at.IsZero()
	o.mu.Unlock()
	switch {
	case c == nil, first:
	case err != nil && before == nil:
		o.Log.Error("the mark of the worker id cannot be moved: ids go on to it, and then stop until it can", "err", err, "mark", show(c.Milli()))
	case err == nil && before != nil:
		o.Log.Info("the mark of the worker id is moved again", "mark", show(c.Milli()))
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
