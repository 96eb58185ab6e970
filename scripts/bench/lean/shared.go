package lean

import (
	"bufio"
	"net"
	"time"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/wire"
)

// Shared is a connection on which goroutines call side by side, with the least that
// this takes in Go: one goroutine writes the calls of all, made beforehand, as many at a
// time as are there, and another gives each answer, unread, to the first who waits.
type Shared struct {
	conn    net.Conn
	calls   chan chan error // those who call
	waiting chan chan error // those whose call is written
}

// MaxShared bounds the goroutines that call at a time.
const MaxShared = 1024

// DialShared connects to the node named peer at addr.
func DialShared(addr, peer, cookie string) (*Shared, error) {
	conn, call, err := shakeHands(addr, peer, cookie, etf.Atom("get"))
	if err != nil {
		return nil, err
	}
	conn.SetDeadline(time.Time{})
	s := &Shared{conn, make(chan chan error, MaxShared), make(chan chan error, MaxShared)}
	go s.write(call)
	go s.read()
	return s, nil
}

// Call makes a call and waits for its answer.
func (s *Shared) Call() error {
	done := make(chan error, 1)
	s.calls <- done
	return <-done
}

// Close ends the connection, when no call is under way.
func (s *Shared) Close() error {
	close(s.calls)
	return s.conn.Close()
}

func (s *Shared) write(call []byte) {
	defer close(s.waiting)
	var frames []byte
	for done := range s.calls {
		frames = append(frames[:0], call...)
		s.waiting <- done
		for range len(s.calls) {
			s.waiting <- <-s.calls
			frames = append(frames, call...)
		}
		s.conn.Write(frames) // read sees an error
	}
}

func (s *Shared) read() {
	r := bufio.NewReaderSize(s.conn, 64<<10)
	for {
		frame, err := wire.Read(r, maxFrame)
		if err == nil && len(frame) == 0 {
			continue
		}
		done, ok := <-s.waiting
		if !ok {
			return
		}
		done <- err
	}
}
