package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/node/distribution"
	"github.com/flake-go/flake/node/epmd"
	"github.com/flake-go/flake/node/etf"
)

// The peers in this file use up what connections share; other peers must still be served.

// peer returns a peer that the test controls.
func (n *flakeNode) peer(name string) *attacker {
	return &attacker{Conn: dialAs(n.t, n.addr, name), node: n, self: etf.NewPid(etf.Atom(name), 1, 0, 1)}
}

// ask sends flake a gen_server:call of the process caller.
func (a *attacker) ask(caller etf.Pid, tag int, request etf.Term) {
	a.regSend("flake", etf.Tuple{etf.Atom("$gen_call"), etf.Tuple{caller, a.ref(tag)}, request})
}

// answer reads until an answer arrives, and returns its tag.
func (a *attacker) answer() (tag etf.Ref, err error) {
	for {
		var head [4]byte
		if _, err := io.ReadFull(a, head[:]); err != nil {
			return "", err
		}
		frame := make([]byte, binary.BigEndian.Uint32(head[:]))
		if _, err := io.ReadFull(a, frame); err != nil {
			return "", err
		}
		if len(frame) == 0 {
			continue
		}
		r := etf.NewReader(frame[2:])
		r.Raw()
		r.Version()
		if r.Tuple() == 2 {
			return etf.Ref(r.Raw()), nil
		}
	}
}

// Unfinished frames do not delay large answers to other callers for long.
func TestHalfFrames(t *testing.T) {
	t.Parallel()
	n := startNode(t, "")
	for i := range 2 {
		a := n.peer(fmt.Sprintf("half%d@127.0.0.1", i))
		a.announce(distribution.MaxFrame)
		a.write(make([]byte, distribution.MaxFrame-1))
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := n.connect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	await(t, "a call for the most ids is answered", func() bool {
		reply, err := c.Call(ctx, "flake", etf.Tuple{etf.Atom("get_many"), int64(idserver.MaxMany)})
		if err != nil {
			t.Fatal(err)
		}
		answer, _ := reply.(etf.Tuple)
		return len(answer) == 2 && answer[0] == etf.Atom("ok")
	})
}

// Calls in the names of other nodes neither end the connections of those nodes nor withhold answers
// from them.
func TestPassedOnUnread(t *testing.T) {
	t.Parallel()
	n := startNode(t, "")
	const others = 3
	request := etf.Tuple{etf.Atom("get_many"), int64(idserver.MaxInline), int64(2)}
	var honest []*attacker
	for i := range others {
		honest = append(honest, n.peer(fmt.Sprintf("honest%d@127.0.0.1", i)))
	}
	a := n.peer("hostile@127.0.0.1")
	for range 3 {
		for _, h := range honest {
			for range 300 {
				a.ask(h.self, 1, request)
			}
		}
	}
	a.flush()
	if hangUp(t, a.Conn); !strings.Contains(n.output(), "answer dropped") {
		t.Error("no answer was dropped: the attack is too small")
	}
	const calls = 20
	for _, h := range honest {
		for range calls {
			h.ask(h.self, 2, request)
		}
		h.flush()
	}
	for i, h := range honest {
		for own := 0; own < calls; {
			tag, err := h.answer()
			if err != nil {
				t.Fatalf("peer %d, after %d answers: %v", i, own, err)
			}
			if tag == h.ref(2) {
				own++
			}
		}
	}
}

var (
	pingArgs   = etf.List{etf.Atom("dead@127.0.0.1")} // a node that does not answer
	castOfPing = etf.Tuple{etf.Atom("$gen_cast"),
		etf.Tuple{etf.Atom("cast"), etf.Atom("net_adm"), etf.Atom("ping"), pingArgs, etf.Atom("user")}}
)

// A connection closes without delay, however many slow functions it has called.
func TestPingsOfDeadHost(t *testing.T) {
	t.Parallel()
	n := startNode(t, "")
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	port := silent.Addr().(*net.TCPAddr).Port
	dead, err := epmd.Register(ctx, "127.0.0.1:"+n.port, epmd.Node{Name: "dead", Port: uint16(port)})
	if err != nil {
		t.Fatal(err)
	}
	defer dead.Close()
	for _, how := range []string{"cast", "call", "spawn"} {
		a := n.peer(how + "@127.0.0.1")
		for i := range 600 {
			switch how {
			case "cast":
				a.regSend("rex", castOfPing)
			case "call":
				a.rex("net_adm", "ping", external(pingArgs))
			case "spawn":
				a.spawn(i, "net_adm", "ping", external(pingArgs))
			}
		}
		a.flush()
		hangUp(t, a.Conn)
	}
}
