package distribution

import (
	"errors"
	"fmt"
	"time"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/wire"
)

var errPassThrough = errors.New("frame does not begin with 112: distribution headers are not supported")

// operation describes how one kind of control message is received.
type operation struct {
	args    string // the elements after the operation, one letter each; see fits
	message bool   // a second term must follow
	receive func(*Conn, *wire.Message) error
}

// operations lists the control messages that a peer may send, given the flags that we offer in the
// handshake. A message from a traced process carries a trace token, and so do the answers to it.
var operations = [...]operation{
	wire.OpLink:           {"pp", false, (*Conn).recvLink},
	wire.OpSend:           {".p", true, (*Conn).recvSend},
	wire.OpExit:           {"pp.", false, (*Conn).recvExit},
	wire.OpUnlink:         {"pp", false, (*Conn).recvUnlink},
	wire.OpRegSend:        {"p.a", true, (*Conn).recvRegSend},
	wire.OpGroupLeader:    {"pp", false, (*Conn).recvIgnored},
	wire.OpExit2:          {"pp.", false, (*Conn).recvExit2},
	wire.OpSendTT:         {".p.", true, (*Conn).recvSend},
	wire.OpExitTT:         {"pp..", false, (*Conn).recvExit},
	wire.OpRegSendTT:      {"p.a.", true, (*Conn).recvRegSend},
	wire.OpExit2TT:        {"pp..", false, (*Conn).recvExit2},
	wire.OpMonitorP:       {"pnr", false, (*Conn).recvMonitor},
	wire.OpDemonitorP:     {"pnr", false, (*Conn).recvDemonitor},
	wire.OpMonitorPExit:   {"npr.", false, (*Conn).recvIgnored},
	wire.OpSendSender:     {"pp", true, (*Conn).recvSend},
	wire.OpSendSenderTT:   {"pp.", true, (*Conn).recvSend},
	wire.OpAliasSend:      {"pr", true, (*Conn).recvIgnored},
	wire.OpAliasSendTT:    {"pr.", true, (*Conn).recvIgnored},
	wire.OpSpawnRequest:   {"rpp..", true, (*Conn).recvSpawnRequest},
	wire.OpSpawnRequestTT: {"rpp...", true, (*Conn).recvSpawnRequest},
	wire.OpUnlinkID:       {"ipp", false, (*Conn).recvUnlinkID},
	wire.OpUnlinkIDAck:    {"ipp", false, (*Conn).recvIgnored},
}

// fits reports whether a term is of the kind that a letter stands for: a pid, a reference, an
// atom, a name or a pid, an integer, or any term.
func fits(term []byte, letter byte) bool {
	switch tag := etf.Tag(term[0]); letter {
	case 'p':
		return tag.IsPid()
	case 'r':
		return tag.IsRef()
	case 'a':
		return tag.IsAtom()
	case 'n':
		return tag.IsAtom() || tag.IsPid()
	case 'i':
		return tag.IsInteger()
	}
	return true
}

// handle handles one frame. An error ends the connection; errors inside a frame are only
// logged.
func (c *Conn) handle(frame []byte) error {
	if len(frame) == 0 { // a tick needs no answer
		c.rest()
		return nil
	}
	if c.calls.began == 0 {
		c.calls.began = time.Since(c.since)
		c.asked.Store(int64(c.calls.began))
	}
	if frame[0] != wire.PassThrough {
		return errPassThrough
	}
	err := c.control.Decode(frame[1:])
	if err == nil {
		err = c.dispatch(&c.control)
	}
	if err != nil {
		c.proto.Log.Warn("message dropped", "peer", c.peer.Name, "err", err)
	}
	return nil
}

func (c *Conn) dispatch(m *wire.Message) error {
	if m.Op < 0 || int(m.Op) >= len(operations) || operations[m.Op].receive == nil {
		return fmt.Errorf("unknown control message %d", m.Op)
	}
	o := &operations[m.Op]
	switch {
	case m.N != len(o.args):
		return fmt.Errorf("control message %d has %d elements: must have %d", m.Op, m.N+1, len(o.args)+1)
	case o.message && m.Payload == nil:
		return fmt.Errorf("control message %d: message is missing", m.Op)
	}
	for i, a := range m.Args[:m.N] {
		if !fits(a, o.args[i]) {
			return fmt.Errorf("control message %d: element %d is a %s", m.Op, i+2, etf.Tag(a[0]))
		}
	}
	if err := o.receive(c, m); err != nil {
		return fmt.Errorf("control message %d: %w", m.Op, err)
	}
	return nil
}

