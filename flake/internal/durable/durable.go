// Package durable keeps a mark on disk ahead of every id of a generator. A generator may use
// times up to a mark only once the mark is durable. So whatever happens to the process or the
// clock, the next process finds a mark that no id has passed.
//
//	Source      makes ids up to a limit; a generator that saves nothing needs no more
//	  |
//	Marker      knows the next mark of one source, and raises its limit once the mark is saved
//	  |
//	Marks       saves the marks of all sources of a process together, and the number, one save at a time
//	  |
//	mark.File   writes bytes so that a crash, a full disk or another process does no harm
//
// [OpenMarksOn] and [OpenOn] are for simulated machines.
package durable

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/flake/internal/mark"
	"github.com/flake-go/flake/flake/internal/tick"
)

// Marker keeps the mark of a [Source] ahead of its ids. The generators of all formats have one, and
// document its methods. A nil Marker is that of a zero generator.
type Marker struct {
	Sleep tick.Sleeper // [tick.Sleep], except in tests

	marks  *Marks // nil if nothing is saved
	name   string // the name of its mark
	at     string // the file and name, for people
	source Source
	bound  Bound // may be nil
	log    *slog.Logger
	report func(time.Duration) // called with the time that each save took
	old    uint64              // maximum age of the mark without calls, in ms

	// About the current or last save; guarded by marks.saving.
	limit  *tick.Limit
	now    uint64
	latest uint64 // the highest earlier mark that ids may have reached; may be above the next mark
	ended  bool   // whether this is the last save

	mark, saved atomic.Uint64 // the mark in the file, and when it was saved

	// As of the last beat; guarded by marks.saving.
	milli  uint64 // the last tick with ids
	used   int
	ahead  time.Duration // how far the clock was ahead without being believed
	behind bool          // whether the clock was far behind
	seen   uint64        // the clock's time

	open  context.Context // done after Close or marks.Close
	stop  context.CancelFunc
	close func() error // runs once
}

// New returns the Marker of a source that saves nothing.
func New(source Source) *Marker {
	end := func() error { source.Close(); return nil }
	return &Marker{Sleep: tick.Sleep, source: source, close: sync.OnceValue(end)}
}

// next returns the next mark to save. When a generator is closed, its mark is lowered to the
// clock's time. It is not lowered further, even if the last id is older, because the mark also
// shows when the generator last ran.
func (k *Marker) next() (m mark.Mark) {
	if k.ended { // close the source before lowering the mark, so that no id can follow
		last := k.source.Close()
		k.limit, k.now = k.source.Limit(), k.source.Now()
		m.Milli = max(last, min(k.now, k.limit.Milli()))
	} else {
		// Read the limit before the words. Words that belong to a later limit do no harm,
		// but a limit must never be raised with words that are older than it.
		k.limit, k.now = k.source.Limit(), k.source.Now()
		k.source.Lower(k.now + window)
		to := k.now + window
		if k.bound != nil {
			to = min(to, k.bound.Milli())
		}
		m.Milli = min(max(to, k.limit.Milli()), k.limit.Last()) // not below an id, even if the clock was set back
	}
	if s, ok := k.source.(Stateful); ok {
		m.Words = s.Words()
		k.latest = max(k.latest, k.mark.Load()) // the next mark may be lower, if the time of ids was set back
	}
	m.Latest = max(m.Milli, k.latest)
	return m
}

// settle records that the mark was saved, and lets the source use times up to it.
func (k *Marker) settle(milli uint64) {
	k.mark.Store(milli)
	k.saved.Store(k.now)
	k.limit.Set(milli)
}

// asked reports whether ids were made since the last call.
func (k *Marker) asked() bool {
	milli, used := k.milli, k.used
	k.milli, k.used = k.source.Last()
	return milli != k.milli || used != k.used
}

// stale reports whether the mark must be moved even if no ids were made, because it is getting
// too old or because it can be lowered after the clock went back.
func (k *Marker) stale() bool {
	now, limit := k.source.Now(), k.source.Limit()
	before := limit.Milli()
	k.source.Lower(now + window)
	lowered := limit.Milli() < before
	if lowered {
		k.asked() // Lower may have used up an id, which does not count as a call
	}
	return lowered || now > k.mark.Load()+k.old
}

