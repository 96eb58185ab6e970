package durable

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/flake-go/flake/flake/internal/attempt"
	"github.com/flake-go/flake/flake/internal/mark"
	"github.com/flake-go/flake/flake/internal/tick"
)

var errEnded = fmt.Errorf("%w, and so is its file of marks", tick.ErrClosed)

// Marks is a file that keeps the marks of several generators, each under a name.
// It is written once a second for all of them, and not while nobody asks for ids.
// Close it when done.
type Marks struct {
	file *mark.File
	log  *slog.Logger

	saving sync.Mutex             // held while the file is written
	saved  mark.Content           // what is in it; under saving
	drawn  map[string]mark.Worker // what is written with it next; under saving
	known  bool                   // whether there were marks in it
	latest uint64                 // of the marks that nobody keeps; under saving
	names  map[string]bool        // of those that begin or are kept; under saving
	kept   []*Keeper              // whose marks are kept ahead; under saving
	ended  bool                   // under saving
	linger int                    // beats without ids until the marks stay; 0: they never do
	quiet  int                    // beats since there were ids; under saving

	attempts *attempt.Attempts
	sleep    tick.Sleeper // of generators that are opened with it; nil: tick.Sleep

	open    context.Context // until Finish
	stop    context.CancelFunc
	stopped chan struct{} // closed when run has ended; nil if it was not begun
	finish  func() error  // once
	close   func() error  // once
}

// OpenMarks locks the file at path, creating it with the first generator if there
// is none. It fails if the file is locked, is none of marks, or is damaged. A nil
// logger means that nobody is told of trouble with the file.
func OpenMarks(path string, log *slog.Logger) (*Marks, error) {
	m, err := OpenMarksOn(mark.OS{}, path, log, linger)
	if err == nil {
		m.begin(time.Tick(renewal))
	}
	return m, err
}

// CheckMarks returns why [OpenMarks] would fail, but for a lock.
func CheckMarks(path string) error {
	if err := mark.Check(path); err != nil {
		return fmt.Errorf("flake: %w", err)
	}
	return nil
}