func (c *Conn) recvIgnored(*wire.Message) error { return nil }

func (c *Conn) recvRegSend(m *wire.Message) error { return c.recvFor(2, m) }
func (c *Conn) recvSend(m *wire.Message) error    { return c.recvFor(1, m) }

// recvFor delivers a message to the process in argument i. A trace token may follow that argument.
func (c *Conn) recvFor(i int, m *wire.Message) error {
	p := c.find(m.Args[i])
	if p == nil {
		return nil
	}
	var token []byte
	if i+1 < m.N {
		token = m.Args[i+1]
	}
	return c.hand(p, token, m.Payload)
}

// maxToken bounds the bytes of a trace token. A longer token, such as one with a large label, is
// dropped, because tokens are kept while their messages are handled.
const maxToken = 4 << 10

// hand delivers a message to a process. token is the message's trace token or nil.
func (c *Conn) hand(p *Process, token, message []byte) error {
	if token != nil {
		token = c.answerToken(p, token)
	}
	if c.queues.n.Load() > 0 && c.enqueue(p, token, message) {
		return nil
	}
	taken, err := c.weigh(message, ownMessage) // the process may decode its terms
	if err != nil {
		return err
	}
	m := &c.message
	*m = Message{conn: c, to: p, term: message, token: token, taken: taken, began: c.calls.began}
	defer func() {
		m.release()
		c.memory.give(m.taken)
	}()
	return p.Receive(m)
}

// find returns the process that a pid or a name refers to, or nil.
func (c *Conn) find(proc []byte) *Process {
	if etf.Tag(proc[0]).IsAtom() {
		r := etf.NewReader(proc)
		return c.proto.Processes.Whereis(r.Atom())
	}
	node, id, creation := etf.PidParts(proc)
	ours := c.proto.Creation
	if etf.Tag(proc[0]) == etf.PidExt { // only two bits of its creation are significant
		creation, ours = creation&3, ours&3
	}
	if string(node) != c.proto.Node || creation != ours {
		return nil
	}
	return c.proto.Processes.ByID(id)
}

// recvExit handles the end of a peer's process that was linked to one of ours.
func (c *Conn) recvExit(m *wire.Message) error {
	from, to, reason := m.Args[0], m.Args[1], m.Args[m.N-1]
	if !c.unlink(from, to) {
		return nil
	}
	if p := c.find(to); p != nil {
		return c.trapped(p, from, reason)
	}
	return nil
}

// recvExit2 handles exit(Pid, Reason). Our processes trap exits: only kill ends them.
func (c *Conn) recvExit2(m *wire.Message) error {
	p := c.find(m.Args[1])
	if p == nil {
		return nil
	}
	reason := m.Args[m.N-1]
	if r := etf.NewReader(reason); string(r.Atom()) == "kill" && p.Kill != nil {
		c.proto.Log.Warn("process killed by exit(Pid, kill)", "peer", c.peer.Name,
			"process", text(m.Args[1]), "by", text(m.Args[0]))
		p.Kill()
		return nil
	}
	return c.trapped(p, m.Args[0], reason)
}

// trapped delivers an exit signal as the message {'EXIT', From, Reason}.
func (c *Conn) trapped(p *Process, from, reason []byte) error {
	message := etf.AppendTupleHeader(nil, 3)
	message = append(message, c.atom("EXIT")...)
	message = append(message, from...)
	message = append(message, reason...)
	return c.hand(p, nil, message)
}

// text returns a term as text for the log.
func text(term []byte) string {
	const shown = 200
	return string(etf.FormatRaw(nil, term, shown))
}

// answerToken returns the seq_trace token for the answer to a message with this token, or nil if
// the token is malformed or too long. As on a BEAM, the new token has the next serial number, and
// names the sender of the answer and the last serial number that the sender saw.
//
//	{Flags, Label, Serial, From, LastSerial}
func (c *Conn) answerToken(p *Process, token []byte) []byte {
	r := etf.NewReader(token)
	r.Tuple()
	flags, label := r.Raw(), r.Raw()
	serial := r.Int()
	r.Pid()
	r.Int()
	if r.Finish() != nil || len(token) > maxToken {
		return nil
	}
	b := append(append(etf.AppendTupleHeader(nil, 5), flags...), label...)
	b = etf.AppendInt(b, serial+1)
	b = append(b, c.encode(p.ID)...)
	return etf.AppendInt(b, serial)
}
