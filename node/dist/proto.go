package dist

import (
	"context"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
)

// Session is a stream whose handshake is done.
type Session struct {
	Conn net.Conn
	Peer handshake.Peer
}

// Proto makes connections out of sessions, and serves them.
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

	// Connection returns the connection to a node, or nil. Without it all answers
	// go where the call came from.
	Connection func(node string) *Conn

	// Connect connects to a node that is not connected. Without it the answers to
	// such a node's processes go where the call came from.
	Connect func(node string) error

	// Down, unless nil, is told of a connection that has ended.
	Down func(*Conn)

	spawned atomic.Uint32 // the last process
	running sync.WaitGroup
	shared  pool
	served  served
	errands errands
}

// Limit has the connections share no more than so many percent of [MaxShared], [MaxSmall]
// and [MaxSpare]. It is called before there are any.
func (p *Proto) Limit(percent int) { p.shared.percent = percent }

// Held is how many bytes the connections hold of what [Proto.Limit] bounds.
func (p *Proto) Held() int64 { return p.shared.held.Load() + p.shared.spare.Load() }

// Wait waits until no function runs any more that a peer has called.
func (p *Proto) Wait() { p.running.Wait() }

// New makes a connection that is not served yet. It ends with ctx at the latest.
func (p *Proto) New(ctx context.Context, s Session) *Conn { return newConn(ctx, p, s) }

// Serve reads and answers until the connection ends.
func (p *Proto) Serve(c *Conn) {
	p.served.add(c)
	p.deliver(c.peer.Name, c)
	c.serve()
	p.served.remove(c)
	if p.Down != nil {
		p.Down(c)
	}
	close(c.done)
}

// Ended tells those who watch a process that it has ended. [Processes] must not find
// it any more.
func (p *Proto) Ended(id uint64, reason etf.Term) {
	for _, c := range p.served.all() {
		c.ended(id, reason)
	}
}

// pid is the pid of a process of the local node.
func (p *Proto) pid(id uint64) etf.Pid {
	return etf.NewPid(etf.Atom(p.Node), uint32(id), uint32(id>>32), p.Creation)
}

// served are the connections that are served.
type served struct {
	mu    sync.Mutex
	conns map[*Conn]struct{}
}

func (s *served) add(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns == nil {
		s.conns = make(map[*Conn]struct{})
	}
	s.conns[c] = struct{}{}
}

func (s *served) remove(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

func (s *served) all() []*Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.conns))
}
