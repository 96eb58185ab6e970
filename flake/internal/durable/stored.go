package durable

import (
	"fmt"

	"github.com/flake-go/flake/flake/internal/mark"
)

// StoredWorker returns the random worker id stored under a mark's name, which must be at most
// limit, and whether it is already in the file. If the file has no worker id, or one drawn on
// another or an unknown machine, StoredWorker draws one with fresh. The new worker id is written
// with the next mark, so before any id is made with it. If the file is lost, the mark and the
// worker id are lost together.
func (m *Marks) StoredWorker(name, machine string, limit uint64, fresh func() uint64) (
	number uint64, kept bool, err error) {
	m.saving.Lock()
	defer m.saving.Unlock()
	own, kept := m.saved.Workers[name]
	kept = kept && own.Machine == machine
	drawn := false
	if !kept {
		own, drawn = m.drawn[name]
	}
	switch {
	case m.ended:
		return 0, false, errEnded
	case !kept && !drawn:
		own = mark.Worker{Worker: fresh(), Machine: machine}
		m.drawn[name] = own
	case own.Worker > limit:
		what := fmt.Sprintf("the worker id of %q in it, %d, is above %d", name, own.Worker, limit)
		return 0, false, fmt.Errorf("flake: %w", m.file.Refuse(what))
	}
	return own.Worker, kept, nil
}

// Drawn returns the random worker that is, or is about to be, stored under a mark's name.
func Drawn(m *Marks, name string) mark.Worker {
	m.saving.Lock()
	defer m.saving.Unlock()
	if drawn, ok := m.drawn[name]; ok {
		return drawn
	}
	return m.saved.Workers[name]
}
