package tick

import (
	"context"
	"sync/atomic"
)

// Limit is the time that no id may be later than. Once ids are made it only rises,
// but for [Generator.Lower].
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

// Lower takes the limit back to milli, unless there are ids that are later: the
// clock was ahead, and the limit with it, and nobody asked for ids meanwhile. One
// goroutine at a time may move the limit.
func (g *Generator) Lower(milli uint64) {
	before := g.limit.Milli()
	if before <= milli {
		return
	}
	g.limit.Set(milli)
	if !g.touch(milli) {
		g.limit.Set(before)
	}
}

// touch changes the word. Who has found that a time is not beyond the limit that
// was has still to swap the word it found before, and fails to. No id is later than
// milli then; else touch gives up, as where no id is left to be passed over.
func (g *Generator) touch(milli uint64) bool {
	for {
		old, now := g.word.Load(), g.clock()
		word := old + 1
		switch last := g.tick(old); {
		case old == closed || last > milli:
			return false
		case last < now && now <= milli:
			word = g.begin(now)
		case g.used(old) == g.per:
			return false
		}
		if g.word.CompareAndSwap(old, word) {
			return true
		}
	}
}
