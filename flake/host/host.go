package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/flake/internal/durable"
	"github.com/flake-go/flake/flake/internal/mark"
	"github.com/flake-go/flake/flake/internal/tick"
	"github.com/flake-go/flake/flake/workers"
)

const (
	// giveBack is how long a Close waits for the store.
	giveBack = 5 * time.Second

	// again is how soon a generator that could not be opened is tried again.
	again = time.Second
)

// ErrMoving means that a generator has no number: its own is another's by now.
var ErrMoving = fmt.Errorf("%w: its number is another's by now, and it has no other yet", tick.ErrTimestampNotSaved)

// Config is what [Generators] are made of.
type Config struct {
	Path  string        // of the file of marks
	Log   *slog.Logger  // nil: nobody is told
	Clock func() uint64 // of the generators; nil: flake.SystemClock

	// Numbers says where the number is from; nil: none is wanted. Clock and Log are the ones
	// here, and a Memory that is nil is the file.
	Numbers *workers.Config
}

// Opener opens a generator that keeps its mark in the file, under a name. One that has
// a number of the store has a bound too.
type Opener[G io.Closer] func(ctx context.Context, name string, number uint64, bound durable.Bound) (G, error)

// Generators are those of a node. Close them when done.
type Generators[G io.Closer] struct {
	marks   *durable.Marks
	numbers *workers.Config // nil: no number is wanted
	owner   *workers.Owner  // nil: there is none yet
	clock   func() uint64
	sleep   tick.Sleeper
	log     *slog.Logger
	all     []*Generator[G] // that have the number

	closing atomic.Bool
	stop    context.CancelFunc
	stopped chan struct{} // nil: nothing follows the number
}

// Open locks the file of marks, as flake.OpenMarks does. Call Claim next, if a number is
// wanted, then Add for each generator, then Follow.
func Open[G io.Closer](c Config) (*Generators[G], error) {
	marks, err := durable.OpenMarks(c.Path, c.Log)
	if err != nil {
		return nil, err
	}
	return newGenerators[G](marks, tick.Sleep, c), nil
}

// Claim claims a number and keeps it. It waits and fails as workers.Open does.
func (s *Generators[G]) Claim(ctx context.Context) (err error) {
	s.owner, err = workers.Open(ctx, *s.numbers)
	return err
}

// OpenOn is [Open] on a machine that is simulated, without a number yet: the caller calls
// Step and Move again and again, and keeps the marks ahead.
func OpenOn[G io.Closer](disk mark.Disk, sleep tick.Sleeper, linger int, c Config) (*Generators[G], error) {
	marks, err := durable.OpenMarksOn(disk, c.Path, c.Log, linger)
	if err != nil {
		return nil, err
	}
	s := newGenerators[G](marks, sleep, c)
	if s.owner, err = workers.New(*s.numbers); err != nil {
		return nil, errors.Join(err, marks.Close())
	}
	return s, nil
}

