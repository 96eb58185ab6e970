package durable

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/flake-go/flake/flake/internal/mark"
	"github.com/flake-go/flake/flake/internal/tick"
)

var errSlow = fmt.Errorf("%w: the disk has not answered for %v", tick.ErrTimestampNotSaved, Patience)

// Marks is a file that keeps the marks of several generators, each under a name.
// It is written once a second for all of them, and not while nobody asks for ids.
// Close it when done.
type Marks struct {
	file *mark.File
	log  *slog.Logger

	saving sync.Mutex // held while the file is written
	marks  mark.Marks // what is to be in it; under saving
	kept   []*Keeper  // whose marks are kept ahead; under saving
	ended  bool       // under saving
	linger int        // beats without ids until the marks stay; 0: they never do
	quiet  int        // beats since there were ids; under saving

	mu    sync.Mutex
	round chan struct{} // closed when the next attempt at the file ends
	err   error         // what the last one came to

	kick, stop chan struct{}
	stopped    chan struct{} // closed when run has ended; nil if it was not begun
	closing    sync.Once
	closeErr   error
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

// OpenMarksOn is [OpenMarks] on a disk, but for the keeping ahead. The marks are moved
// until there have been no ids for linger beats; 0: for ever.
func OpenMarksOn(disk mark.Disk, path string, log *slog.Logger, linger int) (*Marks, error) {
	file, marks, err := mark.Open(disk, path)
	if err != nil {
		return nil, fmt.Errorf("flake: %w", err)
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Marks{
		file: file, log: log, marks: marks, linger: linger, quiet: linger,
		round: make(chan struct{}), kick: make(chan struct{}, 1), stop: make(chan struct{}),
	}, nil
}

// last gives the mark of the last run under a name, and whether there was one. It
// may have had a file of its own then.
func (m *Marks) last(name string) (last mark.Mark, found bool, err error) {
	m.saving.Lock()
	defer m.saving.Unlock()
	if last, found = m.marks[name]; found || name == "" {
		return last, found, nil
	}
	former, err := m.file.Former(name)
	if err != nil {
		return last, false, fmt.Errorf("flake: %w", err)
	}
	last, found = former[""]
	return last, found, nil
}

// add has the mark of one more generator kept.
func (m *Marks) add(k *Keeper) error {
	m.saving.Lock()
	defer m.saving.Unlock()
	if slices.ContainsFunc(m.kept, func(other *Keeper) bool { return other.name == k.name }) {
		return fmt.Errorf("flake: %s: another generator keeps its mark as %q", m.file.Path(), k.name)
	}
	before, found := m.marks[k.name]
	m.kept = append(m.kept, k)
	err := m.save()
	if err == nil {
		k.asked() // from here on
		return nil
	}
	m.kept = m.kept[:len(m.kept)-1]
	if m.marks[k.name] = before; !found {
		delete(m.marks, k.name)
	}
	return fmt.Errorf("%w; free the disk or make the file and its folder writable, or set another timestamp_path", err)
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
		return tick.ErrClosed
	}
	for _, k := range m.kept {
		m.marks[k.name] = k.next()
	}
	start := time.Now()
	err := m.file.Save(m.marks)
	took := time.Since(start)
	for _, k := range m.kept {
		k.told(took)
		if err == nil {
			k.settle(m.marks[k.name].Milli)
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", tick.ErrTimestampNotSaved, err)
	}
	return nil
}

// look looks at the clocks, and tells whether it is time to move the marks: there
// were ids of late, one has to be moved all the same, or the last attempt failed.
func (m *Marks) look() bool {
	m.saving.Lock()
	defer m.saving.Unlock()
	_, err := m.state()
	due := err != nil || m.linger == 0
	m.quiet++
	for _, k := range m.kept {
		k.watch()
		due = k.stale() || due
		if k.asked() {
			m.quiet = 0
		}
	}
	return due || m.quiet < m.linger
}

// state gives the attempt at the file that is under way or comes next, and what
// the last one came to.
func (m *Marks) state() (round chan struct{}, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.round, m.err
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
		case <-m.stop:
			return
		case <-beat:
			m.beat()
		case <-m.kick:
			m.settle(m.renew())
		}
	}
}

func (m *Marks) beat() {
	if m.look() {
		m.settle(m.renew())
	}
}

// settle notes what an attempt came to, and wakes those who await it.
func (m *Marks) settle(err error) {
	m.mu.Lock()
	before := m.err
	m.err = err
	close(m.round)
	m.round = make(chan struct{})
	m.mu.Unlock()
	switch {
	case err != nil && (before == nil || errors.Is(before, errSlow)):
		m.log.Error("the timestamp cannot be saved: ids go on to the mark, and then stop until it can", "err", err)
	case err == nil && before != nil:
		m.log.Info("the timestamp is saved again", "path", m.file.Path())
	}
}

// slow notes that an attempt takes too long, so that the next callers do not
// wait for it.
func (m *Marks) slow(round chan struct{}) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.round == round && m.err == nil {
		m.err = errSlow
		m.log.Error(errSlow.Error(), "path", m.file.Path())
	}
	return errSlow
}

// end ends a generator, or with nil all, brings its mark back from ahead of the
// clock, and writes the file.
func (m *Marks) end(one *Keeper) (err error) {
	m.saving.Lock()
	defer m.saving.Unlock()
	for _, k := range m.kept {
		k.ended = one == nil || k == one
	}
	if kept := m.kept; slices.ContainsFunc(kept, func(k *Keeper) bool { return k.ended }) {
		err = m.save()
		m.kept = slices.DeleteFunc(kept, func(k *Keeper) bool { return k.ended })
	}
	m.ended = m.ended || one == nil
	return err
}

// Close ends all generators as their own Close does, and gives up the lock. A
// second Close gives what the first did.
func (m *Marks) Close() error {
	m.closing.Do(func() {
		close(m.stop)
		if m.stopped != nil {
			<-m.stopped
		}
		err := m.end(nil)
		m.mu.Lock()
		m.err = err
		m.mu.Unlock()
		m.closeErr = errors.Join(err, m.file.Close())
	})
	return m.closeErr
}
