package tick

import (
	"context"
	"sync/atomic"
)

// Limit is the time that no id may be later than. It only rises once ids are made.
type Limit struct {
	milli atomic.Uint64
	last  uint64

	// Extend is asked by a generator to raise the limit to a time, until ctx is
	// done; nil: it stays. It is set before the generator is used.
	Extend func(ctx context.Context, milli uint64) error
}

func newLimit(last uint64) *Limit {
	l := &Limit{last: last}
	l.milli.Store(last)
	return l
}

// Milli is the limit as it stands.
func (l *Limit) Milli() uint64 { return l.milli.Load() }

// Last is the highest that it can be: the last tick that fits the format.
func (l *Limit) Last() uint64 { return l.last }

// Set moves the limit, to Last at most.
func (l *Limit) Set(milli uint64) { l.milli.Store(min(milli, l.last)) }
