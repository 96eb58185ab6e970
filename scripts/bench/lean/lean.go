// Package lean calls a gen_server as fast as it answers, to find the server's
// own limit: calls are frames made beforehand, without monitors, so many of
// them on the way at a time, and a call costs no more than to see that an
// answer is there and that its id is larger than the one before.
//
// Start at [Dial].
package lean

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
	"github.com/flake-go/flake/node/wire"
)

// Conn is a connection to a server. One goroutine uses it at a time.
//
// It reads and writes with calls of the system that block, past Go's poller,
// which would need three for each answer that is awaited.
type Conn struct {
	file  *os.File
	fd    int
	calls []byte // depth frames
	size  int    // of one
	depth int
	reply int    // size of an answer
	id    int    // size of the id at its end; 0: none is there
	last  []byte // the last id
	buf   []byte
	n     int // bytes in buf that are part of a frame
}

// patience is how long a server may be silent.
const patience = 10 * time.Second

var names atomic.Uint32

// Dial connects to the node named peer at addr and makes one call. depth is how
// many calls are to be on their way at a time.
func Dial(addr, peer, cookie string, request etf.Term, depth int) (*Conn, error) {
	conn, call, err := shakeHands(addr, peer, cookie, request)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if _, err := conn.Write(call); err != nil {
		return nil, err
	}
	reply, err := readFrame(conn)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", peer, err)
	}
	id, err := idOf(reply)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", peer, err)
	}
	return newConn(conn, call, wire.HeaderSize+len(reply), id, depth)
}

// First connects to a node, and asks for an id until there is one: a node that
// starts is up before its gen_servers are.
func First(addr, peer, cookie string) error {
	conn, call, err := shakeHands(addr, peer, cookie, etf.Atom("get"))
	if err != nil {
		return err
	}
	defer conn.Close()
	for end := time.Now().Add(patience); ; {
		if _, err := conn.Write(call); err != nil {
			return err
		}
		conn.SetReadDeadline(time.Now().Add(again))
		reply, err := readFrame(conn)
		switch {
		case err == nil:
			_, err = idOf(reply)
			return err
		case !errors.Is(err, os.ErrDeadlineExceeded) || time.Now().After(end):
			return err
		}
	}
}

// again is when First asks again.
const again = 2 * time.Millisecond

// shakeHands connects to a node, and returns a call that can be made.
func shakeHands(addr, peer, cookie string, request etf.Term) (conn net.Conn, call []byte, err error) {
	if conn, err = net.DialTimeout("tcp", addr, patience); err != nil {
		return nil, nil, err
	}
	conn.SetDeadline(time.Now().Add(patience))
	self := handshake.Options{
		Node: fmt.Sprintf("lean%d@127.0.0.1", names.Add(1)), Creation: 1, Cookie: cookie,
	}
	if _, err = handshake.Start(conn, peer, self); err == nil {
		call, err = callFrame(etf.Atom(self.Node), request)
	}
	if err != nil {
		conn.Close()
		return nil, nil, fmt.Errorf("%s: %w", peer, err)
	}
	return conn, call, nil
}

func newConn(conn net.Conn, call []byte, reply int, id []byte, depth int) (*Conn, error) {
	file, err := conn.(*net.TCPConn).File()
	if err != nil {
		return nil, err
	}
	c := &Conn{
		file: file, fd: int(file.Fd()), // Fd makes it block
		calls: bytes.Repeat(call, depth), size: len(call), depth: depth,
		reply: reply, id: len(id), last: id, buf: make([]byte, 256<<10),
	}
	limit := syscall.NsecToTimeval(int64(patience))
	for _, option := range []int{syscall.SO_RCVTIMEO, syscall.SO_SNDTIMEO} {
		if err := syscall.SetsockoptTimeval(c.fd, syscall.SOL_SOCKET, option, &limit); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Close ends the connection.
func (c *Conn) Close() error { return c.file.Close() }

// Run calls as long as more, given how many calls were answered, says so, and
// waits for the answers on their way. It returns the number of answers.
func (c *Conn) Run(more func(answered int) bool) (answered int, err error) {
	if err := c.write(c.depth); err != nil {
		return 0, err
	}
	for waiting := c.depth; waiting > 0; {
		n, err := c.read()
		if err != nil {
			return answered, err
		}
		answered += n
		waiting -= n
		if n > 0 && more(answered) {
			if err := c.write(n); err != nil {
				return answered, err
			}
			waiting += n
		}
	}
	return answered, nil
}

func (c *Conn) write(calls int) error {
	for b := c.calls[:calls*c.size]; len(b) > 0; {
		n, err := syscall.Write(c.fd, b)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return os.NewSyscallError("write", err)
		}
		b = b[n:]
	}
	return nil
}

// read takes what has arrived and returns the number of answers in it.
func (c *Conn) read() (answers int, err error) {
	n, err := syscall.Read(c.fd, c.buf[c.n:])
	switch {
	case err == syscall.EINTR:
		return 0, nil
	case err != nil:
		return 0, os.NewSyscallError("read", err)
	case n == 0:
		return 0, io.ErrUnexpectedEOF
	}
	b := c.buf[:c.n+n]
	for len(b) >= wire.HeaderSize {
		size := wire.HeaderSize + int(binary.BigEndian.Uint32(b))
		if size > len(b) && size <= c.reply {
			break
		}
		if size > wire.HeaderSize { // not a tick
			if size != c.reply {
				return answers, fmt.Errorf("an answer of %d bytes, after ones of %d", size, c.reply)
			}
			id := b[size-c.id : size]
			if c.id > 0 && bytes.Compare(id, c.last) <= 0 {
				return answers, fmt.Errorf("id %x after %x", id, c.last)
			}
			copy(c.last, id)
			answers++
		}
		b = b[size:]
	}
	c.n = copy(c.buf, b)
	return answers, nil
}