func newGenerators[G io.Closer](marks *durable.Marks, sleep tick.Sleeper, c Config) *Generators[G] {
	s := &Generators[G]{marks: marks, clock: c.Clock, sleep: sleep, log: c.Log}
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

// Marks is the file, for options of generators.
func (s *Generators[G]) Marks() *durable.Marks { return s.marks }

// Clock is that of the generators, for options of theirs.
func (s *Generators[G]) Clock() func() uint64 { return s.clock }

// Owner has the number; nil: there is none.
func (s *Generators[G]) Owner() *workers.Owner { return s.owner }

// Generator is one of several. Its number is another at times.
type Generator[G io.Closer] struct {
	set      *Generators[G]
	name     string
	open     Opener[G]
	numbered bool
	now      atomic.Pointer[G]

	// Of whoever moves it.
	claim *workers.Claim
	ended bool // it makes no more ids with the claim
}

// Get returns the generator as it is now.
func (g *Generator[G]) Get() G { return *g.now.Load() }

// Explain returns [ErrMoving] for the error of a generator that was closed by a move.
func (g *Generator[G]) Explain(err error) error {
	if g.numbered && errors.Is(err, tick.ErrClosed) && !g.set.closing.Load() {
		return ErrMoving
	}
	return err
}

// Add opens a generator, with the number of the store if it is to be numbered.
func (s *Generators[G]) Add(ctx context.Context, name string, numbered bool, open Opener[G]) (*Generator[G], error) {
	g := &Generator[G]{set: s, name: name, open: open, numbered: numbered}
	if !numbered {
		return g, g.begin(ctx, 0, nil)
	}
	g.claim, _ = s.owner.Claim()
	if err := g.begin(ctx, g.claim.Number(), g.claim); err != nil {
		return nil, err
	}
	s.all = append(s.all, g)
	return g, nil
}

func (g *Generator[G]) begin(ctx context.Context, number uint64, bound durable.Bound) error {
	ids, err := g.open(ctx, g.name, number, bound)
	if err == nil {
		g.now.Store(&ids)
	}
	return err
}

func (g *Generator[G]) end() {
	if g.ended {
		return
	}
	g.ended = true
	if err := g.Get().Close(); err != nil {
		g.set.log.Warn("a generator has ended, to go on with another number", "generator", cmp.Or(g.name, "flake"), "err", err)
	}
}

// Follow has all generators that are numbered have the number that there is, until Close.
func (s *Generators[G]) Follow() {
	if s.owner == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.stop, s.stopped = cancel, make(chan struct{})
	go func() {
		defer close(s.stopped)
		for ctx.Err() == nil {
			claim, changed := s.owner.Claim()
			lost := claim.Lost()
			if isLost(claim) {
				lost = nil // it is told of once
			}
			var retry <-chan time.Time
			if err := s.Move(ctx); err != nil && ctx.Err() == nil {
				s.log.Error("a generator cannot go on with another number yet", "err", err)
				retry = time.After(again)
			}
			select {
			case <-changed:
			case <-lost:
			case <-retry:
			case <-ctx.Done():
			}
		}
	}()
}

func isLost(c *workers.Claim) bool {
	select {
	case <-c.Lost():
		return true
	default:
		return false
	}
}

// Move ends the generators whose number is lost, and has them go on with the next, if there is
// one by now. While nobody else can make ids up to the mark of the lost one, they go on with
// that until the next may begin. It is for those of [OpenOn]: others follow by themselves.
func (s *Generators[G]) Move(ctx context.Context) error {
	claim, _ := s.owner.Claim()
	for _, g := range s.all {
		if isLost(g.claim) && !g.claim.Clean() {
			g.end()
		}
	}
	if claim == nil || isLost(claim) {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-claim.Lost():
			cancel()
		case <-ctx.Done():
		}
	}()
	for _, g := range s.all {
		if g.claim == claim {
			continue
		}
		if !g.ended {
			lag := func() uint64 { now := s.clock(); return max(claim.After()+1, now) - now }
			if err := tick.Await(ctx, s.sleep, lag); err != nil {
				return err
			}
			g.end()
		}
		if err := g.begin(ctx, claim.Number(), claim); err != nil {
			return fmt.Errorf("generator %s: %w", cmp.Or(g.name, "flake"), err)
		}
		g.claim, g.ended = claim, false
	}
	return nil
}

// Step claims a number or moves its mark, for those of [OpenOn].
func (s *Generators[G]) Step(ctx context.Context) error { return s.owner.Step(ctx) }

// Close ends all generators, saves the latest time of any of their ids, and gives the number
// back at that. It waits for the disk and for the store: if one of them does not answer, the
// next start may have to wait instead.
func (s *Generators[G]) Close() error {
	s.closing.Store(true)
	if s.stop != nil {
		s.stop()
		<-s.stopped
	}
	err := s.marks.Finish()
	if s.owner != nil {
		ctx, cancel := context.WithTimeout(context.Background(), giveBack)
		defer cancel()
		if err := s.owner.Close(ctx); err != nil {
			s.log.Warn("the number was not given back: others wait for its mark", "err", err)
		}
	}
	return errors.Join(err, s.marks.Close())
}