// OpenMarksOn is [OpenMarks] on a disk, but for the keeping ahead. The marks are moved
// until there have been no ids for linger beats; 0: for ever.
func OpenMarksOn(disk mark.Disk, path string, log *slog.Logger, linger int) (*Marks, error) {
	file, saved, err := mark.Open(disk, path)
	if err != nil {
		return nil, fmt.Errorf("flake: %w", err)
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	m := &Marks{
		file: file, log: log, saved: saved, known: len(saved.Marks) > 0, latest: latest(saved),
		drawn: map[string]mark.Worker{}, names: map[string]bool{}, linger: linger, quiet: linger,
	}
	m.attempts = attempt.New(Patience, "the disk", m.tell)
	m.open, m.stop = context.WithCancel(context.Background())
	m.finish = sync.OnceValue(m.end)
	m.close = sync.OnceValue(func() error { return errors.Join(m.finish(), m.file.Close()) })
	return m, nil
}

// Rehearse opens marks as [OpenMarksOn] does, on a disk that is not the real one: generators
// that are opened with them wait by sleep. It also returns what the file has, and where that is.
func Rehearse(disk mark.Disk, path string, sleep tick.Sleeper) (*Marks, mark.Content, string, error) {
	m, err := OpenMarksOn(disk, path, nil, 0)
	if err != nil {
		return nil, mark.Content{}, path, err
	}
	m.sleep = sleep
	return m, m.saved, m.file.Path(), nil
}

// reserve keeps others from a name until release, and returns the mark of the last
// run under it, or nil. If that is in a file that the generator had of its own, k.former
// is that. A new mark begins only where none can be meant for it.
func (m *Marks) reserve(k *Keeper) (last *mark.Mark, err error) {
	m.saving.Lock()
	defer m.saving.Unlock()
	own, found := m.saved.Marks[k.name]
	_, nameless := m.saved.Marks[""]
	switch {
	case m.ended:
		return nil, errEnded
	case m.names[k.name]:
		err = fmt.Errorf("%s: another generator keeps its mark as %q", m.file.Path(), k.name)
	case found:
	case k.alone && len(m.saved.Marks) > 0:
		err = m.file.Refuse("it has the marks of generators with names, and none without; open it with OpenMarks")
	case nameless && len(m.saved.Marks) == 1 && !m.names[""]:
		err = m.file.Refuse("it has the mark of one generator, without a name; open that with the empty name first, or another file")
	case k.name != "":
		k.former, own, err = m.file.Former(k.name)
		found = k.former != nil
	}
	if err != nil {
		return nil, fmt.Errorf("flake: %w", err)
	}
	m.names[k.name] = true
	if !found {
		return nil, nil
	}
	k.latest = own.Latest
	return &own, nil
}

// Names returns the names of the marks in the file, sorted.
func (m *Marks) Names() []string {
	m.saving.Lock()
	defer m.saving.Unlock()
	return slices.Sorted(maps.Keys(m.saved.Marks))
}

// Known reports whether the file had marks when it was opened.
func (m *Marks) Known() bool { return m.known }

// Latest is a time that no id of any generator is later than that ever kept a mark in the
// file, also of those that have ended.
func (m *Marks) Latest() uint64 {
	m.saving.Lock()
	defer m.saving.Unlock()
	return latest(m.saved)
}

func latest(c mark.Content) (milli uint64) {
	for _, m := range c.Marks {
		milli = max(milli, m.Latest)
	}
	return milli
}

// before is a time that no id is later than of the generators that have ended.
func (m *Marks) before() uint64 {
	m.saving.Lock()
	defer m.saving.Unlock()
	return m.latest
}

// Number returns the number that the file keeps, or nil. After a crash it may be one that
// was about to be remembered, and is durable with the next save.
func (m *Marks) Number() *mark.Number {
	m.saving.Lock()
	defer m.saving.Unlock()
	if m.saved.Number == nil {
		return nil
	}
	number := *m.saved.Number
	return &number
}

// Remember has the file keep another number, nil for none, and returns once that is durable,
// with the marks moved ahead. On an error [Marks.Number] is still the one before. It can
// also be called between Finish and Close.
func (m *Marks) Remember(number *mark.Number) error {
	m.saving.Lock()
	defer m.saving.Unlock()
	if number != nil {
		its := *number
		number = &its
	}
	return m.write(number)
}

func (m *Marks) release(name string) {
	m.saving.Lock()
	defer m.saving.Unlock()
	delete(m.names, name)
}

// add has the mark of one more generator kept.
func (m *Marks) add(k *Keeper) error {
	m.saving.Lock()
	defer m.saving.Unlock()
	m.kept = append(m.kept, k)
	err := m.save()
	if err == nil {
		k.asked() // from here on
		return nil
	}
	m.kept = m.kept[:len(m.kept)-1]
	if !errors.Is(err, errEnded) {
		err = fmt.Errorf("%w; free the disk or make the file and its folder writable, or set another timestamp_path", err)
	}
	return err
}

// renew moves the marks ahead and lets the sources use the time up to them. It
// fails with [tick.ErrTimestampNotSaved] or [tick.ErrClosed].
func (m *Marks) renew() error {
	m.saving.Lock()
	defer m.saving.Unlock()
	return m.save()
}

func (m *Marks) save() error {
	if m.ended {
		return errEnded
	}
	return m.write(m.saved.Number)
}

// write writes the next marks of all that are kept, and a number.
func (m *Marks) write(number *mark.Number) error {
	next := mark.Content{Marks: map[string]mark.Mark{}, Number: number, Workers: map[string]mark.Worker{}}
	maps.Copy(next.Marks, m.saved.Marks)
	maps.Copy(next.Workers, m.saved.Workers)
	maps.Copy(next.Workers, m.drawn)
	for _, k := range m.kept {
		next.Marks[k.name] = k.next()
	}
	start := time.Now()
	err := m.file.Save(next)
	took := time.Since(start)
	for _, k := range m.kept {
		k.told(took)
		if err == nil {
			k.settle(next.Marks[k.name].Milli)
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", tick.ErrTimestampNotSaved, err)
	}
	m.saved = next
	clear(m.drawn)
	return nil
}

// beat looks at the clocks, and moves the marks if it is time to: there were ids of
// late, one has to be moved all the same, or the last attempt failed.
func (m *Marks) beat() {
	m.saving.Lock()
	defer m.saving.Unlock()
	due := m.attempts.Err() != nil || m.linger == 0
	m.quiet++
	for _, k := range m.kept {
		if k.watch(); k.asked() {
			m.quiet = 0
		}
		due = k.stale() || due
	}
	if due || m.quiet < m.linger {
		m.attempts.Settle(m.save())
	}
}

// begin has the marks kept ahead from here on.
func (m *Marks) begin(beat <-chan time.Time) {
	m.stopped = make(chan struct{})
	go m.run(beat)
}

// run looks at each beat whether the marks are to be moved, and moves them at once
// when it is asked to.
func (m *Marks) run(beat <-chan time.Time) {
	defer close(m.stopped)
	for {
		select {
		case <-m.open.Done():
			return
		case <-beat:
			m.beat()
		case <-m.attempts.Asked():
			m.attempts.Settle(m.renew())
		}
	}
}

// tell logs trouble with the file when it begins, and when it ends.
func (m *Marks) tell(before, err error) {
	slow := m.attempts.Slow()
	switch {
	case err == slow:
		m.log.Error("the timestamp is not saved in time: ids go on to the mark, and then stop until it is", "file", m.file.Path(), "err", err)
	case err != nil && (before == nil || before == slow):
		m.log.Error("the timestamp cannot be saved: ids go on to the mark, and then stop until it can", "file", m.file.Path(), "err", err)
	case err == nil && before != nil:
		m.log.Info("the timestamp is saved again", "file", m.file.Path())
	}
}

// drop ends a generator, or with nil all, brings its mark back from ahead of the
// clock, and writes the file.
func (m *Marks) drop(one *Keeper) (err error) {
	m.saving.Lock()
	defer m.saving.Unlock()
	rest := slices.DeleteFunc(slices.Clone(m.kept), func(k *Keeper) bool {
		k.ended = one == nil || k == one
		return k.ended
	})
	if len(rest) < len(m.kept) {
		err = m.save()
		m.kept = rest
	}
	if m.ended = m.ended || one == nil; one != nil {
		m.latest = max(m.latest, m.saved.Marks[one.name].Latest)
		delete(m.names, one.name)
	}
	return err
}

// Finish ends all generators as their own Close does; [Marks.Remember] still writes the
// file. A second Finish gives what the first did.
func (m *Marks) Finish() error { return m.finish() }

// Close is Finish, if that was not called, and gives up the lock. A second Close gives
// what the first did.
func (m *Marks) Close() error { return m.close() }

func (m *Marks) end() error {
	m.stop()
	if m.stopped != nil {
		<-m.stopped
	}
	err := m.drop(nil)
	m.attempts.End(err)
	return err
}
