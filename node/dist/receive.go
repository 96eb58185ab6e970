package dist

import (
	"errors"
	"fmt"
	"log/slog"

	ergo "github.com/ergo-services/ergo/etf"

	"github.com/flake-go/flake/node/etf"
)

var (
	errPassThrough = errors.New("frame does not begin with 112: a distribution header was not agreed on")
	errNoMessage   = errors.New("the message is missing")
)

// operation is how one kind of control message is received.
type operation struct {
	args    int  // elements after the operation
	message bool // a second term follows
	receive func(*Conn, *control) error
}

// operations are the control messages that a peer may send, given what we offer
// in the handshake. Those with a trace token come from a traced process of any
// peer; the token is of no use here.
var operations = [...]operation{
	opLink:           {2, false, (*Conn).recvLink},
	opSend:           {2, true, (*Conn).recvSend},
	opExit:           {3, false, (*Conn).recvExit},
	opUnlink:         {2, false, (*Conn).recvUnlink},
	opRegSend:        {3, true, (*Conn).recvRegSend},
	opGroupLeader:    {2, false, (*Conn).recvIgnored},
	opExit2:          {3, false, (*Conn).recvExit2},
	opSendTT:         {3, true, (*Conn).recvSend},
	opExitTT:         {4, false, (*Conn).recvExit},
	opRegSendTT:      {4, true, (*Conn).recvRegSend},
	opExit2TT:        {4, false, (*Conn).recvExit2},
	opMonitorP:       {3, false, (*Conn).recvMonitor},
	opDemonitorP:     {3, false, (*Conn).recvDemonitor},
	opMonitorPExit:   {4, false, (*Conn).recvMonitorExit},
	opSendSender:     {2, true, (*Conn).recvSend},
	opSendSenderTT:   {3, true, (*Conn).recvSend},
	opAliasSend:      {2, true, (*Conn).recvAliasSend},
	opAliasSendTT:    {3, true, (*Conn).recvAliasSend},
	opSpawnRequest:   {5, true, (*Conn).recvSpawnRequest},
	opSpawnRequestTT: {6, true, (*Conn).recvSpawnRequest},
	opUnlinkID:       {3, false, (*Conn).recvUnlinkID},
	opUnlinkIDAck:    {3, false, (*Conn).recvIgnored},
}

// handle takes one frame. An error ends the connection; what is merely wrong
// inside a frame is logged.
func (c *Conn) handle(frame []byte) error {
	if len(frame) == 0 { // a tick, answered by being alive
		return nil
	}
	if frame[0] != passThrough {
		return errPassThrough
	}
	err := c.control.decode(frame[1:])
	if err == nil {
		err = c.dispatch(&c.control)
	}
	if err != nil {
		c.log.Warn("message dropped", "error", err)
	}
	return nil
}

func (c *Conn) dispatch(m *control) error {
	if m.op < 0 || int(m.op) >= len(operations) || operations[m.op].receive == nil {
		return fmt.Errorf("control message %d is not known", m.op)
	}
	o := &operations[m.op]
	switch {
	case m.n != o.args:
		return fmt.Errorf("control message %d of %d elements, want %d", m.op, m.n+1, o.args+1)
	case o.message && m.message == nil:
		return fmt.Errorf("control message %d: %w", m.op, errNoMessage)
	}
	if err := o.receive(c, m); err != nil {
		return fmt.Errorf("control message %d: %w", m.op, err)
	}
	return nil
}

func (c *Conn) recvIgnored(*control) error { return nil }

func (c *Conn) recvRegSend(m *control) error {
	p, err := c.find(m.args[2])
	if p == nil {
		return err
	}
	return c.deliver(p, m.args[0], m.message)
}

func (c *Conn) recvSend(m *control) error {
	p, err := c.find(m.args[1])
	if p == nil {
		return err
	}
	return c.deliver(p, nil, m.message)
}

func (c *Conn) recvAliasSend(m *control) error {
	taken, err := c.weigh(m.message, ownMessage)
	if err != nil {
		return err
	}
	defer c.proto.shared.give(taken)
	term, err := etf.Decode(m.message)
	if err != nil {
		return err
	}
	return c.router.RouteSendAlias(c.pid(), ergo.Alias(ergoRef(etf.Ref(m.args[1]))), term)
}

// deliver hands a message to a local process. The sender is nil if unknown.
func (c *Conn) deliver(p *Process, from, message []byte) error {
	taken, err := c.weigh(message, ownMessage) // a Handler may make terms of it
	if err != nil {
		return err
	}
	defer c.proto.shared.give(taken)
	if p.Handler != nil {
		return p.Handler.Receive(message, c)
	}
	term, err := etf.Decode(message)
	if err != nil {
		return err
	}
	sender := c.pid()
	if from != nil {
		sender = ergoPid(etf.Pid(from))
	}
	return c.router.RouteSend(sender, p.Pid, term)
}

// find gives the process that a pid or a name stands for, nil if there is none.
func (c *Conn) find(proc []byte) (*Process, error) {
	r := etf.NewReader(proc)
	if isAtom(proc) {
		return c.proto.Processes.Whereis(r.Atom()), nil
	}
	pid := r.Pid()
	if err := r.Finish(); err != nil {
		return nil, err
	}
	p := etf.Pid(pid)
	if string(p.Node()) != c.proto.Node || !c.sameCreation(p) {
		return nil, nil
	}
	return c.proto.Processes.ByPid(ergoPid(p)), nil
}

// sameCreation reports whether a pid with our name is of this run of our node.
// Of an old form only two bits are significant: PID_EXT in the chapter
// "External Term Format".
func (c *Conn) sameCreation(p etf.Pid) bool {
	if etf.Tag(p[0]) == etf.PidExt {
		return p.Creation()&3 == c.proto.Creation&3
	}
	return p.Creation() == c.proto.Creation
}

// recvExit2 is exit(Pid, Reason). Our processes trap exits, so only kill ends one.
func (c *Conn) recvExit2(m *control) error {
	p, err := c.find(m.args[1])
	if p == nil {
		return err
	}
	r := etf.NewReader(m.args[m.n-1])
	if reason := m.args[m.n-1]; isAtom(reason) && string(r.Atom()) == "kill" && p.Kill != nil {
		c.log.Warn("process killed by exit(Pid, kill)", "pid", p.Pid, "by", text(m.args[0]))
		p.Kill()
		return nil
	}
	return c.trapped(p, m.args[0], m.args[m.n-1])
}

// trapped delivers an exit signal as the message {'EXIT', From, Reason}.
func (c *Conn) trapped(p *Process, from, reason []byte) error {
	message := etf.AppendTupleHeader(nil, 3)
	message = append(message, c.atom("EXIT")...)
	message = append(message, from...)
	message = append(message, reason...)
	return c.deliver(p, from, message)
}

// text is a term as Erlang text, made only if it is logged.
type text []byte

func (t text) LogValue() slog.Value {
	const shown = 200
	return slog.StringValue(string(etf.FormatRaw(nil, t, shown)))
}
