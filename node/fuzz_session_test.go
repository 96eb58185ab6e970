package node

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/node/distribution"
	"github.com/flake-go/flake/node/etf"
)

// session is one connection of a peer of the fuzzer.
type session struct {
	f      *fuzzer
	name   string
	conn   net.Conn
	random *rand.Rand
	procs  []etf.Pid
	before servers // the servers at the start of the burst
	out    []byte  // frames not yet sent
	stall  atomic.Bool
	ended  chan struct{} // closed at the end of the stream
	gone   bool          // it is ending and needs no answers; guarded by the fuzzer's lock

	mu sync.Mutex
	model
	leaving bool // the peer is ending it
	journal journal
}

// play runs a peer, one connection after another.
func (f *fuzzer) play(name string, random *rand.Rand) {
	var s *session
	for !f.over() {
		next, err := f.connect(name, random)
		if err != nil {
			f.fail("%v", err)
			break
		}
		if s != nil {
			s.join() // the new connection has replaced it
		}
		s = next
		for range 1 + random.IntN(10) {
			if f.over() {
				break
			}
			s.burst()
		}
		if s = s.leave(); s != nil {
			f.count("connections that replace the last")
		}
	}
	if s != nil {
		s.close()
	}
}

func (f *fuzzer) connect(name string, random *rand.Rand) (*session, error) {
	c, err := f.dial(name)
	if err != nil {
		return nil, err
	}
	s := &session{f: f, name: name, conn: c, random: random, model: newModel(), ended: make(chan struct{})}
	for range 1 + random.IntN(6) {
		s.procs = append(s.procs, s.newPid())
	}
	go s.listen()
	return s, nil
}

// burst performs some operations, and then waits for their effects.
func (s *session) burst() {
	now := s.f.servers()
	s.mu.Lock()
	s.lose(now) // servers may have ended since the previous burst
	s.mu.Unlock()
	s.before = now
	killer := s.random.IntN(30) == 0
	n := 1 + s.random.IntN(200)
	for range n {
		s.operate(killer)
		if s.random.IntN(4) == 0 {
			s.flush()
		}
	}
	if s.random.IntN(12) == 0 {
		return // without waiting
	}
	s.settle()
	s.known(true)
}

// known sets whether other peers may forward calls for this one.
func (s *session) known(is bool) {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	if is {
		s.f.sessions[s.name] = s
	} else if s.f.sessions[s.name] == s {
		delete(s.f.sessions, s.name)
	}
}

// leave ends the session in a random way. It may instead return the session, which the peer's next
// connection must then replace.
func (s *session) leave() *session {
	s.known(false)
	if s.random.IntN(2) == 0 {
		s.flush()
		s.await(func(now servers) string { return s.f.unanswered(now, func(p *passed) bool { return p.from == s }) })
	}
	s.f.mu.Lock()
	s.gone = true
	s.f.mu.Unlock()
	s.mu.Lock()
	s.leaving = true
	s.mu.Unlock()
	switch s.random.IntN(6) {
	case 0: // while operations are in progress
		s.write(s.out[:s.random.IntN(len(s.out)+1)])
	case 1: // by a reset
		s.flush()
		s.conn.(*net.TCPConn).SetLinger(0)
	case 2:
		s.flush()
		return s
	case 3: // by a frame that is too long
		s.flush()
		s.write(binary.BigEndian.AppendUint32(nil, distribution.MaxFrame+1))
		s.join()
	case 4: // by a distribution header
		s.flush()
		s.write([]byte{0, 0, 0, 3, 131, 68, 0})
		s.join()
	case 5:
		s.flush()
		s.conn.(*net.TCPConn).CloseWrite()
		s.join()
	}
	s.close()
	return nil
}

func (s *session) close() {
	s.conn.Close()
	s.join()
}

// join waits until nothing more is received.
func (s *session) join() {
	select {
	case <-s.ended:
	case <-time.After(patience):
		s.fail("the connection has not ended")
	}
	s.conn.Close()
}

func (s *session) flush() {
	s.demonitorAnswered()
	s.write(s.out)
	s.out = s.out[:0]
}

