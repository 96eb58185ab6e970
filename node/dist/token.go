package dist

import (
	"github.com/flake-go/flake/node/etf"
)

// answerToken is the seq_trace token of an answer to a message with this token. As in
// a BEAM, it counts the message, and says who sends it and which number the sender had
// seen. It is nil for what is not a token.
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
