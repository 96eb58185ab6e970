package dist

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ergo-services/ergo/lib"
	"github.com/ergo-services/ergo/node"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
)

// Session is a stream whose handshake is done. It reaches Proto as the Custom
// part of Ergo's HandshakeDetails.
type Session struct {
	Conn net.Conn
	Peer handshake.Peer

	// Served, unless nil, is closed once the connection is served. What Ergo holds
	// for it then is another connection that merely led here, and is closed too.
	Served chan<- struct{}
}

// Proto makes connections out of sessions; it is Ergo's ProtoInterface.
type Proto struct {
	// Node and Creation are those of the local node.
	Node     string
	Creation uint32

	Processes   Processes
	Spawn       Spawn
	NetTicktime time.Duration // a peer silent for so long is down
	Log         *slog.Logger

	// Refuse, unless nil, tells why a function is not spawned at all, in the word
	// that the caller gets, or nothing.
	Refuse func(module, function etf.Atom, args []etf.Term) etf.Atom

	// Connection gives the connection to a node, or nil. Without it all answers
	// go where the call came from.
	Connection func(node string) *Conn

	// Connect connects to a node that is not connected. Without it the answers to
	// such a node's processes go where the call came from.
	Connect func(node string) error

	// Up is told of a connection before it is served, Down once it is gone.
	Up, Down func(*Conn)

	serial  atomic.Uint32 // of the last connection
	spawned atomic.Uint32 // the last process
	running sync.WaitGroup
	shared  pool
	errands errands
}

// Limit has the connections share no more than so many percent of [MaxShared], [MaxSmall]
// and [MaxSpare]. It is called before there are any.
func (p *Proto) Limit(percent int) { p.shared.percent = percent }

// Held is how many bytes the connections hold of what [Proto.Limit] bounds.
func (p *Proto) Held() int64 { return p.shared.held.Load() + p.shared.spare.Load() }

// Wait waits until no function runs any more that a peer has called.
func (p *Proto) Wait() { p.running.Wait() }

// Init gives a connection that is not served yet.
func (p *Proto) Init(ctx context.Context, ergos lib.NetReadWriter, _ string, d node.HandshakeDetails) (node.ConnectionInterface, error) {
	s, ok := d.Custom.(Session)
	if !ok {
		return nil, fmt.Errorf("dist: no session, but %T", d.Custom)
	}
	c := newConn(ctx, p, s)
	if s.Served != nil {
		c.leader, _ = ergos.(net.Conn)
	}
	return c, nil
}

// Serve reads and answers until the connection ends.
func (p *Proto) Serve(ci node.ConnectionInterface, router node.CoreRouter) {
	c := ci.(*Conn)
	c.router = router
	if p.Up != nil {
		p.Up(c)
	}
	p.serve(c)
	if c.served != nil {
		close(c.served)
	}
	if c.leader != nil {
		c.leader.Close()
	}
	c.serve()
}

// Terminate is called once Ergo has forgotten the connection.
func (p *Proto) Terminate(ci node.ConnectionInterface) {
	c := ci.(*Conn)
	if p.Down != nil {
		p.Down(c)
	}
	close(c.done)
}
