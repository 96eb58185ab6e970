package durable

import (
	"fmt"

	"github.com/flake-go/flake/flake/internal/mark"
)

// Beside returns the number, up to limit, that is kept beside the mark of a name, and whether
// it is in the file. If there is none, or it was drawn on another machine or on one that is not
// known, it returns that of fresh, which is written with the next mark, so before any id is made
// with it. Who loses the file loses both.
func (m *Marks) Beside(name, machine string, limit uint64, fresh func() uint64) (number uint64, kept bool, err error) {
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
		what := fmt.Sprintf("the worker id of %q in it, %d, is no number up to %d", name, own.Worker, limit)
		return 0, false, fmt.Errorf("flake: %w", m.file.Refuse(what))
	}
	return own.Worker, kept, nil
}

// Drawn returns the worker that is kept beside the mark of a name, or that is about to be.
func Drawn(m *Marks, name string) mark.Worker {
	m.saving.Lock()
	defer m.saving.Unlock()
	if drawn, ok := m.drawn[name]; ok {
		return drawn
	}
	return m.saved.Workers[name]
}
