// Package generators guarantees that the generators of a node never repeat an id, whatever their
// formats and wherever their numbers come from.
//
// For each number the intervals (after, mark] of its claims are disjoint, and each id's time is
// in the interval of its claim. [Set] holds all generators of a node, the file of their
// marks and, if configured, the number from a store. It opens the generators, moves them to
// another number, and closes them together.
//
//	clock ---------------------------------------------------------> time
//	        after               ids          mark on      mark in
//	          |                  |           the disk     the store
//	----------(==================|===========]------------]-------
//	          |                  |           |            |
//	          |                  |           |            no mark on the disk passes it
//	          |                  |           no id passes it; the next start begins above it
//	          |                  the latest id of all generators; a clean stop returns the number here
//	          the highest mark of the previous claim, the floor, and the disk
//
// A number may be lost to a claim that begins above this node's mark. Then the generators continue
// to use the number, up to that mark, while they wait for the next number. If a copy of this node
// has the number, or a restored store has assigned it again, the generators stop immediately.
//
// [Check] reports what the node would do if it started now, and changes nothing.
package generators

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/flake/internal/durable"
	"github.com/flake-go/flake/flake/internal/mark"
	"github.com/flake-go/flake/flake/internal/tick"
	"github.com/flake-go/flake/flake/workers"
)

const (
	closeTimeout = 5 * time.Second // limits Close's wait for the store to take back the number
	readTimeout  = 5 * time.Second // limits one attempt of Claim to read the store
	retryAfter   = time.Second     // the pause before Follow retries a failed Move, and Claim a failed read
)

// ErrMoving means that a generator has lost its number and does not have a new one yet.
var ErrMoving = fmt.Errorf("%w: the generator has lost its number, and does not have a new one yet",
	tick.ErrTimestampNotSaved)

// Config configures [Set].
type Config struct {
	Path  string        // path of the file of marks
	Log   *slog.Logger  // nil discards all records
	Clock func() uint64 // clock of the generators; nil means flake.SystemClock

	// Fits, if not nil, compares the generators with the numbers in the store, once the node has
	// claimed a number at startup. An error keeps the node from starting.
	Fits func(number uint64, all []workers.Entry) error

	// Numbers configures the number from a store; nil means that the node needs none. The
	// fields above replace its Clock and Log, and the file replaces a nil Memory.
	Numbers *workers.Config
}

// Opener opens a generator that keeps its mark in the file under the given name. bound is nil
// if the number does not come from the store.
type Opener[G io.Closer] func(ctx context.Context, name string, number uint64, bound durable.Bound) (G, error)

// Set holds the generators of a node. Close it when done.
type Set[G io.Closer] struct {
	marks   *durable.Marks
	numbers *workers.Config // nil if the node needs no number
	fits    func(number uint64, all []workers.Entry) error
	owner   *workers.Owner // nil before Claim
	clock   func() uint64
	sleep   tick.Sleeper
	log     *slog.Logger
	all     []*Generator[G] // the generators that use the number

	open   context.Context // done once Close has begun
	stop   context.CancelFunc
	follow sync.WaitGroup
}

// Open locks the file of marks. It fails if flake.OpenMarks would. If the node needs a number,
// call Claim next. Then call Add for each generator, and then Follow.
func Open[G io.Closer](c Config) (*Set[G], error) {
	marks, err := durable.OpenMarks(c.Path, c.Log)
	if err != nil {
		return nil, err
	}
	return newSet[G](marks, tick.Sleep, c), nil
}

// Claim claims a number and keeps it. It waits and fails like workers.Open. Then it calls
// Config.Fits.
func (s *Set[G]) Claim(ctx context.Context) (err error) {
	if s.owner, err = workers.Open(ctx, *s.numbers); err != nil {
		return err
	}
	return s.compare(ctx)
}

