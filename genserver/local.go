package genserver

import (
	"context"
	"errors"

	"github.com/flake-go/flake/node/etf"
)

// MaxLocal is the size of the largest answer to Call that a server makes way for.
const MaxLocal = 64 << 10

// ErrNoReply is returned for a call that the server leaves without a reply.
var ErrNoReply = errors.New("the server does not reply")

// Call is gen_server:call of who is no peer, such as a prompt.
func (s *Server) Call(request etf.Term) (reply etf.Term, err error) {
	from := etf.Tuple{s.Pid, etf.List{}}
	message, err := etf.Append(nil, etf.Tuple{etf.Atom("$gen_call"), from, request}, etf.AllCaps)
	var c local
	if err == nil {
		err = s.Receive(message, &c)
	}
	if err != nil {
		return nil, err
	}
	if c.answer == nil {
		return nil, ErrNoReply
	}
	answer, err := etf.Decode(c.answer)
	if err != nil {
		return nil, err
	}
	return answer.(etf.Tuple)[1], nil
}

// local is a caller that waits for its one answer.
type local struct{ answer []byte }

func (*local) Caps() etf.Caps                { return etf.AllCaps }
func (*local) Serial() int                   { return 0 }
func (*local) Context() context.Context      { return context.Background() }
func (*local) Buffer() []byte                { return nil }
func (c *local) Answer(_, _, message []byte) { c.answer = message }
func (c *local) Post(_, _, message []byte)   { c.answer = message }

func (*local) Go(f func()) bool {
	f()
	return true
}

func (c *local) GoInOrder(f func()) bool { return c.Go(f) }

func (*local) Turn(size int) (done func(), ok bool) { return func() {}, size <= MaxLocal }
