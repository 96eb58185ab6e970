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

// Options configure a [Generator]. The zero value is valid. The fields after Clock are used
// only by [Layout.Open].
type Options struct {
	// SequenceMask is flake-idgen's seqMask. Each sequence is the previous one plus 1, ANDed
	// with the mask; if the result is 0, the millisecond is used up. So a millisecond has 2^n
	// ids if the mask ends with n ones. 0 means all bits of the sequence; a mask with any other
	// bits is an error.
	SequenceMask int

	// If RandomStart is set, the sequence of each millisecond begins at a number that is hard
	// to predict instead of at 0, and wraps around. So the low bits of ids are evenly spread
	// even if few ids are made, but the ids of a millisecond do not sort in the order in which
	// they were made.
	RandomStart bool

	// Clock and the fields after it are like those of [flake.Options].
	Clock             func() uint64
	AllowableDowntime time.Duration
	Logger            *slog.Logger
	Saved             func(time.Duration)
	Marks             *flake.Marks
	Bound             flake.Bound
}

// Generator makes unique ids of one layout and machine, never ahead of its clock. Without
// [Options.RandomStart], each id is higher than the last. Any number of goroutines may use a
// Generator; it takes no locks and allocates nothing. On a zero Generator, Next and similar
// methods fail.
type Generator struct {
	ids  *tick.Generator
	base uint64 // added to time and sequence: the machine, less the epoch
	low  uint8  // number of bits below the time
	mask uint64 // mask for the sequence
	key  uint64 // key of the random starts, or 0

	layout  Layout
	machine Machine
	marker  *durable.Marker
}

// NewGenerator returns a generator that saves nothing: the caller must ensure that no earlier
// generator with this machine has made ids for the same time (otherwise use [Layout.Open]). A
// value out of range is an error, and so is a clock before the epoch or after [Layout.Last].
func (l Layout) NewGenerator(m Machine, o Options) (*Generator, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	if err := l.checkMachine(m); err != nil {
		return nil, err
	}
	all := 1<<l.Sequence - 1
	if o.SequenceMask < 0 || o.SequenceMask > all {
		return nil, fmt.Errorf("flake: seqMask %#x is out of range: must be 0 to %#x", o.SequenceMask, all)
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
		return nil, fmt.Errorf("flake: the epoch %s is ahead of the clock, %s; "+
			"set an earlier epoch, or correct the clock", tick.Text(l.Epoch), tick.Text(now))
	case now > l.Epoch+l.span():
		return nil, fmt.Errorf("flake: %d bits of time end at %s, before the clock, %d ms since 1970; "+
			"set more bits, or a later epoch",
			l.Time, l.Last().Format(time.RFC3339Nano), now)
	}
	g := &Generator{
		ids: ids, base: uint64(m)<<l.Sequence - l.Epoch<<l.low(), low: l.low(), mask: mask,
		layout: l, machine: m, marker: durable.New(ids),
	}
	if o.RandomStart {
		g.key = rand.Uint64() | 1
	}
	return g, nil
}

// Open returns a generator whose ids are unique across restarts: each has a later millisecond
// than all ids that earlier generators made with the same file, layout and machine. Close it
// when done. Open behaves like [flake.Open], and returns its errors and those of [Layout.NewGenerator].
func (l Layout) Open(ctx context.Context, path string, m Machine, o Options) (*Generator, error) {
	g, err := l.NewGenerator(m, o)
	if err != nil {
		return nil, err
	}
	if g.marker, err = durable.Open(ctx, path, g.ids, durable.Options{
		AllowableDowntime: o.AllowableDowntime, Logger: o.Logger, Saved: o.Saved, Marks: o.Marks, Bound: o.Bound,
	}); err != nil {
		return nil, err
	}
	return g, nil
}

// Close closes the generator, like [flake.Generator.Close].
func (g *Generator) Close() error { return g.marker.Close() }

// Next returns the next id. If the ids of a millisecond are used up, it waits for the next
// millisecond, yielding the processor; if ctx is done first, it returns ctx's cause. It fails
// with [flake.ErrClockBackwards] (but flake-idgen's error text) while the clock is behind the
// last id, or with [flake.ErrTimestampNotSaved] or [flake.ErrClosed].
func (g *Generator) Next(ctx context.Context) (ID, error) {
	milli, used, err := g.ids.One(ctx)
	if err != nil {
		return 0, g.explain(err)
	}
	return g.id(milli, used), nil
}

