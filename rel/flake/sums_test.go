package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/node/epmd"
	"github.com/flake-go/flake/node/etf"
)

// The effects of the attacks in this file add up over many connections.

// watches sets several hundred monitors or links.
func (a *attacker) watches() {
	long := etf.Atom(strings.Repeat("x", 250) + "@y")
	a.numbered(300, func(i int) {
		from := etf.NewPid(long, uint32(i), 0, 1)
		if a.i%2 == 0 {
			a.frame(a.control(19, from, etf.Atom("flake"), a.ref(i)))
		} else {
			a.frame(a.control(1, from, a.flake))
		}
	})
	a.flush()
}

var oneByOne sync.Mutex

// setAndRemoved sets and removes monitors and links, as the only attacker at that time.
func (a *attacker) setAndRemoved() {
	oneByOne.Lock()
	defer oneByOne.Unlock()
	const many = 100_000
	for _, op := range []int64{19, 20} { // MONITOR_P, DEMONITOR_P
		a.numbered(many, func(i int) { a.frame(a.control(op, a.self, etf.Atom("flake"), a.ref(i))) })
	}
	for _, op := range []int64{1, 4} { // LINK, UNLINK
		a.numbered(many, func(i int) { a.frame(a.control(op, etf.NewPid(a.self.Node(), uint32(i), 0, 1), a.flake)) })
	}
	a.handled()
}

// handled waits until the node has handled what was sent.
func (a *attacker) handled() {
	a.frame(a.control(19, a.self, etf.Atom("nobody"), a.ref(0)))
	a.flush()
	last := []byte("noproc") // the reason in the answer to that monitor
	b := make([]byte, 64<<10)
	for rest := 0; ; {
		n, err := a.Read(b[rest:])
		if err != nil || bytes.Contains(b[:rest+n], last) {
			return
		}
		rest = copy(b, b[max(rest+n-len(last), 0):rest+n])
	}
}

// unread requests more answers than the system buffers.
func (a *attacker) unread() {
	a.Conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	for i := range 32 {
		a.ask(a.self, i, etf.Tuple{etf.Atom("get_many"), int64(idserver.MaxInline), int64(2)})
	}
	a.flush()
}

// burst calls as often as a busy peer does, and then stops.
func (a *attacker) burst() {
	a.numbered(2000, func(i int) { a.ask(a.self, i, etf.Atom("get")) })
	for i := range 8 {
		a.ask(a.self, i, etf.Tuple{etf.Atom("get_many"), int64(idserver.MaxInline), int64(2)})
	}
	a.handled()
}

// pings starts functions that wait for a node that does not answer.
func (a *attacker) pings() {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return
	}
	defer silent.Close()
	name := fmt.Sprintf("dead%d", a.i)
	port := silent.Addr().(*net.TCPAddr).Port
	dead, err := epmd.Register(context.Background(), "127.0.0.1:"+a.node.port, epmd.Node{Name: name, Port: uint16(port)})
	if err != nil {
		return
	}
	defer dead.Close()
	for i := range 64 {
		a.spawn(i, "net_adm", "ping", external(etf.List{etf.Atom(name + "@127.0.0.1")}))
	}
	a.flush()
	a.SetReadDeadline(time.Now().Add(attackTime))
	io.Copy(io.Discard, a)
}
