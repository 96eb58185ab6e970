package durable

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/flake-go/flake/flake/internal/tick"
)

var errSlow = fmt.Errorf("%w: the disk has not answered for %v", tick.ErrTimestampNotSaved, Patience)

// keep has the mark kept ahead from here on.
func (k *Keeper) keep(beat <-chan time.Time) {
	k.source.Limit().Extend = k.await
	k.stopped = make(chan struct{})
	go k.run(beat)
}

// run moves the mark at every beat, and at once when it is asked to.
func (k *Keeper) run(beat <-chan time.Time) {
	defer close(k.stopped)
	for {
		select {
		case <-k.stop:
			return
		case <-beat:
		case <-k.kick:
		}
		k.settle(k.Renew())
		k.watch()
	}
}

// settle notes what an attempt came to, and wakes those who await it.
func (k *Keeper) settle(err error) {
	k.mu.Lock()
	before := k.err
	k.err = err
	close(k.round)
	k.round = make(chan struct{})
	k.mu.Unlock()
	switch {
	case err != nil && (before == nil || errors.Is(before, errSlow)):
		k.log.Error("the timestamp cannot be saved: ids go on to the mark, and then stop until it can", "err", err, "mark", k.Mark())
	case err == nil && before != nil:
		k.log.Info("the timestamp is saved again", "path", k.file.Path())
	}
}

// await is the limit's Extend: the clock is past the mark. As a rule that
// means that the machine slept, or the clock was set ahead, and the file only
// needs to be written. While it cannot be, callers are told so at once, and run
// goes on trying.
func (k *Keeper) await(ctx context.Context, milli uint64) error {
	patience := time.After(Patience)
	for {
		k.mu.Lock()
		round, err := k.round, k.err
		k.mu.Unlock()
		// Looked at after the round, so that its end cannot be missed.
		if milli <= k.source.Limit().Milli() || milli > k.source.Now() { // or the clock was set back
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case k.kick <- struct{}{}:
		default: // already asked for
		}
		select {
		case <-round:
		case <-k.stop:
			return tick.ErrClosed
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-patience:
			return k.slow(round)
		}
	}
}

// slow notes that an attempt takes too long, so that the next callers do not
// wait for it.
func (k *Keeper) slow(round chan struct{}) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.round == round && k.err == nil {
		k.err = errSlow
		k.log.Error(errSlow.Error(), "path", k.file.Path(), "mark", k.Mark())
	}
	return errSlow
}

// watch tells of a clock that has gone far ahead or back, and what becomes of it.
func (k *Keeper) watch() {
	now, ahead, behind := k.source.Now(), k.source.Doubted(), k.source.Behind() > window
	path := slog.String("path", k.file.Path())
	switch {
	case ahead > 0 && k.ahead == 0:
		k.log.Warn("the clock has gone far ahead: ids go on with the time before, and follow it once it has stayed there; set it right if it is wrong",
			"ahead", ahead.Round(time.Millisecond), "stays", tick.Doubt, path)
	case ahead == 0 && k.ahead > 0 && now > k.seen+uint64(k.ahead/2/time.Millisecond):
		k.log.Warn("the clock has stayed far ahead, and ids follow it: if it is set back now, there are none until it has caught up", "now", show(now), path)
	case ahead == 0 && k.ahead > 0:
		k.log.Info("the clock is no longer far ahead", "now", show(now), path)
	}
	switch {
	case behind && !k.behind:
		k.log.Error("the clock is behind the last id: there are none until it has caught up; set it right; "+elsewhere,
			"ms", k.source.Behind(), "now", show(now), path)
	case !behind && k.behind:
		k.log.Info("the clock is no longer behind the last id", "now", show(now), path)
	}
	k.ahead, k.behind, k.seen = ahead, behind, now
}

// elsewhere is how to have ids without waiting for the clock.
const elsewhere = "to have ids sooner, start with another timestamp_path and with a worker id (or id, or partition) " +
	"that nobody has had: no id comes twice then, but the new ones are below the last"
