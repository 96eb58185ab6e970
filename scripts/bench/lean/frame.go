package lean

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/flake-go/flake/node/etf"
)

// Of the distribution protocol.
const (
	passThrough = 112
	opRegSend   = 6
)

// callFrame is gen_server:call(flake, Request) as a C node sends it:
//
//	{6, Pid, '', flake}    {'$gen_call', {Pid, Ref}, Request}
func callFrame(node etf.Atom, request etf.Term) ([]byte, error) {
	self, ref := etf.NewPid(node, 1, 0, 1), etf.NewRef(node, 1, 1, 2, 3)
	b := []byte{0, 0, 0, 0, passThrough}
	for _, term := range []etf.Term{
		etf.Tuple{int64(opRegSend), self, etf.Atom(""), etf.Atom("flake")},
		etf.Tuple{etf.Atom("$gen_call"), etf.Tuple{self, ref}, request},
	} {
		var err error
		if b, err = etf.Append(append(b, etf.VersionMagic), term, etf.AllCaps); err != nil {
			return nil, err
		}
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-head))
	return b, nil
}

// readFrame reads one frame that is no tick.
func readFrame(r io.Reader) ([]byte, error) {
	for {
		b := make([]byte, head)
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, err
		}
		if n := binary.BigEndian.Uint32(b); n > 0 {
			b = append(b, make([]byte, min(n, 1<<16))...)
			_, err := io.ReadFull(r, b[head:])
			return b, err
		}
	}
}

// idOf gives the id that an answer ends in:
//
//	{2, '', Pid}    {Ref, {ok, Id}}
func idOf(frame []byte) ([]byte, error) {
	r := etf.NewReader(frame[head+2:])
	r.Raw()
	rest := r.Rest()
	if len(rest) < 1 {
		return nil, fmt.Errorf("no answer: %x", frame)
	}
	term, err := etf.Decode(rest[1:])
	if err != nil {
		return nil, err
	}
	if answer, ok := term.(etf.Tuple); ok && len(answer) == 2 {
		if reply, ok := answer[1].(etf.Tuple); ok && len(reply) == 2 && reply[0] == etf.Atom("ok") {
			switch id := reply[1].(type) {
			case []byte:
				return id, nil
			case etf.String:
				return []byte(id), nil
			}
		}
	}
	return nil, fmt.Errorf("not an id: %s", etf.Format(nil, term))
}
