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
	// DefaultHold is how far ahead of the clock the mark is set. For that long, a node can make
	// ids while the store does not respond, and the number of a crashed node stays reserved.
	DefaultHold = 10 * time.Minute

	minHold = time.Second // the minimum of Config.Hold

	patience = 5 * time.Second // the longest wait for the store; a sixth of hold if that is less
	retry    = time.Second     // the pause after a failed step; a sixth of hold if that is less
)

// Config configures an [Owner].
type Config struct {
	Store       Store
	Prefix      string        // the prefix of all keys
	First, Last uint64        // the numbers that may be claimed
	Hold        time.Duration // 0 means DefaultHold
	Name        string        // for people; a node prefers the number last claimed with its name
	Memory      Memory        // the node's disk, or nil if it has none
	Wait        bool          // whether to wait for a number if none is free

	// Clock is the generators' clock; nil means the system clock.
	Clock func() uint64

	// Random returns 64 random bits; nil means those of the operating system.
	Random func() uint64

	// Log receives claims and errors; nil discards them.
	Log *slog.Logger
}

// Owner keeps a number, and claims another if that one is lost. Close it when done.
type Owner struct {
	Config
	hold  uint64 // ms
	sixth time.Duration

	// Used only by the goroutine that calls Step.
	cluster string // the id of the store's cluster, if known
	sign    string // the evidence that the store was restored, until the floor is written
	good    uint64 // the clock's time when a step last succeeded
	pending *Claim // a claim that may have been written, or nil

	mu      sync.Mutex
	claim   *Claim        // the latest claim; nil before the first
	changed chan struct{} // closed when claim changes
	at      time.Time     // when a step last succeeded

	steps   *attempt.Attempts
	stopped chan struct{}
	stop    context.CancelFunc
}

// New returns an owner that has no number yet; [Owner.Step] claims one. New fails if the
// configuration is invalid.
func New(c Config) (*Owner, error) {
	if c.Hold == 0 {
		c.Hold = DefaultHold
	}
	switch {
	case c.Hold < minHold:
		return nil, fmt.Errorf("flake: hold is %v, but must be %v or more", c.Hold, minHold)
	case c.First > c.Last || c.Last >= 1<<48:
		return nil, fmt.Errorf("flake: worker ids from %d to %d cannot be claimed", c.First, c.Last)
	}
	if !escape.Safe(c.Name) {
		return nil, fmt.Errorf("flake: the name %q has characters that cannot be printed", c.Name)
	}
	if c.Clock == nil {
		c.Clock = tick.SystemClock()
	}
	if c.Random == nil {
		c.Random = random
	}
	if c.Memory == nil {
		c.Memory = noMemory{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	o := &Owner{
		Config: c, hold: uint64(c.Hold / time.Millisecond), sixth: c.Hold / 6,
		good: c.Clock(), changed: make(chan struct{}),
	}
	o.steps = attempt.New(min(patience, o.sixth), "the store of worker ids", o.report)
	return o, nil
}

func random() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

// Open claims a number and returns an owner that keeps it. While the store does not respond,
// Open retries until ctx is done. [ErrRefused] ends the wait immediately, and so does
// [ErrNoneFree] unless Config.Wait is set.
func Open(ctx context.Context, c Config) (*Owner, error) {
	o, err := New(c)
	if err != nil {
		return nil, err
	}
	var before error // of the previous step; nil for the first
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
		case ctx.Err() != nil: // ctx ended this step, so only the previous error says why
			err = before
		}
		before = err
		if tick.Sleep(ctx, o.pause(err)) != nil {
			return nil, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// Step moves the mark, or claims a number if the owner has none. Call it only on owners returned
// by [New]; those returned by [Open] call it themselves.
func (o *Owner) Step(ctx context.Context) error {
	c, _ := o.Claim()
	err := o.mend(ctx)
	if err == nil && c != nil && !c.IsLost() {
		err = o.extend(ctx, c)
	} else if err == nil {
		err = o.take(ctx)
	}
	if errors.As(err, new(loss)) { // claim another number immediately
		if taken := o.take(ctx); taken != nil {
			err = errors.Join(err, taken)
		} else {
			err = nil
		}
	}
	o.settle(err)
	return err
}

// Claim returns the latest claim, which may be lost, and a channel that is closed when the owner
// has a new one.
func (o *Owner) Claim() (c *Claim, changed <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.claim, o.changed
}

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
		o.Log.Error("cannot extend the worker id: ids will stop at the mark unless it is extended first",
			"err", err, "mark", show(c.Milli()))
	case err == nil && before != nil:
		o.Log.Info("the worker id can be extended again", "mark", show(c.Milli()))
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

func (o *Owner) swap(ctx context.Context, have, write map[string]string) (bool, error) {
	ctx, cancel := o.asking(ctx)
	defer cancel()
	return o.Store.Swap(ctx, have, write)
}
