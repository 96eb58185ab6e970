package dist

import (
	"fmt"

	"github.com/flake-go/flake/node/etf"
)

// maxArguments is how many elements follow the operation of any control message.
const maxArguments = 6

// control is a control message taken apart, and what follows it.
type control struct {
	op      op
	args    [maxArguments][]byte // the elements after the operation, each a term
	n       int
	message []byte // what follows, nil if nothing does; to be one term, which is not checked yet
}

// decode reads a frame, past its pass-through byte. The parts are of the frame.
func (m *control) decode(frame []byte) error {
	m.message = nil
	r := etf.NewReader(frame)
	r.Version()
	m.n = r.Tuple() - 1
	m.op = op(r.Int())
	if err := r.Err(); err != nil {
		return err
	}
	if m.n < 0 || m.n > maxArguments {
		return fmt.Errorf("control message %d of %d elements, want 1 to %d", m.op, m.n+1, maxArguments+1)
	}
	for i := range m.n {
		m.args[i] = r.Raw()
	}
	if len(r.Rest()) == 0 {
		return r.Finish()
	}
	r.Version()
	m.message = r.Rest()
	return r.Err()
}

// tokenAt gives the trace token that is the i-th argument, nil if there is none:
// the elements that a message has without it are no more than i.
func (m *control) tokenAt(i int) []byte {
	if i < m.n {
		return m.args[i]
	}
	return nil
}

// isAtom reports whether the term is an atom.
func isAtom(term []byte) bool { return etf.Tag(term[0]).IsAtom() }
