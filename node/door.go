package node

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/ergo-services/ergo/lib"
	ergonode "github.com/ergo-services/ergo/node"

	"github.com/flake-go/flake/node/dist"
	"github.com/flake-go/flake/node/handshake"
)

// door is how a finished connection gets into Ergo. Ergo does the handshake
// inside its accept loop, where one silent peer would keep all others out, and
// takes connections from nowhere else. So Ergo listens on a port of the
// loopback that nobody is told of, the node shakes hands elsewhere, dials that
// port when it is done, and Ergo's "handshake" looks up who it was that dialled.
// The dialled connection carries nothing and is closed once Ergo serves.
//
// It is Ergo's HandshakeInterface.
type door struct {
	options handshake.Options
	secure  security

	mu      sync.Mutex
	addr    string                  // where Ergo listens
	waiting map[string]dist.Session // by the address that dials
}

const (
	doorHost    = "127.0.0.1"
	doorTimeout = 5 * time.Second
)

var _ ergonode.HandshakeInterface = (*door)(nil)

func newDoor(o handshake.Options, secure security) *door {
	return &door{options: o, secure: secure, waiting: make(map[string]dist.Session)}
}

func (d *door) open(port uint16) {
	d.mu.Lock()
	d.addr = net.JoinHostPort(doorHost, strconv.Itoa(int(port)))
	d.mu.Unlock()
}

// pass hands a session over to Ergo and returns once it is served. If Ergo does
// not take it, it is closed.
func (d *door) pass(s dist.Session) error {
	served := make(chan struct{})
	s.Served = served
	c, err := d.knock(s)
	if err != nil {
		s.Conn.Close()
		return err
	}
	defer c.Close()
	c.SetReadDeadline(time.Now().Add(doorTimeout))
	io.ReadFull(c, make([]byte, 1)) // until Ergo's end is closed, either way
	d.forget(c)
	select {
	case <-served:
		return nil
	default:
		s.Conn.Close()
		return fmt.Errorf("connection not taken: there is another one to %s", s.Peer.Name)
	}
}

func (d *door) knock(s dist.Session) (net.Conn, error) {
	d.mu.Lock() // until Accept can find the session
	defer d.mu.Unlock()
	c, err := net.DialTimeout("tcp", d.addr, doorTimeout)
	if err == nil {
		d.waiting[c.LocalAddr().String()] = s
	}
	return c, err
}

// forget sees to it that Ergo does not take a session any more.
func (d *door) forget(c net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.waiting, c.LocalAddr().String())
}

// Accept is called by Ergo for whoever dialled the door.
func (d *door) Accept(remote net.Addr, _ lib.NetReadWriter, _ bool, _ string) (ergonode.HandshakeDetails, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, ok := d.waiting[remote.String()]
	if !ok {
		return ergonode.HandshakeDetails{}, io.EOF // not us; Ergo closes it without a word
	}
	delete(d.waiting, remote.String())
	return details(s), nil
}

// Start is not called: for a dial Ergo has a dialler.
func (d *door) Start(net.Addr, lib.NetReadWriter, bool, string) (ergonode.HandshakeDetails, error) {
	return ergonode.HandshakeDetails{}, lib.ErrUnsupported
}

func details(s dist.Session) ergonode.HandshakeDetails {
	return ergonode.HandshakeDetails{
		Name:     s.Peer.Name,
		Creation: s.Peer.Creation,
		Version:  s.Peer.Version,
		Custom:   s,
	}
}

// Init has nothing to do.
func (d *door) Init(string, uint32, ergonode.Flags) error { return nil }

// Version is for Ergo's registrar, and ours does not look at it.
func (d *door) Version() ergonode.HandshakeVersion { return 6 }
