package wire

import (
	"fmt"

	"github.com/flake-go/flake/node/etf"
)

// MaxArguments is the most elements after the operation in any control message.
const MaxArguments = 6

// Message is a decoded control message and its payload.
type Message struct {
	Op      Op
	Args    [MaxArguments][]byte // the elements after the operation, each a term
	N       int                  // how many
	Payload []byte               // what follows, or nil; should be one term, not yet checked
}

// Decode reads a frame, past its pass-through byte. The parts are slices of the frame.
func (m *Message) Decode(frame []byte) error {
	m.Payload = nil
	r := etf.NewReader(frame)
	r.Version()
	m.N = r.Tuple() - 1
	m.Op = Op(r.Int())
	if err := r.Err(); err != nil {
		return err
	}
	if m.N < 0 || m.N > MaxArguments {
		return fmt.Errorf("control message %d has %d elements, must have 1 to %d", m.Op, m.N+1, MaxArguments+1)
	}
	for i := range m.N {
		m.Args[i] = r.Raw()
	}
	if len(r.Rest()) == 0 {
		return r.Finish()
	}
	r.Version()
	m.Payload = r.Rest()
	return r.Err()
}
