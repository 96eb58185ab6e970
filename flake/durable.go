package flake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/flake-go/flake/flake/internal/mark"
)

// The file holds a mark ahead of every id handed out. A generator may use the
// time up to a mark only once it is durable, so whatever happens to the process
// and to the clock, the next one finds a mark that no id is past.
const (
	// Window is how far ahead of the clock the mark is set, and so the longest
	// that a start after a crash waits, and the longest that ids go on while
	// the file cannot be written.
	Window = 3 * time.Second

	// DefaultDowntime is the original's allowable_downtime, 30 days.
	DefaultDowntime = 30 * 24 * time.Hour

	renewal = time.Second // how often the mark is moved

	// patience is how long a call waits for the mark to be moved past a clock
	// that went beyond it: the machine slept, or the clock was set.
	patience = 250 * time.Millisecond

	window = uint64(Window / time.Millisecond)
)

// Options are what [Open] can do without. The zero value is fit for use.
type Options struct {
	// AllowableDowntime is how long ids may not have been made before a start
	// is refused with [ErrClockAdvanced], for the clock may be wrong. 0 means
	// DefaultDowntime; below 0 is an error.
	AllowableDowntime time.Duration

	// Clock is the clock; nil means SystemClock.
	Clock Clock

	// Logger is told of a new file, a wait, and trouble with the file and its
	// end; nil means nobody is.
	Logger *slog.Logger
}

// Durable is a [Generator] that keeps its promise across restarts: no id it
// hands out was handed out before by one on the same file and worker, and each
// is higher. Close it when done.
type Durable struct {
	*Generator
	file *mark.File
	log  *slog.Logger

	saving sync.Mutex // held while the file is written

	mu    sync.Mutex
	round chan struct{} // closed when the next attempt at the file ends
	err   error         // what the last one came to
	saved uint64        // when the last good one was

	kick, stop chan struct{}
	stopped    chan struct{} // closed when run has ended; nil if it was not begun
	closing    sync.Once
	closeErr   error
}

// Open locks the file at path, creating it if there is none, and gives a
// generator whose ids are later than its mark. After a crash that may mean to
// wait for up to [Window]; ctx can end the wait.
//
// It fails with [ErrClockBackwards] if the mark is further ahead of the clock,
// [ErrClockAdvanced] if it is older than the allowable downtime, and otherwise
// if the file is locked, is no mark, is damaged, or cannot be written; the text
// says what to do. It never starts anew where a file was.
func Open(ctx context.Context, path string, worker Worker, o Options) (*Durable, error) {
	d, err := open(ctx, mark.OS{}, sleep, path, worker, o)
	if err != nil {
		return nil, err
	}
	d.keep()
	return d, nil
}

