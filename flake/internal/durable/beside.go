package durable

import (
	"fmt"

	"github.com/flake-go/flake/flake/internal/mark"
)

// Beside returns the number, up to limit, that is kept beside the mark of a name. If there
// is none it gives that of fresh, which is written with the next mark, so before any id is
// made with it. Who loses the file loses both.
func (m *Marks) Beside(name string, limit uint64, fresh func() uint64) (number uint64, kept bool, err error) {
	m.saving.Lock()
	defer m.saving.Unlock()
	own, kept := m.own.Workers[name]
	drawn, again := m.drawn[name]
	switch {
	case m.ended:
		return 0, false, errEnded
	case again:
		return drawn.Worker, false, nil
	case !kept:
		own = mark.Worker{Worker: fresh()}
		m.drawn[name] = own
	case own.Worker > limit:
		return 0, false, fmt.Errorf("flake: %w", m.file.Refuse(fmt.Sprintf("the worker of %q in it is no number up to %d", name, limit)))
	}
	return own.Worker, kept, nil
}
