package snowflake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"math/rand/v2"
	"time"

	"github.com/flake-go/flake/flake/internal/tick"
)

// Clock gives the time in milliseconds since 1970-01-01 UTC. It is called by
// many goroutines at once.
type Clock = func() uint64

// Options are what a generator can do without. The zero value is fit for use.
type Options struct {
	// SequenceMask is flake-idgen's seqMask: each sequence is the one before
	// plus 1, under the mask, and at 0 the millisecond is used up. So it has
	// 2^n ids, n being the ones that the mask ends with. 0 means all bits of
	// the sequence; more than those is an error.
	SequenceMask int

	// RandomStart begins each millisecond at a sequence that is hard to tell
	// beforehand instead of at 0, and goes round from there, so that the low
	// bits of ids spread though few are made. Ids of one millisecond then do
	// not sort as they were made.
	RandomStart bool

	// Clock is the clock; nil means that of the machine, as flake.SystemClock
	// gives it.
	Clock Clock

	// AllowableDowntime, of [Open] alone, is how long ids may not have been
	// made before a start is refused with [ErrClockAdvanced]. 0 means 30 days;
	// below 0 is an error.
	AllowableDowntime time.Duration

	// Logger, of [Open] alone, is told of a new file, a wait, and trouble with
	// the file and its end; nil means nobody is.
	Logger *slog.Logger

	// Saved, of [Open] alone, is told how long each attempt to write the file
	// took; nil means nobody is.
	Saved func(time.Duration)
}

// Generator hands out ids of one layout and machine, never one twice, never
// ahead of its clock. Without [Options.RandomStart] each is higher than the
// last. Any number of goroutines may use one; it takes no locks and allocates
// nothing. The zero value has no ids: Next and the like fail.
type Generator struct {
	core *tick.Generator
	base uint64 // what an id has besides time and sequence: the machine, less the epoch
	mask uint64 // of the sequences that are used
	key  uint64 // of the random starts; 0: they are at 0

	layout  Layout
	machine Machine
	number  int
}

// NewGenerator gives a generator that starts from nothing: that no earlier one
// of this machine has handed out ids of this time is the caller's to know (or
// use [Open]). Whatever is out of range is an error, and an epoch ahead of the
// clock is.
func NewGenerator(l Layout, m Machine, o Options) (*Generator, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	number, err := m.number(l)
	if err != nil {
		return nil, err
	}
	all := 1<<l.Sequence - 1
	if o.SequenceMask < 0 || o.SequenceMask > all {
		return nil, fmt.Errorf("flake: seqMask %#x, where 0 to %#x fit", o.SequenceMask, all)
	}
	if o.SequenceMask == 0 {
		o.SequenceMask = all
	}
	mask := uint64(1)<<bits.TrailingZeros(^uint(o.SequenceMask)) - 1
	core, err := tick.New(tick.Shape{First: l.Epoch, Last: l.Epoch + l.span(), Unit: 1, PerTick: int(mask) + 1}, o.Clock)
	if err != nil {
		return nil, err
	}
	if now := core.Now(); now < l.Epoch {
		return nil, fmt.Errorf("flake: an epoch at %d ms since 1970, ahead of the clock, which gives %d", l.Epoch, now)
	}
	g := &Generator{core: core, base: uint64(number)<<l.Sequence - l.Epoch<<low, mask: mask, layout: l, machine: m, number: number}
	if o.RandomStart {
		g.key = rand.Uint64() | 1
	}
	return g, nil
}

// Layout is that of every id of the generator.
func (g *Generator) Layout() Layout { return g.layout }

// Machine is the machine of every id, as it was given.
func (g *Generator) Machine() Machine { return g.machine }

// MachineID is the machine of every id as one number.
func (g *Generator) MachineID() int { return g.number }

// Last gives the last millisecond of which ids were handed out, and how many: no
// later id was.
func (g *Generator) Last() (milli uint64, used int) { return g.core.Last() }

// PerTick is how many ids there are a millisecond.
func (g *Generator) PerTick() int { return g.core.PerTick() }

// Ready tells whether there are ids now. If not it fails as [Generator.Next]
// would.
func (g *Generator) Ready() error { return g.explain(g.core.Ready()) }