// open does all that Open does but to keep the mark ahead.
func open(ctx context.Context, disk mark.Disk, sleep sleeper, path string, worker Worker, o Options) (*Durable, error) {
	if o.AllowableDowntime < 0 {
		return nil, fmt.Errorf("flake: allowable_downtime is %v, and must not be below 0", o.AllowableDowntime)
	}
	if o.AllowableDowntime == 0 {
		o.AllowableDowntime = DefaultDowntime
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	g, err := NewGenerator(worker, o.Clock)
	if err != nil {
		return nil, err
	}
	file, last, found, err := mark.Open(disk, path)
	if err != nil {
		return nil, fmt.Errorf("flake: %w", err)
	}
	d := &Durable{
		Generator: g, file: file, log: o.Logger,
		round: make(chan struct{}), kick: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	if err := d.begin(ctx, sleep, last, found, o.AllowableDowntime); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return d, nil
}

// begin waits until the clock is past the last mark, and sets the first of its
// own.
func (d *Durable) begin(ctx context.Context, sleep sleeper, last uint64, found bool, allowed time.Duration) error {
	if !found {
		d.log.Warn("no timestamp file: starting a new one", "path", d.file.Path())
	} else if now, err := d.wait(ctx, sleep, last); err != nil {
		return err
	} else if down := now - last; down > uint64(allowed/time.Millisecond) {
		return fmt.Errorf("%w: %s has %s, and the clock says %s, further on than allowable_downtime, %d ms; "+
			"set the clock right, or if it is, raise allowable_downtime above %d for one start",
			ErrClockAdvanced, d.file.Path(), show(last), show(now), allowed/time.Millisecond, down)
	}
	// From here on all of last's millisecond counts as used, and until the
	// file is written, all of time as beyond the mark.
	d.start(last, last)
	if err := d.renew(); err != nil {
		return fmt.Errorf("%w; free the disk or make the file and its folder writable, or set another timestamp_path", err)
	}
	return nil
}

// wait waits until the clock is past last, if that is no further than Window,
// and gives the time it then is.
func (d *Durable) wait(ctx context.Context, sleep sleeper, last uint64) (now uint64, err error) {
	for told := false; ; told = true {
		now := d.clock()
		if now > last {
			return now, nil
		}
		behind := last - now
		if behind > window {
			return now, fmt.Errorf("%w: ids may have been made up to %s by %s, and the clock says %s; "+
				"set the clock right, or start again in %d ms",
				ErrClockBackwards, show(last), d.file.Path(), show(now), behind-window)
		}
		if !told {
			d.log.Info("waiting until the clock is past the last run's timestamp", "ms", behind+1, "path", d.file.Path())
		}
		if err := sleep(ctx, time.Duration(behind+1)*time.Millisecond); err != nil {
			return now, fmt.Errorf("flake: waiting until the clock is past %s of %s: %w", show(last), d.file.Path(), err)
		}
	}
}

// renew moves the mark ahead and lets the generator use the time up to it.
func (d *Durable) renew() error {
	d.saving.Lock()
	defer d.saving.Unlock()
	if d.word.Load() == closed {
		return ErrClosed
	}
	now := d.clock()
	to := min(max(now+window, d.limit.Load()), maxMilli) // a clock set back moves no mark
	if err := d.file.Save(to); err != nil {
		return fmt.Errorf("%w: %w", ErrTimestampNotSaved, err)
	}
	d.limit.Store(to)
	d.mu.Lock()
	d.saved = now
	d.mu.Unlock()
	return nil
}

// Mark is the time that no id is later than, as it stands in the file.
func (d *Durable) Mark() time.Time { return time.UnixMilli(int64(d.limit.Load())).UTC() }

// LastSaved is the time at which the file was last written, and the trouble
// there has been with it since, or nil.
func (d *Durable) LastSaved() (time.Time, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.UnixMilli(int64(d.saved)).UTC(), d.err
}

// Close ends the generator, brings the mark back from ahead of the clock, so
// that the next start need not wait, and gives up the lock. Calls of Next under
// way and later fail with [ErrClosed]. Close waits for the disk; if it cannot
// write, the next start waits instead. A second Close gives what the first did.
func (d *Durable) Close() error {
	d.closing.Do(func() {
		close(d.stop)
		if d.stopped != nil {
			<-d.stopped
		}
		d.closeErr = d.end()
	})
	return d.closeErr
}

func (d *Durable) end() error {
	d.saving.Lock()
	defer d.saving.Unlock()
	// The word is swapped before the mark is lowered: no id can come after. The
	// mark stays at the clock if there were no ids of late, for it also tells
	// how long nothing has run.
	last := d.close()
	err := d.file.Save(max(last, min(d.clock(), d.limit.Load())))
	return errors.Join(err, d.file.Close())
}

// show gives a time as people and the file write it.
func show(milli uint64) string {
	return fmt.Sprintf("%s (%d)", time.UnixMilli(int64(min(milli, math.MaxInt64))).UTC().Format("2006-01-02T15:04:05.000Z"), milli)
}

// sleeper lets time pass, or gives ctx's error.
type sleeper func(ctx context.Context, d time.Duration) error

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
