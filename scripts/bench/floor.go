package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"strings"

	"github.com/flake-go/flake/node/socket"
)

// The floor is a server that answers bytes with bytes, on a connection that is
// read as flake reads: for each call of a size an answer of a size, which the caller
// tells it first. It is this program, run again with the one argument floor.

func serveFloor() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(l.Addr())
	for {
		c, err := l.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go echo(c)
	}
}

func echo(c net.Conn) {
	c = socket.Adopt(c)
	defer c.Close()
	defer socket.Dedicate(c)()
	var sizes [8]byte
	if _, err := io.ReadFull(c, sizes[:]); err != nil {
		return
	}
	call, reply := int(binary.BigEndian.Uint32(sizes[:])), binary.BigEndian.Uint32(sizes[4:])
	answer := binary.BigEndian.AppendUint32(nil, reply-4)
	answer = append(answer, make([]byte, reply-4)...)
	buf := make([]byte, 64<<10)
	answers := bytes.Repeat(answer, len(buf)/call+1)
	for waiting := 0; ; waiting %= call {
		n, err := c.Read(buf)
		if err != nil {
			return
		}
		waiting += n
		if _, err := c.Write(answers[:waiting/call*int(reply)]); err != nil {
			return
		}
	}
}

// helper starts this program with an argument for which it serves, and says where.
func (w *world) helper(argument string) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &server{cmd: w.command(self, argument)}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	s.addr = strings.TrimSpace(line)
	return s, err
}
