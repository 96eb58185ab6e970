package snowflake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"math/rand/v2"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/internal/durable"
	"github.com/flake-go/flake/flake/internal/tick"
)

// Options configure a [Generator]. The zero value is valid.
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

	// Clock returns the time in milliseconds since 1970-01-01 UTC. Many goroutines
	// call it at once. nil means [flake.SystemClock].
	Clock func() uint64

	// AllowableDowntime, of [Layout.Open] alone, is how long ids may not have been
	// made before a start is refused with [flake.ErrClockAdvanced], for the clock
	// may be wrong. 0 means 30 days; below 0 is an error.
	AllowableDowntime time.Duration

	// Logger, of [Layout.Open] alone, is told of a new file, a wait, and trouble
	// with the file and its end; nil means nobody is.
	Logger *slog.Logger

	// Saved, of [Layout.Open] alone, is told how long each attempt to write the
	// file took; nil means nobody is.
	Saved func(time.Duration)

	// Marks, of [Open] alone, is the file of [flake.OpenMarks] that keeps the mark beside
	// others, under path as its name, without space or slash; nil means a file of its own.
	Marks *flake.Marks

	// Bound, of [Layout.Open] alone, is a further limit on the ids: see [flake.Options].
	Bound flake.Bound
}

// Generator hands out ids of one layout and machine, never one twice, never
// ahead of its clock. Without [Options.RandomStart] each is higher than the
// last. Any number of goroutines may use one; it takes no locks and allocates
// nothing. The zero value has no ids: Next and the like fail.
type Generator struct {
	core durable.Core[*tick.Generator]
	base uint64 // what an id has besides time and sequence: the machine, less the epoch
	low  uint8  // how many bits there are below the time
	mask uint64 // of the sequences that are used
	key  uint64 // of the random starts; 0: they are at 0

	layout  Layout
	machine Machine
}

// NewGenerator returns a generator that starts from nothing and keeps nothing: that
// no earlier one of this machine has handed out ids of this time is the caller's to
// know (or use [Layout.Open]). Whatever is out of range is an error, and so is a clock
// that is before the epoch or beyond [Layout.Last].
func (l Layout) NewGenerator(m Machine, o Options) (*Generator, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	if err := l.checkMachine(m); err != nil {
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
	ids, err := tick.New(tick.Shape{First: l.Epoch, Last: l.Epoch + l.span(), Unit: 1, PerTick: int(mask) + 1}, o.Clock)
	if err != nil {
		return nil, err
	}
	switch now := ids.Now(); {
	case now < l.Epoch:
		return nil, fmt.Errorf("flake: the epoch %s is ahead of the clock, which says %s; set an earlier one, or the clock right",
			inWords(l.Epoch), inWords(now))
	case now > l.Epoch+l.span():
		return nil, fmt.Errorf("flake: %d bits of time end at %s, and the clock gives %d ms since 1970; give it more bits, or a later epoch",
			l.Time, l.Last().Format(time.RFC3339Nano), now)
	}
	g := &Generator{
		core: durable.Core[*tick.Generator]{Source: ids}, base: uint64(m)<<l.Sequence - l.Epoch<<l.low(),
		low: l.low(), mask: mask, layout: l, machine: m,
	}
	if o.RandomStart {
		g.key = rand.Uint64() | 1
	}
	return g, nil
}

// Open returns a generator that keeps its promise across restarts: no id it hands
// out was handed out before by one on the same file, layout and machine, and each
// is of a later millisecond than those. Close it when done.
//
// It locks the file at path, which it creates if there is none, and hands out only
// ids later than the mark in it. The mark is kept 3 s ahead of the clock, so after a
// crash Open may wait for as long; ctx can end the wait.
//
// It fails as [Layout.NewGenerator] does; with [flake.ErrClockBackwards] if the
// mark is further ahead of the clock, [flake.ErrClockAdvanced] if it is older than
// the allowable downtime, and otherwise if the file is locked, is no mark, is
// damaged, or cannot be written; the text says what to do. It never starts anew
// where a file was.
func (l Layout) Open(ctx context.Context, path string, m Machine, o Options) (*Generator, error) {
	g, err := l.NewGenerator(m, o)
	if err != nil {
		return nil, err
	}
	err = g.core.Open(ctx, path, durable.Options{
		AllowableDowntime: o.AllowableDowntime, Logger: o.Logger, Saved: o.Saved, Marks: o.Marks, Bound: o.Bound,
	})
	if err != nil {
		return nil, err
	}
	return g, nil
}

// Close ends the generator: calls under way and later fail with [flake.ErrClosed].
// One that [Layout.Open] returned brings the mark back from ahead of the clock, so
// that the next start need not wait, and gives up the lock. Close waits for the
// disk; if it cannot write, the next start waits instead. A second Close returns
// what the first did.
func (g *Generator) Close() error { return g.core.Close() }

// Next returns the next id. When those of a millisecond are used it waits for the
// next one, yielding the processor, until ctx is done; that is an error with its
// cause. It fails with [flake.ErrClockBackwards] while the clock is behind the last
// id, in the words of flake-idgen, [flake.ErrTimestampNotSaved] or [flake.ErrClosed].
func (g *Generator) Next(ctx context.Context) (ID, error) {
	milli, used, err := g.core.Source.One(ctx)
	if err != nil {
		return 0, g.explain(err)
	}
	return g.id(milli, used), nil
}

// TryNext is [Generator.Next] that does not wait, but fails: with [ErrSequence]
// for the next millisecond, with [flake.ErrTimestampNotSaved] for the disk.
func (g *Generator) TryNext() (ID, error) {
	milli, used, _, err := g.core.Source.TryReserve(1)
	if err != nil {
		return 0, g.explain(err)
	}
	return g.id(milli, used), nil
}

// NextN fills dst with ids, a whole range at a time, waiting and failing as
// [Generator.Next] does. It returns the number of ids filled in: less than len(dst)
// only with an error.
func (g *Generator) NextN(ctx context.Context, dst []ID) (int, error) {
	done := 0
	for done < len(dst) {
		milli, used, n, err := g.core.Source.Reserve(ctx, len(dst)-done)
		if err != nil {
			return done, g.explain(err)
		}
		first := g.id(milli, used)
		for i := range ID(n) {
			dst[done+int(i)] = first&^ID(g.mask) | (first+i)&ID(g.mask)
		}
		done += n
	}
	return done, nil
}

// Reserve takes up to n ids of one millisecond, n at least 1, at the price of
// one. It waits and fails as [Generator.Next] does. With [Options.RandomStart] a run
// ends with the highest sequence, and those that would go on from 0 are given up.
func (g *Generator) Reserve(ctx context.Context, n int) (Run, error) {
	if n < 1 {
		return Run{}, fmt.Errorf("flake: %d ids cannot be reserved, only 1 or more", n)
	}
	milli, used, count, err := g.core.Source.Reserve(ctx, n)
	if err != nil {
		return Run{}, g.explain(err)
	}
	first := g.id(milli, used)
	return Run{First: first, Count: min(count, int(ID(g.mask)-first&ID(g.mask))+1)}, nil
}

// CatchUp waits, asleep, until the clock is no longer behind: what to do after
// [flake.ErrClockBackwards]. It fails with the cause of ctx when that is done first.
func (g *Generator) CatchUp(ctx context.Context) error { return g.core.CatchUp(ctx) }

// Ready returns nil if there are ids now, and the file, if there is one, can be
// written, without which there soon are none. Otherwise it fails as Next would, or
// says what the trouble with the file is.
func (g *Generator) Ready() error { return g.explain(g.core.Ready()) }

// Behind is how far the clock is behind the last id: how long it takes at least
// until there are ids again. 0: it is not.
func (g *Generator) Behind() time.Duration { return g.core.Behind() }

// Layout is that of every id of the generator.
func (g *Generator) Layout() Layout { return g.layout }

// Machine is the machine of every id of the generator.
func (g *Generator) Machine() Machine { return g.machine }

// PerTick is how many ids there are a millisecond.
func (g *Generator) PerTick() int { return g.core.Source.PerTick() }

// Waits is how often a call found the ids of a millisecond used up, and waited.
func (g *Generator) Waits() uint64 { return g.core.Source.Waits() }

// Last is the time, in milliseconds since 1970-01-01 UTC, and the sequence of the
// last id that is used up: no later one was handed out.
func (g *Generator) Last() (milli uint64, sequence uint32) {
	milli, used := g.core.Source.Last()
	return milli, uint32(g.id(milli, max(used, 1)-1) & (1<<g.layout.Sequence - 1))
}

// Mark is the time that no id is later than, as it stands in the file; the zero time
// without a file.
func (g *Generator) Mark() time.Time { return g.core.Mark() }

// LastSaved is the time at which the file was last written, and the trouble there
// has been with it since, or nil. It is the zero time without a file.
func (g *Generator) LastSaved() (time.Time, error) { return g.core.LastSaved() }

// id returns the id of a millisecond that so many were made of before.
func (g *Generator) id(milli uint64, used int) ID {
	sequence := uint64(used)
	if g.key != 0 {
		sequence = (sequence + g.start(milli)) & g.mask
	}
	return ID(milli<<(g.low&63) + g.base + sequence)
}

// start returns the sequence that a millisecond begins with: a hash of it under
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
	case errors.Is(err, flake.ErrClockBackwards):
		return clockError(max(g.core.Source.Behind(), 1)) // it may just have caught up
	}
	return err
}

// Run is ids that follow each other by sequence: First and the Count-1 after it.
type Run = flake.RunOf[ID]

// ErrSequence: the sequences of the millisecond are used up, and the caller did
// not want to wait. The words are flake-idgen's.
const ErrSequence = words("Sequence exceeded its maximum value. Provide callback function to handle sequence overflow")

type words string

func (w words) Error() string { return string(w) }

// clockError is in how many ms there are ids again, in the words of flake-idgen.
type clockError uint64

func (e clockError) Error() string {
	return fmt.Sprintf("Clock moved backwards. Refusing to generate id for %d milliseconds", uint64(e))
}

func (clockError) Unwrap() error { return flake.ErrClockBackwards }
