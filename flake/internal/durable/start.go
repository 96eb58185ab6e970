package durable

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/flake-go/flake/flake/internal/mark"
	"github.com/flake-go/flake/flake/internal/tick"
)

// Open locks the file at path, creating it if it does not exist, restricts source to ids
// later than the mark in it, and keeps the mark ahead of them. After a crash it may wait for
// up to [Window], or until ctx is done. If [Options.Marks] is set, path is the name of a mark
// in that file.
//
// Open fails with [tick.ErrClockBackwards] if the mark is more than Window ahead of the
// clock, with [tick.ErrClockAdvanced] if the mark is older than the allowable downtime, and
// with another error if the file is locked, damaged, not a file of marks, or cannot be
// written; the error's text says what to do. It never ignores a file that exists. A new name
// in [Options.Marks] starts a new mark.
func Open(ctx context.Context, path string, source Source, o Options) (*Marker, error) {
	if o.AllowableDowntime < 0 {
		return nil, fmt.Errorf("flake: allowable_downtime is %v: must be at least 0", o.AllowableDowntime)
	}
	if o.Marks == nil {
		marks, err := OpenMarksOn(mark.OS{}, tick.Sleep, path, o.Logger, 0)
		if err != nil {
			return nil, err
		}
		marks.alone, o.Marks, path = true, marks, ""
	}
	k, err := OpenOn(ctx, path, source, o)
	if err != nil {
		return nil, err
	}
	k.keep(time.Tick(renewal))
	return k, nil
}

// keep starts keeping the mark ahead of ids.
func (k *Marker) keep(beat <-chan time.Time) {
	k.source.Limit().Extend = k.await
	if k.marks.alone {
		k.marks.begin(beat)
	}
}

// OpenOn is like [Open], but needs [Options.Marks], which may be on a simulated machine. The caller
// must keep the mark ahead with [Marker.Renew] or [Marker.Beat].
func OpenOn(ctx context.Context, name string, source Source, o Options) (*Marker, error) {
	if strings.ContainsFunc(name, unfit) {
		return nil, fmt.Errorf("flake: %q cannot be the name of a mark: "+
			"it has a space, a slash, or a character that cannot be printed", name)
	}
	if o.AllowableDowntime == 0 {
		o.AllowableDowntime = DefaultDowntime
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Saved == nil {
		o.Saved = func(time.Duration) {}
	}
	k := &Marker{
		Sleep: o.Marks.sleep, marks: o.Marks, name: name, source: source, bound: o.Bound, log: o.Logger, report: o.Saved,
		old: uint64(min(o.AllowableDowntime/100, idle) / time.Millisecond),
	}
	k.close = sync.OnceValue(k.end)
	k.open, k.stop = context.WithCancel(k.marks.open)
	k.at = k.marks.file.Path()
	if k.log = k.log.With("file", k.at); k.name != "" {
		k.log = k.log.With("generator", k.name)
		k.at = fmt.Sprintf("%s (%s)", k.at, k.name)
	}
	if err := k.begin(ctx, o.AllowableDowntime); err != nil {
		k.stop()
		if k.marks.alone {
			err = errors.Join(err, k.marks.file.Close())
		}
		return nil, err
	}
	return k, nil
}

// begin waits until the clock has passed the last mark, and saves a new mark.
func (k *Marker) begin(ctx context.Context, allowed time.Duration) (err error) {
	last, floor, err := k.marks.reserve(k)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			k.marks.drop(k)
		}
	}()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(k.marks.open, func() { cancel(errEnded) })()
	after := uint64(0)
	if last == nil && k.marks.isNew {
		k.marks.warned.Do(func() { k.log.Warn("no timestamp is kept yet: starting a new one") })
	} else if last == nil {
		k.log.Info("the file has no mark of this generator yet: starting a new one")
	} else if err := k.restore(last.Words); err != nil {
		return err
	} else if after, err = k.resume(ctx, last.Milli, allowed); err != nil {
		return err
	}
	if k.bound != nil {
		if after, err = k.within(ctx, after, max(floor, k.bound.After())); err != nil {
			return err
		}
	}
	// From here on, all ids in the tick of after count as used; no later tick may be used
	// before the file is written.
	k.source.Begin(after)
	made, _ := k.source.Last() // may be later than after
	k.source.Limit().Set(max(after, made))
	return k.marks.add(k)
}

