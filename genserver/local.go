package genserver

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/flake-go/flake/node/etf"
)

// MaxLocal is the size of the largest answer to Call for which there is room.
const MaxLocal = 64 << 10

// ErrNoReply is returned for a call that the server leaves without a reply.
var ErrNoReply = errors.New("the server does not reply")

// Call is gen_server:call for a caller that is not a peer, such as a prompt.
func (s *Server) Call(request etf.Term) (reply etf.Term, err error) {
	b, err := etf.Append(nil, request, etf.AllCaps)
	if err != nil {
		return nil, err
	}
	var c local
	s.Handler.HandleCall(Call{&c, From{Pid: []byte(s.Pid), Tag: etf.AppendNil(nil)}, b})
	if c.answer == nil {
		return nil, ErrNoReply
	}
	answer, err := etf.Decode(c.answer)
	if err != nil {
		return nil, err
	}
	return answer.(etf.Tuple)[1], nil
}

// local is a caller that waits for a single answer.
type local struct {
	answer []byte
	given  atomic.Uint64
}

func (*local) Caps() etf.Caps                               { return etf.AllCaps }
func (*local) Context() context.Context                     { return context.Background() }
func (c *local) Given() *atomic.Uint64                      { return &c.given }
func (*local) Buffer() []byte                               { return nil }
func (c *local) Send(_, _, message []byte)                  { c.answer = message }
func (c *local) SendAside(_, _ []byte, build Build)         { c.answer = build(nil, true) }
func (c *local) SendInTurn(_, _ []byte, n int, build Build) { c.answer = build(nil, n <= MaxLocal) }
