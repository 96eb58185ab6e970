package durable

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/flake-go/flake/flake/internal/mark"
	"github.com/flake-go/flake/flake/internal/tick"
)

// Open locks the file at path, creating it if there is none, has source make
// only ids that are later than its mark, and keeps the mark ahead of them. After
// a crash that may mean to wait for up to [Window]; ctx can end the wait. With
// [Options.Marks] the file is theirs, and path the name of the mark.
//
// It fails with [tick.ErrClockBackwards] if the mark is further ahead of the
// clock, [tick.ErrClockAdvanced] if it is older than the allowable downtime, and
// otherwise if the file is locked, is no mark, is damaged, or cannot be written;
// the text says what to do. It never starts anew where a file was; in a file of
// several a new name does.
func Open(ctx context.Context, path string, source Source, o Options) (*Keeper, error) {
	sleep := tick.Sleep
	if o.Marks != nil && o.Marks.sleep != nil {
		sleep = o.Marks.sleep
	}
	k, err := OpenOn(ctx, mark.OS{}, sleep, path, source, o)
	if err != nil {
		return nil, err
	}
	k.keep(time.Tick(renewal))
	return k, nil
}

// keep has the mark kept ahead from here on.
func (k *Keeper) keep(beat <-chan time.Time) {
	k.source.Limit().Extend = k.await
	if k.alone {
		k.marks.begin(beat)
	}
}

