package dist

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
	"github.com/flake-go/flake/node/latency"
)

// Session is a stream whose handshake is done.
type Session struct {
	Conn net.Conn
	Peer handshake.Peer
}

// Proto makes connections out of sessions, and serves them.
type Proto struct {
	// Node and Creation belong to the local node.
	Node     string
	Creation uint32

	Processes   Processes
	Spawn       Spawn
	NetTicktime time.Duration // a peer silent for this long is down
	Log         *slog.Logger

	// Refuse, unless nil, returns the word in which a spawn is refused, or "" to let it
	// run.
	Refuse func(module, function etf.Atom, args []etf.Term) etf.Atom

	// Connection returns the connection to a node, or nil. If Connection is nil, all
	// answers go the way their calls came.
	Connection func(node string) *Conn

	// Connect connects to a node. If Connect is nil, answers to the processes of an
	// unconnected node go the way their calls came.
	Connect func(node string) error

	// Down, unless nil, is called with each connection that has ended.
	Down func(*Conn)

	spawned atomic.Uint32 // number of the last spawned process
	running sync.WaitGroup
	shared  pool
	served  sync.Map // the connections being served
	errands errands
	made    atomic.Uint32 // connections
	took    [histograms]latency.Histogram
}

// Limit makes the connections share only this percentage of [MaxShared], [MaxSmall]
// and [MaxSpare]. It must be called before there are any.
func (p *Proto) Limit(percent int) { p.shared.percent = percent }

// Held returns how many bytes the connections hold of what [Proto.Limit] bounds.
func (p *Proto) Held() int64 { return p.shared.held.Load() + p.shared.spare.Load() }

// Go runs f on a goroutine of its own. It is called before [Proto.Wait], or by such an f.
func (p *Proto) Go(f func()) { p.running.Go(f) }

// Wait returns once nothing that [Proto.Go] has begun is running.
func (p *Proto) Wait() { p.running.Wait() }

// New makes a connection that is not yet served. It ends with ctx at the latest.
func (p *Proto) New(ctx context.Context, s Session) *Conn { return newConn(ctx, p, s) }

// Serve reads and answers until the connection ends.
func (p *Proto) Serve(c *Conn) {
	p.served.Store(c, nil)
	p.deliver(c.peer.Name, c)
	c.serve()
	p.served.Delete(c)
	if p.Down != nil {
		p.Down(c)
	}
	close(c.done)
}

// Ended tells those who watch a process that it has ended. [Processes] must no longer
// find it.
func (p *Proto) Ended(id uint64, reason etf.Term) {
	for c := range p.served.Range {
		c.(*Conn).ended(id, reason)
	}
}

// pid returns the pid of a process of the local node.
func (p *Proto) pid(id uint64) etf.Pid {
	return etf.NewPid(etf.Atom(p.Node), uint32(id), uint32(id>>32), p.Creation)
}
