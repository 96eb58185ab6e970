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

// Marks keeps the marks of several generators in one file, each under a name. One save per
// second covers all of them; while no ids are made, saves are rare. Close it when done.
type Marks struct {
	file *mark.File
	log  *slog.Logger

	saving  sync.Mutex             // guards the fields up to quiet; held while the file is written
	saved   mark.Content           // the file's content
	workers map[string]mark.Worker // workers to write with the next save
	latest  uint64                 // an upper bound on the times of ids of closed generators
	names   map[string]bool        // the names in use
	kept    []*Marker              // the markers whose marks are kept ahead
	ended   bool                   // whether all generators are closed
	quiet   int                    // beats since the last id

	linger   int       // beats without ids after which marks no longer move; 0 means they always move
	alone    bool      // whether the file belongs to one generator, which closes it
	isNew    bool      // whether the file had no marks when it was opened
	warned   sync.Once // for the warning about a new file
	attempts *attempt.Attempts
	sleep    tick.Sleeper // for generators opened on the file

	open    context.Context // done after Finish
	stop    context.CancelFunc
	running sync.WaitGroup // for run
	finish  func() error   // runs once
	close   func() error   // runs once
}

// OpenMarks locks the file at path; if it does not exist, the first generator creates it. It
// fails if the file is locked, damaged, or not a file of marks. A nil logger discards all
// records.
func OpenMarks(path string, log *slog.Logger) (*Marks, error) {
	m, err := OpenMarksOn(mark.OS{}, tick.Sleep, path, log, linger)
	if err == nil {
		m.begin(time.Tick(renewal))
	}
	return m, err
}

// CheckMarks returns the error that [OpenMarks] would return, ignoring locks.
func CheckMarks(path string) error {
	if _, _, err := mark.Open(&mark.Shadow{}, path); err != nil {
		return fmt.Errorf("flake: %w", err)
	}
	return nil
}