// Behind is how far the clock is behind the last id: how long it takes at least
// until there are ids again. 0: it is not.
func (g *Generator) Behind() time.Duration {
	return tick.Milliseconds(g.core.Behind())
}

// Waits is how often a call found the ids of a millisecond used up, and waited.
func (g *Generator) Waits() uint64 { return g.core.Waits() }

// Next gives the next id. When those of a millisecond are used it waits for the
// next one, yielding the processor. It fails with a [*ClockError] while the clock
// is behind the last id, [ErrTimestampNotSaved] or [ErrClosed].
func (g *Generator) Next() (ID, error) {
	milli, used, err := g.core.One()
	if err != nil {
		return 0, g.explain(err)
	}
	return g.id(milli, used), nil
}

// TryNext is [Generator.Next] that does not wait, but fails: with [ErrSequence]
// for the next millisecond, with [ErrTimestampNotSaved] for the disk.
func (g *Generator) TryNext() (ID, error) {
	milli, used, _, err := g.core.TryReserve(1)
	if err != nil {
		return 0, g.explain(err)
	}
	return g.id(milli, used), nil
}

// Wait is [Generator.Next] that also waits for a clock that is behind, asleep,
// until ctx is done.
func (g *Generator) Wait(ctx context.Context) (ID, error) {
	for {
		milli, used, _, err := g.core.Reserve(ctx, 1)
		if errors.Is(err, ErrClockBackwards) {
			if err = g.core.CatchUp(ctx, tick.Sleep); err == nil {
				continue
			}
		}
		if err != nil {
			return 0, err
		}
		return g.id(milli, used), nil
	}
}

// NextN fills dst with ids, a whole range at a time, waiting as [Generator.Next]
// does. It gives the number of ids filled in: less than len(dst) only with an
// error.
func (g *Generator) NextN(dst []ID) (int, error) { return g.NextContext(context.Background(), dst) }

// NextContext is [Generator.NextN] that gives up waiting once ctx is done, with
// its error.
func (g *Generator) NextContext(ctx context.Context, dst []ID) (int, error) {
	done := 0
	for done < len(dst) {
		run, err := g.Reserve(ctx, len(dst)-done)
		if err != nil {
			return done, err
		}
		for i := range run.Count {
			dst[done+i] = run.At(i)
		}
		done += run.Count
	}
	return done, nil
}

// Reserve takes up to n ids of one millisecond, n at least 1, at the price of
// one. It waits as [Generator.Next] does, until ctx is done, and fails as it
// does.
func (g *Generator) Reserve(ctx context.Context, n int) (Run, error) {
	if n < 1 {
		return Run{}, fmt.Errorf("flake: %d ids cannot be reserved, only 1 or more", n)
	}
	milli, used, count, err := g.core.Reserve(ctx, n)
	if err != nil {
		return Run{}, g.explain(err)
	}
	return Run{g.id(milli, used), count, ID(g.mask)}, nil
}

// id gives the id of a millisecond that so many were made of before.
func (g *Generator) id(milli uint64, used int) ID {
	sequence := uint64(used)
	if g.key != 0 {
		sequence = (sequence + g.start(milli)) & g.mask
	}
	return ID(milli<<low + g.base + sequence)
}

// start gives the sequence that a millisecond begins with: a hash of it under
// the generator's key, so that all goroutines come to the same (the finalizer of
// splitmix64).
func (g *Generator) start(milli uint64) uint64 {
	h := milli ^ g.key
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// explain puts the core's errors into flake-idgen's words.
func (g *Generator) explain(err error) error {
	switch {
	case errors.Is(err, tick.ErrUsedUp):
		return ErrSequence
	case errors.Is(err, ErrClockBackwards):
		return &ClockError{max(g.core.Behind(), 1)} // it may just have caught up
	}
	return err
}

// Run is ids that follow each other by sequence: First and the Count-1 after it.
// After the highest sequence comes 0, if starts are random.
type Run struct {
	First ID
	Count int
	mask  ID
}

// At gives the id at place i, 0 <= i < Count.
func (r Run) At(i int) ID { return r.First&^r.mask | (r.First+ID(i))&r.mask }
