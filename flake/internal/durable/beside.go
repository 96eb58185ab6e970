package durable

import "fmt"

// besides ends the name of what is kept beside the mark of a name. No mark can have it.
const besides = "/worker"

// Beside returns the number, up to limit, that is kept beside the mark of a name. If there
// is none it keeps that of fresh, which is written with the next mark, so before any id is
// made with it. Who loses the file loses both.
func (m *Marks) Beside(name string, limit uint64, fresh func() uint64) (number uint64, kept bool, err error) {
	m.saving.Lock()
	defer m.saving.Unlock()
	own, kept := m.marks[name+besides]
	switch {
	case m.ended:
		return 0, false, errEnded
	case !kept:
		own.Words = []uint64{fresh()}
		m.marks[name+besides] = own
	case len(own.Words) != 1 || own.Words[0] > limit:
		return 0, false, fmt.Errorf("flake: %w", m.file.Refuse(fmt.Sprintf("%s in it is no number up to %d", name+besides, limit)))
	}
	return own.Words[0], kept, nil
}
