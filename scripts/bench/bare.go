package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
	"github.com/flake-go/flake/node/wire"
)

const (
	patience = 10 * time.Second     // with a silent server
	again    = 2 * time.Millisecond // between two calls of first
	maxFrame = 64 << 10
	maxBare  = 1024 // goroutines that call on one connection
)

// A bareClient is a connection on which goroutines call for ids side by side, with the
// least that this takes in Go: one goroutine writes calls encoded beforehand, all that are
// there at a time, and another hands each reply, undecoded, to the first waiting caller.
type bareClient struct {
	conn    net.Conn
	calls   chan chan error // of callers
	waiting chan chan error // of callers whose call is written
}

// dialBare connects to the node named peer at addr.
func dialBare(addr, peer string) (*bareClient, error) {
	conn, call, err := shakeHands(addr, peer)
	if err != nil {
		return nil, err
	}
	conn.SetDeadline(time.Time{})
	c := &bareClient{conn, make(chan chan error, maxBare), make(chan chan error, maxBare)}
	go c.write(call)
	go c.read()
	return c, nil
}

// call makes a call and waits for its reply.
func (c *bareClient) call() error {
	done := make(chan error, 1)
	c.calls <- done
	return <-done
}

// close ends the connection. No call may be in progress.
func (c *bareClient) close() error {
	close(c.calls)
	return c.conn.Close()
}

func (c *bareClient) write(call []byte) {
	defer close(c.waiting)
	var frames []byte
	for done := range c.calls {
		frames = append(frames[:0], call...)
		c.waiting <- done
		for range len(c.calls) {
			c.waiting <- <-c.calls
			frames = append(frames, call...)
		}
		c.conn.Write(frames) // read sees an error
	}
}

func (c *bareClient) read() {
	r := bufio.NewReaderSize(c.conn, 64<<10)
	for {
		frame, err := wire.Read(r, maxFrame)
		if err == nil && len(frame) == 0 { // a tick
			continue
		}
		done, ok := <-c.waiting
		if !ok {
			return
		}
		done <- err
	}
}

var bareClients atomic.Uint32

// shakeHands connects to a node, and returns the frame of gen_server:call(flake, get), as
// a C node sends it:
//
//	{6, Pid, '', flake}    {'$gen_call', {Pid, Ref}, get}
func shakeHands(addr, peer string) (conn net.Conn, call []byte, err error) {
	if conn, err = net.DialTimeout("tcp", addr, patience); err != nil {
		return nil, nil, err
	}
	conn.SetDeadline(time.Now().Add(patience))
	node := fmt.Sprintf("bare%d@127.0.0.1", bareClients.Add(1))
	if _, err = handshake.Start(conn, peer, handshake.Options{Node: node, Creation: 1, Cookie: cookie}); err == nil {
		self, ref := etf.NewPid(etf.Atom(node), 1, 0, 1), etf.NewRef(etf.Atom(node), 1, 1, 2, 3)
		call, err = wire.Append(nil, etf.AllCaps,
			etf.Tuple{int64(wire.OpRegSend), self, etf.Atom(""), etf.Atom("flake")},
			etf.Tuple{etf.Atom("$gen_call"), etf.Tuple{self, ref}, etf.Atom("get")})
	}
	if err != nil {
		conn.Close()
		return nil, nil, fmt.Errorf("%s: %w", peer, err)
	}
	return conn, call, nil
}

// first connects to a node and calls for an id until one arrives: a node that starts is
// up before its gen_servers are.
func first(addr, peer string) error {
	conn, call, err := shakeHands(addr, peer)
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
			return isID(reply)
		case !errors.Is(err, os.ErrDeadlineExceeded) || time.Now().After(end):
			return err
		}
	}
}

// readFrame reads one frame that is not a tick, without its length.
func readFrame(r io.Reader) ([]byte, error) {
	for buffered := bufio.NewReader(r); ; {
		if frame, err := wire.Read(buffered, maxFrame); err != nil || len(frame) > 0 {
			return frame, err
		}
	}
}

// isID returns an error unless a frame is a reply with an id:
//
//	{2, '', Pid}    {Ref, {ok, Id}}
func isID(frame []byte) error {
	var m wire.Message
	if err := m.Decode(frame[1:]); err != nil {
		return err
	}
	term, err := etf.Decode(m.Payload)
	if err != nil {
		return err
	}
	if answer, ok := term.(etf.Tuple); ok && len(answer) == 2 {
		if reply, ok := answer[1].(etf.Tuple); ok && len(reply) == 2 && reply[0] == etf.Atom("ok") {
			return nil
		}
	}
	return fmt.Errorf("not an id: %s", etf.Format(nil, term))
}
