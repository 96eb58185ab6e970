package durable

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/flake/internal/mark"
	"github.com/flake-go/flake/flake/internal/tick"
)

// Keeper keeps the mark of a [Source] ahead. Close it when done.
type Keeper struct {
	marks  *Marks
	name   string     // of its mark
	alone  bool       // nobody else has the marks
	at     string     // where it is found, for people
	former *mark.File // that it is taken over from, or nil; until the generator begins
	source Source
	bound  Bound // nil: none
	log    *slog.Logger
	told   func(time.Duration) // how long it took to write the file
	old    uint64              // how old the mark may be if nobody asks for ids, ms

	// Of the mark that is being saved, or was last; under marks.saving.
	limit  *tick.Limit
	now    uint64
	latest uint64 // of marks that ids may have been made up to, and that can be above the next
	ended  bool   // it is the last one

	mark, saved atomic.Uint64 // what is in the file, and since when

	// What was seen when it was looked at last; under marks.saving.
	milli  uint64 // the last id
	used   int
	ahead  time.Duration // how far the clock was, and not believed
	behind bool          // whether it was far behind
	seen   uint64        // what it was

	open  context.Context // until Close, or that of marks
	stop  context.CancelFunc
	close func() error // once
}

// next gives the mark to be saved. The last one is brought back from ahead of the
// clock, but stays at the clock if there were no ids of late, for it also tells
// how long nothing has run.
func (k *Keeper) next() (m mark.Mark) {
	if k.ended { // before the mark is lowered: no id can come after
		last := k.source.Close()
		k.limit, k.now = k.source.Limit(), k.source.Now()
		m.Milli = max(last, min(k.now, k.limit.Milli()))
	} else {
		// The limit comes before the words: they may be of a later one, but never is
		// one raised by words from before it.
		k.limit, k.now = k.source.Limit(), k.source.Now()
		k.source.Lower(k.now + window)
		to := k.now + window
		if k.bound != nil {
			to = min(to, k.bound.Milli())
		}
		m.Milli = min(max(to, k.limit.Milli()), k.limit.Last()) // not below an id, if the clock was set back
	}
	if s, ok := k.source.(Stateful); ok {
		m.Words = s.Words()
		k.latest = max(k.latest, k.mark.Load()) // this one may be of another pass
	}
	m.Latest = max(m.Milli, k.latest)
	return m
}

// settle notes that the mark was saved, and lets the source use the time up to it.
func (k *Keeper) settle(milli uint64) {
	k.mark.Store(milli)
	k.saved.Store(k.now)
	k.limit.Set(milli)
}

// asked tells whether there were ids since it was called last.
func (k *Keeper) asked() bool {
	milli, used := k.milli, k.used
	k.milli, k.used = k.source.Last()
	return milli != k.milli || used != k.used
}

// stale tells whether the mark has to be moved, though nobody may have asked for
// ids: it would count as too old, or can go back with the clock.
func (k *Keeper) stale() bool {
	now, limit := k.source.Now(), k.source.Limit()
	before := limit.Milli()
	k.source.Lower(now + window)
	lowered := limit.Milli() < before
	if lowered {
		k.asked() // it may be at the price of an id, which nobody asked for
	}
	return lowered || now > k.mark.Load()+k.old
}

// await is the limit's Extend: the clock is past the mark. As a rule that means
// that nobody asked for ids for a while, the machine slept, or the clock was set
// ahead, and the file only needs to be written. While it cannot be, callers are
// told so at once, and run goes on trying.
func (k *Keeper) await(ctx context.Context, milli uint64) error {
	// The clock may have been set back.
	done := func() bool { return milli <= k.source.Limit().Milli() || milli > k.source.Now() }
	if k.bound != nil && milli > k.bound.Milli() && !done() && k.Ready() == nil {
		if err := k.bound.Extend(ctx, milli); err != nil {
			return err
		}
	}
	return k.marks.attempts.Await(ctx, k.open.Done(), done)
}

// Renew moves the mark at once, and those of the others beside it. It fails with
// [tick.ErrTimestampNotSaved] or [tick.ErrClosed].
func (k *Keeper) Renew() error { return k.marks.renew() }

// Beat is to be called each second where nothing else does it: it moves the marks
// if it is time to.
func (k *Keeper) Beat() { k.marks.beat() }

// Mark is the time that no id is later than, as it stands in the file.
func (k *Keeper) Mark() time.Time { return time.UnixMilli(int64(k.mark.Load())).UTC() }

// LastSaved is the time at which the file was last written, and the trouble
// there has been with it since, or nil.
func (k *Keeper) LastSaved() (time.Time, error) {
	return time.UnixMilli(int64(k.saved.Load())).UTC(), k.Ready()
}

// Ready tells whether all is well with the file, or else what the trouble is. A
// file that cannot be written is some before it leaves no ids.
func (k *Keeper) Ready() error { return k.marks.attempts.Err() }

// Close ends the source, brings the mark back from ahead of the clock, so that
// the next start need not wait, and gives up the lock, unless the mark is one of
// several. Calls under way and later fail with [tick.ErrClosed]. Close waits for
// the disk; if it cannot write, the next start waits instead. A second Close
// gives what the first did.
func (k *Keeper) Close() error { return k.close() }

func (k *Keeper) end() error {
	k.stop()
	if k.alone {
		return k.marks.Close()
	}
	return k.marks.drop(k)
}

// watch tells of a clock that has gone far ahead or back, and what becomes of it.
func (k *Keeper) watch() {
	now, ahead, behind := k.source.Now(), k.source.Doubted(), k.source.Behind() > window
	switch {
	case ahead > 0 && k.ahead == 0:
		k.log.Warn("the clock has gone far ahead: ids go on with the time before, and follow it once it has stayed there; set it right if it is wrong",
			"ahead", ahead.Round(time.Millisecond), "stays", tick.Doubt)
	case ahead == 0 && k.ahead > 0 && now > k.seen+uint64(k.ahead/2/time.Millisecond):
		k.log.Warn("the clock has stayed far ahead, and ids follow it: if it is set back now, there are none until it has caught up", "clock", show(now))
	case ahead == 0 && k.ahead > 0:
		k.log.Info("the clock is no longer far ahead", "clock", show(now))
	}
	switch {
	case behind && !k.behind:
		k.log.Error("the clock is behind the last id: there are none until it has caught up; set it right; "+elsewhere,
			"wait", tick.Milliseconds(k.source.Behind()), "clock", show(now))
	case !behind && k.behind:
		k.log.Info("the clock is no longer behind the last id", "clock", show(now))
	}
	k.ahead, k.behind, k.seen = ahead, behind, now
}

// elsewhere is how to have ids without waiting for the clock.
const elsewhere = "to have ids sooner, start with another timestamp_path and with a worker id (or id, or partition) " +
	"that nobody has had: no id comes twice then, but the new ones are below the last"