// OpenMarksOn is like [OpenMarks], but on a simulated machine, where generators wait by calling
// sleep; the caller must keep the marks ahead. After linger beats without ids the marks no longer
// move; if linger is 0, they always move.
func OpenMarksOn(disk mark.Disk, sleep tick.Sleeper, path string, log *slog.Logger, linger int) (*Marks, error) {
	file, saved, err := mark.Open(disk, path)
	if err != nil {
		return nil, fmt.Errorf("flake: %w", err)
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	m := &Marks{
		file: file, log: log, sleep: sleep, saved: saved, latest: latest(saved),
		workers: map[string]mark.Worker{}, names: map[string]bool{}, linger: linger, quiet: linger,
		isNew: len(saved.Marks) == 0,
	}
	maps.Copy(m.workers, saved.Workers)
	if half := file.Damaged(); half != "" {
		log.Warn(HalfDamaged, "file", file.Path(), "half", half)
	}
	m.attempts = attempt.New(Patience, "the disk", m.report)
	m.open, m.stop = context.WithCancel(context.Background())
	m.finish = sync.OnceValue(m.end)
	m.close = sync.OnceValue(func() error { return errors.Join(m.finish(), m.file.Close()) })
	return m, nil
}

// HalfDamaged is the message about a file for which [Marks.Damaged] is not "".
const HalfDamaged = "half of the file of marks is damaged: the other half has the same marks, and no id repeats; " +
	"the next save mends it, but unless the power failed, check the disk"

// Saved returns the content and the path of the file.
func (m *Marks) Saved() (mark.Content, string) {
	m.saving.Lock()
	defer m.saving.Unlock()
	return m.saved, m.file.Path()
}

// Damaged returns which half of the file was damaged when it was opened, "first" or "second", or "".
func (m *Marks) Damaged() string { return m.file.Damaged() }

// reserve reserves k's name until drop. It returns the last mark under that name or, if there is
// none, an upper bound on the times of the ids of closed generators. It fails rather than start a
// new mark if the file may already have one for this generator.
func (m *Marks) reserve(k *Marker) (last *mark.Mark, floor uint64, err error) {
	m.saving.Lock()
	defer m.saving.Unlock()
	own, found := m.saved.Marks[k.name]
	_, nameless := m.saved.Marks[""]
	switch {
	case m.ended:
		return nil, 0, errEnded
	case m.names[k.name]:
		err = fmt.Errorf("%s: another generator keeps its mark as %q", m.file.Path(), k.name)
	case found:
	case m.alone && len(m.saved.Marks) > 0:
		err = m.file.Refuse("it has only marks with names; open it with OpenMarks")
	case nameless && len(m.saved.Marks) == 1 && !m.names[""]:
		err = m.file.Refuse("it has one mark, without a name; open that with the empty name first, or use another file")
	}
	if err != nil {
		return nil, 0, fmt.Errorf("flake: %w", err)
	}
	m.names[k.name] = true
	if !found {
		return nil, m.latest, nil
	}
	k.latest = own.Latest
	return &own, 0, nil
}

// Names returns the names of the marks in the file, sorted.
func (m *Marks) Names() []string {
	m.saving.Lock()
	defer m.saving.Unlock()
	return slices.Sorted(maps.Keys(m.saved.Marks))
}

// Latest returns an upper bound on the times of the ids of all generators that ever kept a mark
// in the file.
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

// Number returns the number in the file, or nil. After a crash this may be a number for which
// Remember did not return; the next save makes it durable.
func (m *Marks) Number() *mark.Number {
	m.saving.Lock()
	defer m.saving.Unlock()
	if m.saved.Number == nil {
		return nil
	}
	number := *m.saved.Number
	return &number
}

// Remember replaces the number in the file, or erases it if number is nil, and returns once that
// is durable. It also moves the marks. After an error [Marks.Number] returns the old number.
// Remember can also be called between Finish and Close.
func (m *Marks) Remember(number *mark.Number) error {
	m.saving.Lock()
	defer m.saving.Unlock()
	if number != nil {
		its := *number
		number = &its
	}
	return m.write(number)
}

// add starts keeping the mark of a generator and saves it.
func (m *Marks) add(k *Marker) error {
	m.saving.Lock()
	defer m.saving.Unlock()
	m.kept = append(m.kept, k)
	err := m.save()
	if err == nil {
		k.asked() // later calls report ids made from here on
		return nil
	}
	m.kept = m.kept[:len(m.kept)-1]
	if !errors.Is(err, errEnded) && !errors.Is(err, mark.ErrShared) {
		err = fmt.Errorf("%w; free the disk or make the file and its directory writable, or set another timestamp_path", err)
	}
	return err
}

// renew moves the marks, and lets the sources use times up to them. It fails with
// [tick.ErrTimestampNotSaved] or [tick.ErrClosed].
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

// write saves the next marks of all generators, with the given number. If another process may use
// the file, it ends all ids at once.
func (m *Marks) write(number *mark.Number) error {
	next := mark.Content{Marks: map[string]mark.Mark{}, Number: number, Workers: maps.Clone(m.workers)}
	maps.Copy(next.Marks, m.saved.Marks)
	for _, k := range m.kept {
		next.Marks[k.name] = k.next()
	}
	start := time.Now()
	err := m.file.Save(next)
	took := time.Since(start)
	for _, k := range m.kept {
		k.report(took)
		switch {
		case err == nil:
			k.settle(next.Marks[k.name].Milli)
		case errors.Is(err, mark.ErrShared):
			k.source.Halt()
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", tick.ErrTimestampNotSaved, err)
	}
	m.saved = next
	return nil
}

// beat checks the clocks, and moves the marks if ids were made recently, a mark is stale, or the
// last save failed.
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

// begin starts keeping the marks ahead.
func (m *Marks) begin(beat <-chan time.Time) { m.running.Go(func() { m.run(beat) }) }

// run calls beat at each beat, and moves the marks immediately when a caller waits for that.
func (m *Marks) run(beat <-chan time.Time) {
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

// report logs when saving begins to fail, and when it succeeds again.
func (m *Marks) report(before, err error) {
	slow := m.attempts.Slow()
	switch {
	case err == slow:
		m.log.Error("the timestamp is not saved in time: ids will stop at the mark unless it is saved first",
			"file", m.file.Path(), "err", err)
	case errors.Is(err, mark.ErrShared):
		if !errors.Is(before, mark.ErrShared) {
			m.log.Error("the timestamp cannot be saved, and no more ids are made, because another node may make the same: "+
				"stop one of them", "file", m.file.Path(), "err", err)
		}
	case err != nil && (before == nil || before == slow):
		m.log.Error("the timestamp cannot be saved: ids will stop at the mark unless it is saved first",
			"file", m.file.Path(), "err", err)
	case err == nil && before != nil:
		m.log.Info("the timestamp can be saved again", "file", m.file.Path())
	}
}

// drop closes the generator of one and releases its name; if one is nil, drop closes all
// generators. It lowers the marks of the closed generators to the clock and saves. If the
// generator has not begun, drop only releases its name.
func (m *Marks) drop(one *Marker) (err error) {
	m.saving.Lock()
	defer m.saving.Unlock()
	rest := slices.DeleteFunc(slices.Clone(m.kept), func(k *Marker) bool {
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

// Finish closes all generators, as their own Close does. [Marks.Remember] still works afterwards.
// Finishing again returns the same error.
func (m *Marks) Finish() error { return m.finish() }

// Close calls Finish and releases the lock. Closing again returns the same error.
func (m *Marks) Close() error { return m.close() }

func (m *Marks) end() error {
	m.stop()
	m.running.Wait()
	err := m.drop(nil)
	m.attempts.End(err)
	return err
}

// StoredWorker returns the random worker id stored under a mark's name, and whether it is already
// in the file. A worker id above limit is an error. If the file has no worker id, or one drawn on
// another or an unknown machine, StoredWorker draws one with fresh. The new worker id is written
// with the next mark, and so before any id is made with it. If the file is lost, the mark and the
// worker id are lost together.
func (m *Marks) StoredWorker(name, machine string, limit uint64, fresh func() uint64) (
	number uint64, kept bool, err error) {
	m.saving.Lock()
	defer m.saving.Unlock()
	own, found := m.workers[name]
	switch {
	case m.ended:
		return 0, false, errEnded
	case !found || own.Machine != machine:
		own = mark.Worker{Worker: fresh(), Machine: machine}
		m.workers[name] = own
	case own.Worker > limit:
		what := fmt.Sprintf("the worker id of %q in it, %d, is above %d", name, own.Worker, limit)
		return 0, false, fmt.Errorf("flake: %w", m.file.Refuse(what))
	}
	return own.Worker, m.saved.Workers[name] == own, nil
}

// Drawn returns the random worker that is, or is about to be, stored under a mark's name.
func Drawn(m *Marks, name string) mark.Worker {
	m.saving.Lock()
	defer m.saving.Unlock()
	return m.workers[name]
}

// RaiseMark raises the nameless mark in the file at path to at least milli and returns it.
// Nothing else in the file changes. It fails if [OpenMarks] would, if the file cannot be
// written, or if milli is above [mark.Max].
func RaiseMark(path string, milli uint64) (uint64, error) {
	file, c, err := mark.Open(mark.OS{}, path)
	if err != nil {
		return 0, fmt.Errorf("flake: %w", err)
	}
	defer file.Close()
	own := c.Marks[""]
	if own.Milli >= milli {
		return own.Milli, nil
	}
	own.Milli, own.Latest = milli, max(own.Latest, milli)
	if c.Marks == nil {
		c.Marks = map[string]mark.Mark{}
	}
	c.Marks[""] = own
	if err := file.Save(c); err != nil {
		return 0, fmt.Errorf("flake: %w; "+
			"free the disk or make the file and its directory writable, or set another timestamp_path", err)
	}
	return milli, nil
}