// OpenOn is [Open] on a disk and with a way to let time pass, but for the
// keeping ahead: that is for the caller to do, with [Keeper.Renew] or [Keeper.Beat].
func OpenOn(ctx context.Context, disk mark.Disk, sleep tick.Sleeper, path string, source Source, o Options) (*Keeper, error) {
	if o.AllowableDowntime < 0 {
		return nil, fmt.Errorf("flake: allowable_downtime is %v, and must not be below 0", o.AllowableDowntime)
	}
	if o.Marks != nil && strings.ContainsFunc(path, unfit) {
		return nil, fmt.Errorf("flake: %q is no name of a mark: it has a space, a slash, or what cannot be printed in it", path)
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
	k := &Keeper{
		marks: o.Marks, name: path, source: source, bound: o.Bound, log: o.Logger, told: o.Saved,
		old: uint64(min(o.AllowableDowntime/100, idle) / time.Millisecond),
	}
	k.close = sync.OnceValue(k.end)
	if k.alone = o.Marks == nil; k.alone {
		marks, err := OpenMarksOn(disk, path, o.Logger, 0)
		if err != nil {
			return nil, err
		}
		k.marks, k.name = marks, ""
	}
	k.open, k.stop = context.WithCancel(k.marks.open)
	k.at = k.marks.file.Path()
	if k.log = k.log.With("file", k.at); k.name != "" {
		k.log = k.log.With("generator", k.name)
		k.at = fmt.Sprintf("%s (%s)", k.at, k.name)
	}
	if err := k.begin(ctx, sleep, o.AllowableDowntime); err != nil {
		k.stop()
		if k.alone {
			err = errors.Join(err, k.marks.file.Close())
		}
		return nil, err
	}
	return k, nil
}

// begin waits until the clock is past the last mark, and sets the first of its
// own.
func (k *Keeper) begin(ctx context.Context, sleep tick.Sleeper, allowed time.Duration) (err error) {
	last, err := k.marks.reserve(k)
	if err != nil {
		return err
	}
	if k.former != nil {
		defer k.former.Close()
		k.at = k.former.Path()
	}
	defer func() {
		if err != nil {
			k.marks.release(k.name)
		}
	}()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(k.marks.open, func() { cancel(errEnded) })()
	after, floor := uint64(0), uint64(0)
	if last == nil {
		k.log.Warn("no timestamp is kept yet: starting a new one")
		floor = k.marks.before()
	} else if err := k.restore(last.Words); err != nil {
		return err
	} else if after, err = k.resume(ctx, sleep, last.Milli, allowed); err != nil {
		return err
	}
	if k.bound != nil {
		if after, err = k.within(ctx, sleep, after, max(floor, k.bound.After())); err != nil {
			return err
		}
	}
	// From here on all of the tick of after counts as used, and until the file is
	// written, all of time as beyond the mark.
	k.source.Begin(after)
	made, _ := k.source.Last() // it may have begun after something else
	k.source.Limit().Set(max(after, made))
	return k.marks.add(k)
}

// unfit tells what would not stand in a line, or in the name of a file.
func unfit(r rune) bool { return r == '/' || r == ' ' || r == utf8.RuneError || !unicode.IsPrint(r) }

// within waits until the clock is past what the bound has ids begin after, however long
// that takes, and gives what they are later than.
func (k *Keeper) within(ctx context.Context, sleep tick.Sleeper, after, bound uint64) (uint64, error) {
	if s, ok := k.source.(Stateful); ok {
		s.Bound(bound)
	}
	lag := func() uint64 { return max(bound+1, k.source.Now()) - k.source.Now() }
	if behind := lag(); behind > 0 {
		k.log.Info("waiting until the clock is past what others may have made with this worker", "wait", tick.Milliseconds(behind), "mark", show(bound))
	}
	if err := tick.Await(ctx, sleep, lag); err != nil {
		return 0, fmt.Errorf("flake: waiting until the clock is past %s, up to which others may have made ids with this worker: %w", show(bound), err)
	}
	return max(after, bound), nil
}

// restore gives the source the words of the last run.
func (k *Keeper) restore(words []uint64) error {
	if s, ok := k.source.(Stateful); ok {
		return s.Restore(words)
	}
	if len(words) > 0 {
		return fmt.Errorf("flake: %s is of another format of ids: it has %d words beside the time; set another timestamp_path", k.at, len(words))
	}
	return nil
}

// resume waits until the clock is past the last run's mark, and gives what the
// ids to come are later than: that mark, unless they are told from those before
// it otherwise.
func (k *Keeper) resume(ctx context.Context, sleep tick.Sleeper, last uint64, allowed time.Duration) (after uint64, err error) {
	if s, ok := k.source.(Stateful); ok && last > k.source.Now()+window {
		after = s.Turn(last)
		now, err := k.wait(ctx, sleep, after)
		if err == nil {
			k.log.Warn("the clock is behind the last run's timestamp: going on in that past, with ids that differ from those made then",
				"mark", show(last), "clock", show(now))
		}
		return after, err
	}
	now, err := k.wait(ctx, sleep, last)
	if err != nil {
		return 0, err
	}
	if down := now - last; down > uint64(allowed/time.Millisecond) {
		return 0, fmt.Errorf("%w: %s has %s, and the clock says %s, further on than allowable_downtime, %d ms; "+
			"set the clock right, or if it is, raise allowable_downtime above %d for one start",
			tick.ErrClockAdvanced, k.at, show(last), show(now), allowed/time.Millisecond, down)
	}
	return last, nil
}

// wait waits until the clock is past last, if that is no further than Window,
// and gives the time it then is.
func (k *Keeper) wait(ctx context.Context, sleep tick.Sleeper, last uint64) (now uint64, err error) {
	for told := false; ; told = true {
		now := k.source.Now()
		if now > last {
			return now, nil
		}
		behind := last - now
		if behind > window {
			return now, fmt.Errorf("%w: ids may have been made up to %s by %s, and the clock says %s; "+
				"set the clock right, or start again in %d ms; %s",
				tick.ErrClockBackwards, show(last), k.at, show(now), behind-window, elsewhere)
		}
		if !told {
			k.log.Info("waiting until the clock is past the last run's timestamp", "wait", tick.Milliseconds(behind+1))
		}
		if err := sleep(ctx, tick.Milliseconds(behind+1)); err != nil {
			return now, fmt.Errorf("flake: waiting until the clock is past %s of %s: %w", show(last), k.at, err)
		}
	}
}

// show gives a time as people and the file write it.
func show(milli uint64) string {
	return fmt.Sprintf("%s (%d)", time.UnixMilli(int64(min(milli, math.MaxInt64))).UTC().Format("2006-01-02T15:04:05.000Z"), milli)
}
