package lean

import (
	"bufio"
	"fmt"
	"io"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/wire"
)

// callFrame is gen_server:call(flake, Request) as a C node sends it:
//
//	{6, Pid, '', flake}    {'$gen_call', {Pid, Ref}, Request}
func callFrame(node etf.Atom, request etf.Term) ([]byte, error) {
	self, ref := etf.NewPid(node, 1, 0, 1), etf.NewRef(node, 1, 1, 2, 3)
	return wire.Append(nil, etf.AllCaps,
		etf.Tuple{int64(wire.OpRegSend), self, etf.Atom(""), etf.Atom("flake")},
		etf.Tuple{etf.Atom("$gen_call"), etf.Tuple{self, ref}, request})
}

// readFrame reads one frame that is no tick, without its length.
func readFrame(r io.Reader) ([]byte, error) {
	for buffered := bufio.NewReader(r); ; {
		if frame, err := wire.Read(buffered, maxFrame); err != nil || len(frame) > 0 {
			return frame, err
		}
	}
}

const maxFrame = 64 << 10

// idOf returns the id that an answer ends in:
//
//	{2, '', Pid}    {Ref, {ok, Id}}
func idOf(frame []byte) ([]byte, error) {
	var m wire.Message
	if err := m.Decode(frame[1:]); err != nil {
		return nil, err
	}
	term, err := etf.Decode(m.Payload)
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