// compare reads the store, and calls Config.Fits.
func (s *Set[G]) compare(ctx context.Context) error {
	for s.fits != nil {
		reading, cancel := context.WithTimeout(ctx, readTimeout)
		all, err := workers.List(reading, s.numbers.Store, s.numbers.Prefix)
		cancel()
		switch claim, _ := s.owner.Claim(); {
		case err == nil:
			return s.fits(claim.Number(), all)
		case errors.Is(err, workers.ErrRefused):
			return err
		case s.sleep(ctx, retryAfter) != nil:
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
	return nil
}

// OpenOn is like [Open], but on a simulated machine. The caller must call Move and the owner's
// Step repeatedly, and move the marks ahead.
func OpenOn[G io.Closer](disk mark.Disk, sleep tick.Sleeper, linger int, c Config) (*Set[G], error) {
	marks, err := durable.OpenMarksOn(disk, sleep, c.Path, c.Log, linger)
	if err != nil {
		return nil, err
	}
	s := newSet[G](marks, sleep, c)
	if s.owner, err = workers.New(*s.numbers); err != nil {
		return nil, errors.Join(err, marks.Close())
	}
	return s, nil
}

func newSet[G io.Closer](marks *durable.Marks, sleep tick.Sleeper, c Config) *Set[G] {
	s := &Set[G]{marks: marks, fits: c.Fits, clock: c.Clock, sleep: sleep, log: c.Log}
	s.open, s.stop = context.WithCancel(context.Background())
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.clock == nil {
		s.clock = tick.SystemClock()
	}
	if c.Numbers != nil {
		n := *c.Numbers
		n.Clock, n.Log = s.clock, s.log
		if n.Memory == nil {
			n.Memory = marks
		}
		s.numbers = &n
	}
	return s
}

// Marks returns the file of marks, for the options of generators.
func (s *Set[G]) Marks() *durable.Marks { return s.marks }

// Clock returns the clock, for the options of generators.
func (s *Set[G]) Clock() func() uint64 { return s.clock }

// Owner returns the owner of the number, or nil before Claim and if the node needs no number.
func (s *Set[G]) Owner() *workers.Owner { return s.owner }

// Generator is one of the generators of a node. If it uses the number, Move may replace the
// generator that Get returns.
type Generator[G io.Closer] struct {
	set      *Set[G]
	name     string
	open     Opener[G]
	numbered bool
	now      atomic.Pointer[G]
	claim    *workers.Claim // its claim; nil if closed or unnumbered; used only by Add and Move
}

// Get returns the current generator.
func (g *Generator[G]) Get() G { return *g.now.Load() }

// Explain returns [ErrMoving] if err is from a generator that Move has closed, and err
// otherwise.
func (g *Generator[G]) Explain(err error) error {
	if g.numbered && errors.Is(err, tick.ErrClosed) && g.set.open.Err() == nil {
		return ErrMoving
	}
	return err
}

// Add opens a generator. If numbered is set, the generator uses the number from the store; if the node
// loses that while the generator waits to begin, it begins with the next.
func (s *Set[G]) Add(ctx context.Context, name string, numbered bool, open Opener[G]) (*Generator[G], error) {
	g := &Generator[G]{set: s, name: name, open: open, numbered: numbered}
	if !numbered {
		return g, g.begin(ctx, 0, nil)
	}
	for {
		claim, _ := s.owner.Claim()
		held, cancel := whileHeld(ctx, claim)
		err := g.begin(held, claim.Number(), claim)
		cancel()
		switch {
		case err == nil:
			g.claim, s.all = claim, append(s.all, g)
			return g, nil
		case !claim.IsLost() || ctx.Err() != nil || s.sleep(ctx, retryAfter) != nil: // until there is another
			return nil, err
		}
	}
}

// whileHeld returns a context that is also done when the claim is lost.
func whileHeld(ctx context.Context, claim *workers.Claim) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(claim.Lost(), cancel)
	return ctx, func() { stop(); cancel() }
}

func (g *Generator[G]) begin(ctx context.Context, number uint64, bound durable.Bound) error {
	ids, err := g.open(ctx, g.name, number, bound)
	if err == nil {
		g.now.Store(&ids)
	}
	return err
}

func (g *Generator[G]) end() {
	g.claim = nil
	if err := g.Get().Close(); err != nil {
		g.set.log.Warn("cannot close a generator that is moving to another number",
			"generator", cmp.Or(g.name, "flake"), "err", err)
	}
}

// Follow keeps moving numbered generators to the owner's current number, until Close.
func (s *Set[G]) Follow() {
	if s.owner == nil {
		return
	}
	s.follow.Go(func() {
		logged := "" // the last error of Move, which is tried once a second
		for s.open.Err() == nil {
			claim, changed := s.owner.Claim()
			lost := claim.Lost().Done()
			if claim.IsLost() {
				lost = nil // Move sees the loss
			}
			var retry <-chan time.Time
			err := s.Move(s.open)
			if err == nil {
				logged = ""
			} else if s.open.Err() == nil {
				if text := err.Error(); text != logged {
					s.log.Error("cannot move a generator to another number yet", "err", err)
					logged = text
				}
				retry = time.After(retryAfter)
			}
			select {
			case <-changed:
			case <-lost:
			case <-retry:
			case <-s.open.Done():
			}
		}
	})
}

// Move closes the generators whose number is lost, and opens them with the next number if the
// owner has one. A generator stays open until the next number can be used, unless another node
// may make ids up to the mark of the lost number. Call Move only on a Set from [OpenOn];
// on those from [Open], Follow calls it.
func (s *Set[G]) Move(ctx context.Context) error {
	claim, _ := s.owner.Claim()
	for _, g := range s.all {
		if c := g.claim; c != nil && c.IsLost() && !c.Clean() {
			g.end()
		}
	}
	if claim == nil || claim.IsLost() {
		return nil
	}
	ctx, cancel := whileHeld(ctx, claim)
	defer cancel()
	for _, g := range s.all {
		if g.claim == claim {
			continue
		}
		if g.claim != nil {
			lag := func() uint64 { now := s.clock(); return max(claim.After()+1, now) - now }
			if err := tick.Await(ctx, s.sleep, lag); err != nil {
				return err
			}
			g.end()
		}
		if err := g.begin(ctx, claim.Number(), claim); err != nil {
			return fmt.Errorf("generator %s: %w", cmp.Or(g.name, "flake"), err)
		}
		g.claim = claim
	}
	return nil
}

// Close closes all generators, saves the time of their latest id, and returns the number to the
// store with that time as its mark. It waits for the disk and the store; if either does not
// respond, the next start may have to wait.
func (s *Set[G]) Close() error {
	s.stop()
	s.follow.Wait()
	err := s.marks.Finish()
	if s.owner != nil {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		if err := s.owner.Close(ctx); err != nil {
			s.log.Warn("the number was not returned: no other node can claim it before its mark", "err", err)
		}
	}
	return errors.Join(err, s.marks.Close())
}