// await is the limit's Extend, called when the clock has passed the mark. Usually there were no
// calls for a while, the machine slept, or the clock was set ahead; then a save is enough. While
// saves fail, await fails immediately and run keeps trying.
func (k *Marker) await(ctx context.Context, milli uint64) error {
	// If the clock was set back, there is nothing to wait for.
	done := func() bool { return milli <= k.source.Limit().Milli() || milli > k.source.Now() }
	if k.bound != nil && milli > k.bound.Milli() && !done() && k.marks.attempts.Err() == nil {
		if err := k.bound.Extend(ctx, milli); err != nil {
			return err
		}
	}
	return k.marks.attempts.Await(ctx, k.open.Done(), done)
}

// Renew moves all marks in the file, without waiting for a beat. It fails with
// [tick.ErrTimestampNotSaved] or [tick.ErrClosed].
func (k *Marker) Renew() error { return k.marks.renew() }

// Beat moves the marks if they are due. The caller of [OpenOn] must call it each second.
func (k *Marker) Beat() { k.marks.beat() }

// Mark returns the mark in the file, an upper bound on the times of ids, or the zero time.
func (k *Marker) Mark() time.Time {
	if k == nil || k.marks == nil {
		return time.Time{}
	}
	return time.UnixMilli(int64(k.mark.Load())).UTC()
}

// LastSaved returns when the file was last written, or the zero time, and the error of a later
// attempt to write it, or nil.
func (k *Marker) LastSaved() (time.Time, error) {
	if k == nil || k.marks == nil {
		return time.Time{}, nil
	}
	return time.UnixMilli(int64(k.saved.Load())).UTC(), k.marks.attempts.Err()
}

// Ready returns the error of the source or of the last save, or nil. A failed save is an error even
// while ids can still be made.
func (k *Marker) Ready() error {
	if k == nil {
		return tick.ErrZero
	}
	_, err := k.LastSaved()
	return cmp.Or(k.source.Ready(), err)
}

// Behind returns how far the clock is behind the last id, or 0.
func (k *Marker) Behind() time.Duration {
	if k == nil {
		return 0
	}
	return tick.Milliseconds(k.source.Behind())
}

// CatchUp sleeps until the clock is no longer behind.
func (k *Marker) CatchUp(ctx context.Context) error {
	if k == nil {
		return nil
	}
	return tick.Await(ctx, k.Sleep, k.source.Behind)
}

// Close closes the source. It lowers the mark to the clock, so that the next process need not wait,
// and, unless [Options.Marks] is set, releases the lock. Current and later calls fail with
// [tick.ErrClosed]. Close waits for the disk; if the disk cannot be written, the next process
// waits instead. Closing again returns the same error.
func (k *Marker) Close() error {
	if k == nil {
		return nil
	}
	return k.close()
}

func (k *Marker) end() error {
	k.stop()
	if k.marks.alone {
		return k.marks.Close()
	}
	return k.marks.drop(k)
}

// watch logs when the clock goes far ahead or back, and when it is right again.
func (k *Marker) watch() {
	now, ahead, behind := k.source.Now(), k.source.Doubted(), k.source.Behind() > window
	switch {
	case ahead > 0 && k.ahead == 0:
		k.log.Warn("the clock has gone far ahead: ids continue from the previous time until it has stayed ahead; "+
			"correct it if it is wrong",
			"ahead", ahead.Round(time.Millisecond), "stays", tick.Doubt)
	case ahead == 0 && k.ahead > 0 && now > k.seen+uint64(k.ahead/2/time.Millisecond):
		k.log.Warn("the clock has stayed far ahead, and ids follow it: "+
			"if it is set back now, no ids can be made until it has caught up", "clock", show(now))
	case ahead == 0 && k.ahead > 0:
		k.log.Info("the clock is no longer far ahead", "clock", show(now))
	}
	switch {
	case behind && !k.behind:
		k.log.Error("the clock is behind the last id: no ids until it has caught up; correct it; "+elsewhere,
			"wait", tick.Milliseconds(k.source.Behind()), "clock", show(now))
	case !behind && k.behind:
		k.log.Info("the clock is no longer behind the last id", "clock", show(now))
	}
	k.ahead, k.behind, k.seen = ahead, behind, now
}

// elsewhere says how to get ids without waiting for the clock to catch up.
const elsewhere = "to get ids sooner, start with another timestamp_path and a worker id (or id, or partition) " +
	"that was never used: no id repeats then, but the new ones are below the last"
