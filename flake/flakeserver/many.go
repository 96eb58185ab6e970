package flakeserver

import (
	"slices"

	"github.com/flake-go/flake/genserver"
)

var _ genserver.Many = (*Server)(nil)

// HandlesMany is true of get.
func (s *Server) HandlesMany(request []byte) bool {
	var q Request
	q.decode(request)
	return q == Request{Op: OpGet}
}

// HandleCalls answers many calls of get with a run of ids, which is had for the
// price of one. The answers differ in nothing but the id, which they end in.
func (s *Server) HandleCalls(_ []byte, n, gap int, c genserver.Caller) (answers []byte, many int) {
	run, err := s.IDs.Reserve(c.Context(), min(n, share), 0)
	if err != nil {
		return nil, 0 // as each call will be told
	}
	r := Reply{Op: OpGet, Format: s.IDs.Format(), ID: run.First}
	answers = slices.Grow(c.Buffer(), gap)[:gap]
	answers = r.AppendTerm(answers, c.Caps())
	size, id := len(answers), r.Format.Size()
	answers = slices.Grow(answers, (run.Count-1)*size)
	for i := 1; i < run.Count; i++ {
		answers = append(answers, answers[:size-id]...)
		answers = run.First.Plus(i).AppendOctets(answers, id)
	}
	s.counts.addMany(c.Serial(), &r, run.Count)
	return answers, run.Count
}
