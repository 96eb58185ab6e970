package node

import (
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flake-go/flake/node/epmd"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
)

// dialed is a node, played by the test, that our node dials.
type dialed struct {
	t        *testing.T
	name     string
	node     *Node
	listener net.Listener
}

// startDialed starts a node. It registers the name short with the node's EPMD, with a port on which
// the test listens.
func startDialed(t *testing.T, short string) *dialed { return startDialedTLS(t, short, nil) }

func startDialedTLS(t *testing.T, short string, secured func() *tls.Config) *dialed {
	t.Helper()
	var ls [2]net.Listener
	for i := range ls {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		ls[i] = l
	}
	server := epmd.NewServer(quiet)
	server.Serve(ls[0])
	t.Cleanup(server.Close)
	addr := ls[0].Addr().String()
	_, port, _ := net.SplitHostPort(ls[1].Addr().String())
	p, _ := strconv.Atoi(port)
	reg, err := epmd.Register(t.Context(), addr, epmd.Node{Name: short, Port: uint16(p)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { reg.Close() })
	n := start(t, Options{Keeper: &epmd.Keeper{Mode: epmd.Mode(addr), Log: quiet}, TLS: secured})
	return &dialed{t, short + "@127.0.0.1", n, ls[1]}
}

// connect makes the node dial. The channel receives the result.
func (d *dialed) connect() <-chan error {
	outcome := make(chan error, 1)
	go func() { outcome <- d.node.Connect(d.name) }()
	return outcome
}

// take accepts the connection that the node has dialed.
func (d *dialed) take() net.Conn {
	d.t.Helper()
	c, err := d.listener.Accept()
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return c
}

func (d *dialed) accept(c io.ReadWriter, admit func(handshake.Name) handshake.Status) error {
	o := d.options()
	o.Admit = admit
	_, err := handshake.Accept(c, o)
	return err
}

func (d *dialed) options() handshake.Options {
	return handshake.Options{Node: d.name, Creation: 77, Cookie: cookie}
}

// want checks the result of the node's dial, and that c is the connection.
func (d *dialed) want(outcome <-chan error, c net.Conn) {
	d.t.Helper()
	if err := <-outcome; err != nil {
		d.t.Fatal(err)
	}
	p := &peer{d.t, c, etf.NewPid(etf.Atom(d.name), 9, 0, 77), d.node}
	p.get()
	p.get()
	if n := len(d.node.connections()); n != 1 {
		d.t.Errorf("%d connections, want 1", n)
	}
}

// If our name is greater, our dial continues, and the other side's is refused.
func TestSimultaneousOurs(t *testing.T) {
	d := startDialed(t, "a")
	outcome := d.connect()
	c := d.take()
	err := d.accept(c, func(handshake.Name) handshake.Status {
		_, err := handshake.Start(dialRaw(t, d.node), name, d.options())
		if !errors.Is(err, handshake.ErrSimultaneous) {
			t.Errorf("the other dial: %v", err)
		}
		return handshake.StatusOKSimultaneous
	})
	if err != nil {
		t.Fatal(err)
	}
	d.want(outcome, c)
}

// If the other name is greater, our dial is dropped.
func TestSimultaneousTheirs(t *testing.T) {
	d := startDialed(t, "z")
	outcome := d.connect()
	var theirs *peer
	err := d.accept(d.take(), func(handshake.Name) handshake.Status {
		theirs = dial(t, d.node, d.name)
		return handshake.StatusNOK
	})
	if err == nil {
		t.Error("our dial continues")
	}
	d.want(outcome, theirs.conn)
}

// The other side refuses our dial because of its own, which has not arrived yet. Our dial waits for
// it.
func TestSimultaneousLate(t *testing.T) {
	d := startDialed(t, "z")
	outcome := d.connect()
	c := d.take()
	d.accept(c, func(handshake.Name) handshake.Status { return handshake.StatusNOK })
	theirs := dialRaw(t, d.node)
	if _, err := handshake.Start(theirs, name, d.options()); err != nil {
		t.Fatal(err)
	}
	d.want(outcome, theirs)
}

// If the other name is greater, our dial is dropped even before the other side has answered our TLS
// handshake.
func TestSimultaneousTLS(t *testing.T) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(nil, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{
		Certificates:       []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}},
		InsecureSkipVerify: true,
	}
	d := startDialedTLS(t, "z", func() *tls.Config { return config })
	outcome := d.connect()
	dropped := d.take()
	await(t, "the node knows of its dial", func() bool {
		d.node.meetings.mu.Lock()
		defer d.node.meetings.mu.Unlock()
		return d.node.meetings.dials[d.name] != nil
	})
	secured := tls.Client(dialRaw(t, d.node), config)
	theirs := &paused{Conn: secured, at: make(chan struct{}), resume: make(chan struct{})}
	shaken := make(chan error, 1)
	go func() {
		o := d.options()
		o.LongLen = true
		_, err := handshake.Start(theirs, name, o)
		shaken <- err
	}()
	<-theirs.at
	io.Copy(io.Discard, dropped) // until our dial is dropped
	for range 1000 {
		runtime.Gosched() // gives a faulty node time to fail the dial
	}
	close(theirs.resume)
	if err := <-shaken; err != nil {
		t.Fatal(err)
	}
	d.want(outcome, theirs)
}

