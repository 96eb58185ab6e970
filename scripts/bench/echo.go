package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"strings"

	"github.com/flake-go/flake/node/epmd"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
	"github.com/flake-go/flake/node/socket"
	"github.com/flake-go/flake/node/wire"
)

// The echo is the floor: a node that reads connections as flake does and answers each call with as
// many bytes, but checks and stores nothing. It is this program, run with the arguments echo and
// the node's name.

func (w *world) echo() *server {
	s := &server{node: "echo@" + w.near.host}
	s.cmd = w.command(self, "echo", s.node)
	return s
}

func serveEcho(node string) {
	fail := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}
	_, host, _ := strings.Cut(node, "@")
	l, err := net.Listen("tcp", host+":0")
	fail(err)
	listening := epmd.Node{Name: shortName(node), Port: uint16(l.Addr().(*net.TCPAddr).Port)}
	registered, err := epmd.Register(context.Background(), "127.0.0.1:"+os.Getenv("ERL_EPMD_PORT"), listening)
	fail(err)
	defer registered.Close()
	for {
		c, err := l.Accept()
		fail(err)
		go func() {
			defer c.Close()
			if err := echo(c, node); err != io.EOF {
				fmt.Println(err)
			}
		}()
	}
}

// An echoer answers the calls on a connection.
type echoer struct {
	self   etf.Pid
	ids    uint64
	m      wire.Message
	answer []byte
}

func echo(c net.Conn, node string) error {
	if _, err := handshake.Accept(c, handshake.Options{Node: node, Creation: 1, Cookie: cookie}); err != nil {
		return err
	}
	c = socket.Adopt(c)
	defer c.Close()
	e := echoer{self: etf.NewPid(etf.Atom(node), 1, 0, 1)}
	buf, waiting := make([]byte, 64<<10), 0
	return socket.Serve(c, func() error {
		n, err := c.Read(buf[waiting:])
		if err != nil {
			return err
		}
		waiting = copy(buf, e.all(buf[:waiting+n]))
		if len(e.answer) > 0 {
			_, err = c.Write(e.answer)
		}
		return err
	})
}

// all answers the complete frames in b, and a tick with a tick. It returns the rest of b.
func (e *echoer) all(b []byte) []byte {
	e.answer = e.answer[:0]
	for len(b) >= wire.HeaderSize {
		size := wire.HeaderSize + int(binary.BigEndian.Uint32(b))
		if size > len(b) {
			break
		}
		if size == wire.HeaderSize {
			e.answer = append(e.answer, 0, 0, 0, 0)
		} else if e.m.Decode(b[wire.HeaderSize+1:size]) == nil && e.m.Op == wire.OpRegSend {
			e.call(e.m.Payload)
		}
		b = b[size:]
	}
	return b
}

// call answers {'$gen_call', {Pid, Tag}, Request}.
func (e *echoer) call(message []byte) {
	r := etf.NewReader(message)
	r.Tuple()
	if string(r.Atom()) != "$gen_call" {
		return
	}
	r.Tuple()
	pid, tag := r.Pid(), r.Raw()
	alias := etf.NewReader(tag)
	start := len(e.answer)
	b := etf.AppendTupleHeader(wire.Open(e.answer), 3)
	if alias.ListHeader() == 1 && string(alias.Atom()) == "alias" {
		b = append(append(etf.AppendInt(b, int64(wire.OpAliasSend)), e.self...), alias.Ref()...)
	} else {
		b = append(etf.MustAppendAtom(etf.AppendInt(b, int64(wire.OpSend)), "", etf.AllCaps), pid...)
	}
	b = append(etf.AppendTupleHeader(append(b, etf.VersionMagic), 2), tag...)
	b = etf.MustAppendAtom(etf.AppendTupleHeader(b, 2), "ok", etf.AllCaps)
	e.ids++
	var id [16]byte
	binary.BigEndian.PutUint64(id[:], e.ids)
	e.answer = etf.AppendBinary(b, id[:])
	wire.Close(e.answer, start)
}