// unfit reports whether r is not allowed in the name of a mark.
func unfit(r rune) bool { return r == '/' || r == ' ' || r == utf8.RuneError || !unicode.IsPrint(r) }

// within waits until the clock has passed the start of the bound, however long that takes. It
// returns an exclusive lower bound on the times of ids.
func (k *Marker) within(ctx context.Context, after, bound uint64) (uint64, error) {
	if s, ok := k.source.(Stateful); ok {
		s.Exclude(bound)
	}
	lag := func() uint64 { return max(bound+1, k.source.Now()) - k.source.Now() }
	if behind := lag(); behind > 0 {
		k.log.Info("waiting until the clock has passed the last id that another node may have made with this worker id",
			"wait", tick.Milliseconds(behind), "mark", show(bound))
	}
	if err := tick.Await(ctx, k.Sleep, lag); err != nil {
		return 0, fmt.Errorf("flake: gave up waiting for the clock to pass %s, "+
			"the last time at which another node may have made ids with this worker id: %w", show(bound), err)
	}
	return max(after, bound), nil
}

// restore passes the words of the last run to the source.
func (k *Marker) restore(words []uint64) error {
	if s, ok := k.source.(Stateful); ok {
		return s.Restore(words)
	}
	if len(words) > 0 {
		return fmt.Errorf("flake: %s belongs to another id format: its mark has %d extra words; "+
			"set another timestamp_path", k.at, len(words))
	}
	return nil
}

// resume waits until the clock has passed the last run's mark, and returns an exclusive lower
// bound on the times of ids. That is the mark, unless a [Stateful] source rewinds.
func (k *Marker) resume(ctx context.Context, last uint64, allowed time.Duration) (after uint64, err error) {
	if s, ok := k.source.(Stateful); ok && last > k.source.Now()+window {
		after = s.Rewind(last)
		now, err := k.wait(ctx, after)
		if err == nil {
			k.log.Warn("the clock is behind the last run's timestamp: "+
				"continuing at that time, with ids that differ from those made then",
				"mark", show(last), "clock", show(now))
		}
		return after, err
	}
	now, err := k.wait(ctx, last)
	if err != nil {
		return 0, err
	}
	if down := now - last; down > uint64(allowed/time.Millisecond) {
		return 0, fmt.Errorf("%w: %s has %s, and the clock says %s, later than allowable_downtime (%d ms) permits; "+
			"correct the clock, or if it is right, raise allowable_downtime above %d for one start",
			tick.ErrClockAdvanced, k.at, show(last), show(now), allowed/time.Millisecond, down)
	}
	return last, nil
}

// wait waits until the clock has passed last and returns the clock's time. It fails if last is
// more than Window ahead.
func (k *Marker) wait(ctx context.Context, last uint64) (now uint64, err error) {
	for logged := false; ; logged = true {
		now := k.source.Now()
		if now > last {
			return now, nil
		}
		behind := last - now
		if behind > window {
			left := tick.Milliseconds(behind-window).Truncate(time.Second) + time.Second
			return now, fmt.Errorf("%w: ids may have been made up to %s by %s, and the clock says %s; "+
				"correct the clock, or start again in %v; %s",
				tick.ErrClockBackwards, show(last), k.at, show(now), left, elsewhere)
		}
		if !logged {
			k.log.Info("waiting until the clock has passed the last run's timestamp", "wait", tick.Milliseconds(behind+1))
		}
		if err := k.Sleep(ctx, tick.Milliseconds(behind+1)); err != nil {
			return now, fmt.Errorf("flake: gave up waiting for the clock to pass %s, the time in %s: %w", show(last), k.at, err)
		}
	}
}

// show returns a time as text, with its milliseconds in parentheses.
func show(milli uint64) string {
	return fmt.Sprintf("%s (%d)", tick.Text(milli), milli)
}
