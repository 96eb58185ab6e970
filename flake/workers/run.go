package workers

import (
	"context"
	"errors"
	"time"
)

// run calls Step three times per hold, and immediately when a caller needs a later mark.
func (o *Owner) run(ctx context.Context) {
	defer close(o.stopped)
	for ctx.Err() == nil {
		next := o.Hold / 3
		if _, err := o.State(); err != nil {
			next = o.pause(err)
		}
		next -= time.Duration(o.Random() % uint64(next/8)) // so that nodes do not all write at the same time
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		case <-o.steps.Asked():
		}
		if ctx.Err() == nil { // otherwise the step would fail and log an error
			o.Step(ctx)
		}
	}
}

// pause returns how long to wait after a failed step. The wait is longer while all numbers are
// taken, because each step then reads the whole table.
func (o *Owner) pause(err error) time.Duration {
	if errors.Is(err, ErrNoneFree) {
		return min(10*retry, o.sixth)
	}
	return min(retry, o.sixth)
}

// State returns when a step last succeeded, and the error of the last step, or nil.
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

// report logs the result of a step if it differs from the previous step's result. Until the
// first success, Open does the logging instead.
func (o *Owner) report(before, err error) {
	o.mu.Lock()
	c, first := o.claim, o.at.IsZero()
	o.mu.Unlock()
	switch {
	case c == nil, first:
	case err != nil && before == nil:
		o.Log.Error("cannot extend the worker id: ids can be made up to the mark, then stop until it is extended",
			"err", err, "mark", show(c.Milli()))
	case err == nil && before != nil:
		o.Log.Info("the worker id is extended again", "mark", show(c.Milli()))
	}
}

// Close returns the number to the store. Call it only after all generators that keep their marks
// in the Memory are closed. Another node can then claim the number immediately, for ids later
// than Memory.Latest; without a Memory, or if the store does not respond, it can do so only
// after the mark has passed.
func (o *Owner) Close(ctx context.Context) error {
	if o.stop != nil {
		o.stop()
		<-o.stopped
	}
	if c, _ := o.Claim(); c != nil && !c.IsLost() {
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