// A connection that the other side considers complete before we do must not be replaced.
func TestSimultaneousAlive(t *testing.T) {
	d := startDialed(t, "a")
	theirs := &paused{Conn: dialRaw(t, d.node), at: make(chan struct{}), resume: make(chan struct{})}
	shaken := make(chan error, 1)
	go func() {
		_, err := handshake.Start(theirs, name, d.options())
		shaken <- err
	}()
	<-theirs.at
	outcome := d.connect()
	err := d.accept(d.take(), func(handshake.Name) handshake.Status {
		close(theirs.resume)
		return handshake.StatusAlive
	})
	if !errors.Is(err, handshake.ErrRefused) {
		t.Errorf("our dial: %v", err)
	}
	if err := <-shaken; err != nil {
		t.Fatal(err)
	}
	d.want(outcome, theirs)
}

// paused is a connection whose second write waits.
type paused struct {
	net.Conn
	writes     int
	at, resume chan struct{}
}

func (p *paused) Write(b []byte) (int, error) {
	if p.writes++; p.writes == 2 {
		close(p.at)
		<-p.resume
	}
	return p.Conn.Write(b)
}

// Our dial replaces a connection that the other side has lost.
func TestDialAlive(t *testing.T) {
	d := startDialed(t, "a")
	outcome := d.connect()
	c := d.take()
	err := d.accept(c, func(handshake.Name) handshake.Status { return handshake.StatusAlive })
	if err != nil {
		t.Fatal(err)
	}
	d.want(outcome, c)
}

// A dial that is refused fails.
func TestDialNotAllowed(t *testing.T) {
	d := startDialed(t, "a")
	outcome := d.connect()
	d.accept(d.take(), func(handshake.Name) handshake.Status { return handshake.StatusNotAllowed })
	if err := <-outcome; err == nil {
		t.Error("Connect succeeded, although the status is not_allowed")
	}
}

// A free name is assigned again to its host, with another creation.
func TestNames(t *testing.T) {
	n := new(names)
	none := func(string) bool { return false }
	first, creation := n.assign("a", none)
	if second, _ := n.assign("a", none); second == first {
		t.Errorf("%s is assigned twice", first)
	}
	n.takeBack(handshake.Peer{Name: first, Creation: creation}) // of a node that chose this name
	if other, _ := n.assign("a", none); other == first {
		t.Errorf("%s is assigned again, although it is not free", first)
	}
	n.takeBack(handshake.Peer{Name: first, Creation: creation, Assigned: true})
	if other, _ := n.assign("b", none); other == first {
		t.Errorf("%s is assigned to another host", first)
	}
	if third, _ := n.assign("a", func(node string) bool { return node == first }); third == first {
		t.Errorf("%s is assigned, although it is taken", first)
	}
	if again, c := n.assign("a", none); again != first || c == creation || c == 0 {
		t.Errorf("%s with creation %d, want %s with another creation than %d", again, c, first, creation)
	}
	for i := range 2 * keptNames {
		n.takeBack(handshake.Peer{Name: fmt.Sprint(i), Creation: math.MaxUint32, Assigned: true})
	}
	if last := n.free[len(n.free)-1]; len(n.free) != keptNames || last.creation != 1 {
		t.Errorf("%d names are kept, want %d; the last has creation %d", len(n.free), keptNames, last.creation)
	}
}

// If we dial a node without TLS, the error does not call the node a caller.
func TestDialPlain(t *testing.T) {
	d := startDialedTLS(t, "a", func() *tls.Config { return &tls.Config{InsecureSkipVerify: true} })
	outcome := d.connect()
	io.WriteString(d.take(), "no TLS record")
	err := <-outcome
	if _, plain := errors.AsType[tls.RecordHeaderError](err); !plain || strings.Contains(err.Error(), "caller") {
		t.Error(err)
	}
}

// Handshakes under way never have the same name, however many of them fail and free theirs.
func TestNamesUnderWay(t *testing.T) {
	n := new(names)
	none := func(string) bool { return false }
	var held sync.Map
	var all sync.WaitGroup
	for range 300 {
		all.Go(func() {
			for range 100 {
				node, creation := n.assign("a", none)
				if _, twice := held.LoadOrStore(node, true); twice {
					t.Errorf("%s is assigned twice", node)
				}
				runtime.Gosched()
				held.Delete(node)
				n.takeBack(handshake.Peer{Name: node, Creation: creation, Assigned: true})
			}
		})
	}
	all.Wait()
}