// TryNext is like [Generator.Next] but does not wait: it fails with [ErrSequence]
// instead of waiting for the next millisecond, and with [flake.ErrTimestampNotSaved]
// instead of waiting for the disk.
func (g *Generator) TryNext() (ID, error) {
	milli, used, _, err := g.ids.TryReserve(1)
	if err != nil {
		return 0, g.explain(err)
	}
	return g.id(milli, used), nil
}

// NextN fills dst with ids. It waits and fails like [Generator.Next], and returns the
// number of ids filled in, which is less than len(dst) only if it fails.
func (g *Generator) NextN(ctx context.Context, dst []ID) (int, error) {
	done := 0
	for done < len(dst) {
		milli, used, n, err := g.ids.Reserve(ctx, len(dst)-done)
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

// Reserve returns 1 to n ids of one millisecond, at the cost of a single id. It waits and fails
// like [Generator.Next], and also fails if n is less than 1. A run never wraps around: with
// [Options.RandomStart] it does not go past the highest sequence, and the reserved ids that
// would continue from 0 are lost.
func (g *Generator) Reserve(ctx context.Context, n int) (Run, error) {
	milli, used, count, err := g.ids.Reserve(ctx, n)
	if err != nil {
		return Run{}, g.explain(err)
	}
	first := g.id(milli, used)
	return Run{First: first, Count: min(count, int(ID(g.mask)-first&ID(g.mask))+1)}, nil
}

// CatchUp sleeps until the clock is no longer behind the last id, like [flake.Generator.CatchUp].
func (g *Generator) CatchUp(ctx context.Context) error { return g.marker.CatchUp(ctx) }

// Ready returns nil, or the error of Next or of the file, like [flake.Generator.Ready].
func (g *Generator) Ready() error { return g.explain(g.marker.Ready()) }

// Behind returns how far the clock is behind the last id, or 0, like [flake.Generator.Behind].
func (g *Generator) Behind() time.Duration { return g.marker.Behind() }

// Layout returns the layout of the generator's ids.
func (g *Generator) Layout() Layout { return g.layout }

// Machine returns the machine in the generator's ids.
func (g *Generator) Machine() Machine { return g.machine }

// PerTick returns the number of ids per millisecond.
func (g *Generator) PerTick() int { return g.ids.PerTick() }

// Waits returns the number of calls that waited because the ids of a millisecond were used up.
func (g *Generator) Waits() uint64 { return g.ids.Waits() }

// Last returns the time, in milliseconds since 1970-01-01 UTC, and the sequence of the
// last id.
func (g *Generator) Last() (milli uint64, sequence uint32) {
	milli, used := g.ids.Last()
	return milli, uint32(g.id(milli, max(used, 1)-1) & (1<<g.layout.Sequence - 1))
}

// Mark returns the mark in the file, like [flake.Generator.Mark].
func (g *Generator) Mark() time.Time { return g.marker.Mark() }

// LastSaved returns when the file was last written, like [flake.Generator.LastSaved].
func (g *Generator) LastSaved() (time.Time, error) { return g.marker.LastSaved() }

// id returns the next id of a millisecond, given the number of its ids already used.
func (g *Generator) id(milli uint64, used int) ID {
	sequence := uint64(used)
	if g.key != 0 {
		sequence = (sequence + g.start(milli)) & g.mask
	}
	return ID(milli<<(g.low&63) + g.base + sequence)
}

// start returns a number whose low bits are the sequence at which a millisecond begins. The
// number is a hash (splitmix64's finalizer) of the millisecond and the generator's key, so it is
// the same for all goroutines.
func (g *Generator) start(milli uint64) uint64 {
	h := milli ^ g.key
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// explain converts tick's errors to those of flake-idgen.
func (g *Generator) explain(err error) error {
	switch {
	case errors.Is(err, tick.ErrUsedUp):
		return ErrSequence
	case errors.Is(err, flake.ErrClockBackwards):
		return clockError(max(g.ids.Behind(), 1)) // the clock may just have caught up
	}
	return err
}

// Run is a run of consecutive ids: First and the Count-1 ids after it.
type Run = flake.RunOf[ID]

// ErrSequence means that the sequences of the millisecond are used up and the method does not
// wait. The error text is flake-idgen's.
const ErrSequence = words("Sequence exceeded its maximum value. Provide callback function to handle sequence overflow")

type words string

func (w words) Error() string { return string(w) }

// clockError is the number of ms until ids can be made again. Its error text is flake-idgen's.
type clockError uint64

func (e clockError) Error() string {
	return fmt.Sprintf("Clock moved backwards. Refusing to generate id for %d milliseconds", uint64(e))
}

func (clockError) Unwrap() error { return flake.ErrClockBackwards }
