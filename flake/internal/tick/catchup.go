package tick

import (
	"context"
	"math"
	"time"
)

// maxNap is how long is slept at once: the clock may be set right meanwhile, or
// the generator closed.
const maxNap = 100 * time.Millisecond

// Behind is how far the clock is behind the last id, in ms; 0: it is not.
func (g *Generator) Behind() uint64 {
	if g == nil {
		return 0
	}
	last := g.word.Load()
	if last == closed {
		return 0
	}
	now := g.clock()
	return max(g.tick(last), now) - now
}

// Milliseconds returns n ms as a duration, at most the longest there is.
func Milliseconds(n uint64) time.Duration {
	return time.Duration(min(n, math.MaxInt64/uint64(time.Millisecond))) * time.Millisecond
}

// Await sleeps until the clock has made up for the ms that it is behind, or until
// ctx is done, which is an error with its cause.
func Await(ctx context.Context, sleep Sleeper, lag func() uint64) error {
	for behind := lag(); behind > 0; behind = lag() {
		nap := min(behind, uint64(maxNap/time.Millisecond))
		if err := sleep(ctx, time.Duration(nap)*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// Sleeper lets time pass, or returns the cause of ctx. [Sleep] is the real one.
type Sleeper func(ctx context.Context, d time.Duration) error

// Sleep implements [Sleeper].
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
