package genserver

import (
	"encoding/binary"

	"github.com/flake-go/flake/node/etf"
)

// Many is a Handler that answers many calls at once.
type Many interface {
	// HandlesMany reports whether calls of a request may go to HandleCalls. Their
	// answers have to be small: many are made before any is written.
	HandlesMany(request []byte) bool
	// HandleCalls puts together answers to up to n calls of one request, all of one
	// size and each a reply behind a gap of as many octets, in the caller's Buffer,
	// and tells how many. What is left is handled call by call.
	HandleCalls(request []byte, n, gap int, c Caller) (answers []byte, many int)
}

// Queue is a Caller that tells what it has said besides.
type Queue interface {
	Caller
	// Alike takes messages that have arrived next and are this one over again but
	// for its octets [from:to). Who takes them has to answer them.
	Alike(message []byte, from, to int) [][]byte
	// AnswerAll is Answer to one process for n messages of one size.
	AnswerAll(pid, messages []byte, n int)
}

// receiveAlike answers the calls that have arrived behind one and differ from it in
// nothing but the words of their references: a process that has many calls on their
// way sends such.
func (s *Server) receiveAlike(many Many, message []byte, from From, request []byte, q Queue) {
	end := len(message) - len(request)
	start := end - len(from.Tag)
	messages := q.Alike(message, end-wordsOf(from.Tag), end)
	if len(messages) == 0 {
		return
	}
	gap := len(from.Begin(q.Buffer()))
	answers, n := many.HandleCalls(request, len(messages), gap, q)
	if n > 0 {
		size := len(answers) / n
		for i, m := range messages[:n] {
			from.Tag = m[start:end]
			from.Begin(answers[:i*size]) // in the gap
		}
		q.AnswerAll(from.Pid, answers, n)
	}
	for _, m := range messages[n:] {
		from.Tag = m[start:end]
		s.call(from, request, q)
	}
}

// wordsOf is how many octets the words of a reference are, at its end; of anything
// else none.
func wordsOf(tag []byte) int {
	switch etf.Tag(tag[0]) {
	case etf.NewReferenceExt, etf.NewerReferenceExt:
		return 4 * int(binary.BigEndian.Uint16(tag[1:]))
	}
	return 0
}
