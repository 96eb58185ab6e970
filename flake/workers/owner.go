package workers

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/flake-go/flake/flake/internal/attempt"
	"github.com/flake-go/flake/flake/internal/tick"
	"github.com/flake-go/flake/internal/escape"
)

const (
	// DefaultHold is how far ahead of the clock the mark is set: how long ids go on
	// while the store does not answer, and how long a number of a node that has
	// crashed is not another's.
	DefaultHold = 10 * time.Minute

	// shortest is the least that hold may be.
	shortest = time.Second

	patience = 5 * time.Second // how long an answer of the store is waited for, or a sixth of hold
	retry    = time.Second     // after a step that failed, or a sixth of hold
)

// Config is what an [Owner] is made of.
type Config struct {
	Store       Store
	Prefix      string        // what all keys begin with
	First, Last uint64        // the numbers that may be claimed
	Hold        time.Duration // 0 means DefaultHold
	Name        string        // the node's, for people, and for getting the number it had
	Memory      Memory        // what the node's disk has; nil: it has none
	Wait        bool          // for a number if none is free

	// Clock is that of the generators; nil means one like theirs.
	Clock func() uint64

	// Random returns 64 random bits. nil means the machine's.
	Random func() uint64

	// Log gets claims and errors; nil means none are logged.
	Log *slog.Logger
}

// Owner has a number, and claims another if that is lost. Close it when done.
type Owner struct {
	Config
	hold    uint64 // ms
	sixth   time.Duration
	cluster string // of the store, if it tells; of the goroutine that steps
	sign    string // that the store was restored, to be seen to; of that too
	good    uint64 // what the clock was when a step last succeeded; of that too
	pending *Claim // one that may have been written; of the goroutine that steps

	mu      sync.Mutex
	claim   *Claim        // the last one; nil: there was none yet
	changed chan struct{} // closed when there is another
	at      time.Time     // when the last good step was

	steps   *attempt.Attempts
	stopped chan struct{}
	stop    context.CancelFunc
}

// New returns an owner that has no number yet, and gets one only by [Owner.Step]. It fails
// if the configuration is not valid.
func New(c Config) (*Owner, error) {
	if c.Hold == 0 {
		c.Hold = DefaultHold
	}
	switch {
	case c.Hold < shortest:
		return nil, fmt.Errorf("flake: hold is %v, and must be %v or more", c.Hold, shortest)
	case c.First > c.Last || c.Last >= 1<<48:
		return nil, fmt.Errorf("flake: worker ids from %d to %d cannot be claimed", c.First, c.Last)
	}
	if !escape.Safe(c.Name) {
		return nil, fmt.Errorf("flake: the name %q has characters that cannot be shown", c.Name)
	}
	if c.Clock == nil {
		c.Clock = tick.SystemClock()
	}
	if c.Random == nil {
		c.Random = random
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	o := &Owner{
		Config: c, hold: uint64(c.Hold / time.Millisecond), sixth: c.Hold / 6,
		good: c.Clock(), changed: make(chan struct{}),
	}
	o.steps = attempt.New(min(patience, o.sixth), "the store of worker ids", o.tell)
	return o, nil
}

func random() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

// Open returns an owner that has a number and keeps it. While the store does not answer,
// Open waits until ctx is done. It fails with [ErrRefused], and unless Config.Wait is
// set, with [ErrNoneFree].
func Open(ctx context.Context, c Config) (*Owner, error) {
	o, err := New(c)
	if err != nil {
		return nil, err
	}
	var before error // of the step before, the first time nil
	for {
		err := o.Step(ctx)
		switch {
		case err == nil:
			ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
			o.stop, o.stopped = cancel, make(chan struct{})
			go o.run(ctx)
			return o, nil
		case errors.Is(err, ErrRefused), errors.Is(err, ErrNoneFree) && !c.Wait:
			return nil, err
		case before == nil:
			o.Log.Warn("waiting for a worker id", "err", err)
		case ctx.Err() != nil: // it was broken off, and tells nothing
			err = before
		}
		before = err
		if tick.Sleep(ctx, o.pause(err)) != nil {
			return nil, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// Step moves the mark, or claims a number if there is none. It is for owners of [New]:
// those of [Open] do it by themselves.
func (o *Owner) Step(ctx context.Context) error {
	c, _ := o.Claim()
	err := o.mend(ctx)
	if err == nil && c != nil && !c.isLost() {
		err = o.extend(ctx, c)
	} else if err == nil {
		err = o.take(ctx)
	}
	if errors.As(err, new(loss)) { // at once
		if taken := o.take(ctx); taken != nil {
			err = errors.Join(err, taken)
		} else {
			err = nil
		}
	}
	o.settle(err)
	return err
}

// Claim returns the last claim, which may be lost, and a channel that is closed when there
// is another.
func (o *Owner) Claim() (c *Claim, changed <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.claim, o.changed
}
