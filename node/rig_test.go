package node

import (
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/node/epmd"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
)

const (
	name   = "flake@127.0.0.1"
	cookie = "flake"

	// patience is how long a test waits before it fails.
	patience = 5 * time.Minute
)

var quiet = slog.New(slog.DiscardHandler)

// start starts a node, which is stopped at the end of the test. By default its name is flake,
// it has an id server and is not registered.
func start(t *testing.T, o Options) *Node {
	t.Helper()
	n, err := Start(context.Background(), filled(t, o))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Stop)
	return n
}

func filled(t *testing.T, o Options) Options {
	if o.Name == "" {
		o.Name = name
	}
	if o.Cookie == "" {
		o.Cookie = cookie
	}
	if o.Keeper == nil {
		o.Keeper = &epmd.Keeper{Mode: epmd.Off, Log: quiet}
	}
	if o.Log == nil {
		o.Log = quiet
	}
	if o.setup == 0 {
		o.setup = patience // a busy machine may exceed setupTime
	}
	if o.Supervisors == nil {
		o.Supervisors = flakeSup(generator(t))
	}
	return o
}

// auto returns a keeper in mode Auto.
func auto() *epmd.Keeper { return &epmd.Keeper{Log: quiet} }

func generator(t *testing.T) formats.Source {
	t.Helper()
	g, err := flake.NewGenerator(1, flake.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return formats.Flake(g)
}

// await waits for a condition.
func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not true after %v: %s", patience, what)
		}
	}
}

// awaitGoroutines waits until there are at most as many goroutines as before.
func awaitGoroutines(t *testing.T, before int) {
	t.Helper()
	await(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
}

// peer is another node that the test plays.
type peer struct {
	t    *testing.T
	conn net.Conn
	pid  etf.Pid
	node *Node
}

// dial returns a connected peer.
func dial(t *testing.T, n *Node, name string) *peer {
	t.Helper()
	c := dialRaw(t, n)
	p, err := handshake.Start(c, n.Name(), handshake.Options{Node: name, Creation: 77, Cookie: cookie})
	if err != nil {
		t.Fatal(err)
	}
	if p.Name != n.Name() || p.Creation != n.creation {
		t.Fatalf("%+v answered", p)
	}
	return &peer{t, c, etf.NewPid(etf.Atom(name), 9, 0, 77), n}
}

// dialRaw returns a stream to the node without a handshake.
func dialRaw(t *testing.T, n *Node) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", n.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return c
}

// send sends a frame.
func (p *peer) send(control etf.Term, message ...etf.Term) {
	p.t.Helper()
	b := append([]byte{0, 0, 0, 0, 112, etf.VersionMagic}, external(control)...)
	for _, m := range message {
		b = append(append(b, etf.VersionMagic), external(m)...)
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	if _, err := p.conn.Write(b); err != nil {
		p.t.Fatal(err)
	}
}

// recv returns the next frame that is not a tick, as Erlang prints it.
func (p *peer) recv() (control, message string) {
	p.t.Helper()
	control, raw := p.recvRaw()
	return control, string(etf.FormatRaw(nil, raw, 1000))
}

func (p *peer) recvRaw() (control string, message []byte) {
	p.t.Helper()
	b := readFrame(p.t, p.conn, 4)
	for len(b) == 4 {
		b = readFrame(p.t, p.conn, 4)
	}
	r := etf.NewReader(b[6:])
	return string(etf.FormatRaw(nil, r.Raw(), 1000)), r.Rest()
}

// want reads the next frame and checks it.
func (p *peer) want(control, message string) {
	p.t.Helper()
	if c, m := p.recv(); c != control || m != message {
		p.t.Fatalf("received %s %s, want %s %s", c, m, control, message)
	}
}

// none is the result of recv for a frame without a message.
const none = "..."

// call calls a registered server and returns the reply.
func (p *peer) call(server etf.Atom, request etf.Term) (reply string) {
	p.t.Helper()
	p.send(regSend(p.pid, server), etf.Tuple{etf.Atom("$gen_call"), etf.Tuple{p.pid, int64(1)}, request})
	_, message := p.recv()
	return message
}

// get requests an id.
func (p *peer) get() {
	p.t.Helper()
	p.send(regSend(p.pid, "flake"), etf.Tuple{etf.Atom("$gen_call"), etf.Tuple{p.pid, int64(1)}, etf.Atom("get")})
	_, raw := p.recvRaw()
	term, err := etf.Decode(raw[1:])
	reply, _ := term.(etf.Tuple)
	if err != nil || len(reply) != 2 {
		p.t.Fatalf("the reply is %x, %v", raw, err)
	}
	if ok, _ := reply[1].(etf.Tuple); len(ok) != 2 || ok[0] != etf.Atom("ok") || len(ok[1].([]byte)) != 16 {
		p.t.Fatalf("the reply is %v", reply)
	}
}

// ended waits for the end of the connection.
func (p *peer) ended() {
	p.t.Helper()
	if _, err := io.Copy(io.Discard, p.conn); err != nil {
		p.t.Fatal(err)
	}
}

func regSend(from etf.Pid, to etf.Atom) etf.Tuple {
	return etf.Tuple{int64(6), from, etf.Atom(""), to}
}

func monitor(from etf.Pid, item etf.Term, ref etf.Ref) etf.Tuple {
	return etf.Tuple{int64(19), from, item, ref}
}

func external(t etf.Term) []byte {
	b, err := etf.Append(nil, t, etf.AllCaps)
	if err != nil {
		panic(err)
	}
	return b
}

// pidOf returns the pid of a registered process.
func pidOf(n *Node, name string) etf.Pid {
	p := n.registry.Whereis([]byte(name))
	if p == nil {
		return ""
	}
	return n.pid(p.ID)
}

// logged is a log that a test can read.
type logged struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }
