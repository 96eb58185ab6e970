package dist

import (
	"github.com/flake-go/flake/node/etf"
)

// aside is the way back of a message that is not handled as the others are: it
// has a trace token, which its answers carry, or has waited in a line.
type aside struct {
	*Conn
	token  []byte // of the answers, or nil
	inLine bool   // handled by the goroutine of a line
}

func (a *aside) Buffer() []byte { return nil }

func (a *aside) Answer(pid, alias, message []byte) { a.Post(pid, alias, message) }

func (a *aside) Post(pid, alias, message []byte) {
	a.send(answer{pid: pid, alias: alias, token: a.token, message: message})
	a.out.poke()
}

func (a *aside) Go(f func()) bool {
	if a.inLine {
		f()
		return true
	}
	return a.Conn.Go(f)
}

func (a *aside) GoInOrder(f func()) bool {
	if a.inLine {
		f()
		return true
	}
	return a.Conn.GoInOrder(f)
}

// answerToken is the seq_trace token of what a process sends in answer to a
// message with the token: as a BEAM does, it counts the message, and says who sends
// it and what number it had seen. Nil of what is no token.
//
//	{Flags, Label, Serial, From, LastSerial}
func (c *Conn) answerToken(p *Process, token []byte) []byte {
	r := etf.NewReader(token)
	r.Tuple()
	flags, label := r.Raw(), r.Raw()
	serial := r.Int()
	r.Pid()
	r.Int()
	if r.Finish() != nil {
		return nil
	}
	b := append(append(etf.AppendTupleHeader(nil, 5), flags...), label...)
	b = etf.AppendInt(b, serial+1)
	b = append(b, c.encode(c.proto.pid(p.ID))...)
	return etf.AppendInt(b, serial)
}