// write writes frames. It ignores errors, because reads from the connection then fail too.
func (s *session) write(b []byte) {
	s.conn.SetWriteDeadline(time.Now().Add(patience))
	s.conn.Write(b)
}

// send queues a frame for the next flush.
func (s *session) send(control etf.Tuple, message ...etf.Term) {
	start := len(s.out)
	s.out = appendFrame(s.out, control, message...)
	s.note("sent", s.out[start+5:])
}

func appendFrame(dst []byte, control etf.Tuple, message ...etf.Term) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0, 112)
	for _, t := range append([]etf.Term{control}, message...) {
		dst = append(append(dst, etf.VersionMagic), external(t)...)
	}
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
	return dst
}

// listen handles received frames until the connection ends.
func (s *session) listen() {
	defer close(s.ended)
	r := bufio.NewReader(s.conn)
	for {
		frame, err := frameOf(r)
		s.mu.Lock()
		leaving := s.leaving
		if err == nil {
			err = s.receive(frame)
		}
		s.mu.Unlock()
		if err != nil {
			if !leaving {
				s.fail("%v", err)
			}
			return
		}
		if s.stall.Swap(false) {
			time.Sleep(2 * time.Millisecond) // a slow reader
		}
	}
}

// frameOf reads a frame that is not a tick, and returns it without its length.
func frameOf(r io.Reader) ([]byte, error) {
	for {
		var head [4]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return nil, err
		}
		if n := binary.BigEndian.Uint32(head[:]); n > 0 {
			b := make([]byte, n)
			_, err := io.ReadFull(r, b)
			return b, err
		}
	}
}

// receive decodes a frame and checks it against the model.
func (s *session) receive(frame []byte) error {
	s.note("received", frame[1:])
	r := etf.NewReader(frame[1:])
	r.Version()
	n := r.Tuple()
	op := r.Int()
	var args [6]string
	for i := 1; i < min(n, len(args)); i++ {
		args[i] = string(r.Raw())
	}
	var err error
	switch message := r.Rest(); {
	case op == 2 && n == 3, op == 12 && n == 4, op == 33 && n == 3, op == 34 && n == 4:
		r.Version()
		err = s.message(args[2], r.Rest())
		r = etf.Reader{}
	case len(message) > 0:
		err = fmt.Errorf("operation %d with a message", op)
	case op == 21 && n == 5:
		err = s.down(args[1], args[2], args[3], []byte(args[4]))
	case op == 3 && n == 4:
		err = s.exit(args[1], args[2], []byte(args[3]))
	case op == 1 && n == 3:
		err = s.linkedTo(args[1], args[2])
	case op == 31 && n == 5:
		err = s.spawnReply(args[1], args[2], args[3], []byte(args[4]))
	case op == 36 && n == 4:
		err = s.unlinked(args[1], args[2], args[3])
	default:
		err = fmt.Errorf("operation %d of %d elements", op, n)
	}
	if err == nil {
		err = r.Err()
	}
	return err
}

// journal holds the last frames that a session has sent and received.
type journal struct {
	lines [1000]struct {
		word  string
		terms []byte
		size  int
	}
	n int
}

func (s *session) note(word string, terms []byte) {
	const kept = 200
	j := &s.journal
	if word == "sent" {
		s.mu.Lock()
		defer s.mu.Unlock()
	}
	line := &j.lines[j.n%len(j.lines)]
	j.n++
	line.word, line.size = word, len(terms)
	line.terms = append(line.terms[:0], terms[:min(len(terms), kept)]...)
}

func (s *session) fail(format string, args ...any) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s; the last frames sent and received:", s.name, fmt.Sprintf(format, args...))
	s.mu.Lock()
	for i := max(0, s.journal.n-len(s.journal.lines)); i < s.journal.n; i++ {
		line := s.journal.lines[i%len(s.journal.lines)]
		fmt.Fprintf(&b, "\n%s %d bytes", line.word, line.size)
		r := etf.NewReader(line.terms)
		for r.Err() == nil && len(r.Rest()) > 0 {
			r.Version()
			fmt.Fprintf(&b, " %s", etf.FormatRaw(nil, r.Raw(), 200))
		}
	}
	s.mu.Unlock()
	s.f.fail("%s", b.String())
}
