package node

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/node/distribution"
	"github.com/flake-go/flake/node/epmd"
	"github.com/flake-go/flake/node/ergo"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
	"github.com/flake-go/flake/node/host"
	"github.com/flake-go/flake/node/rpc"
)

// Options configure Start.
type Options struct {
	Name        string // name@host
	Cookie      string
	Previous    string        // another accepted cookie, or empty
	Listen      string        // "host:port"; empty: a free port, on loopback if Name's host is loopback, otherwise on all
	Keeper      *epmd.Keeper  // registers the node; nil means a zero Keeper
	NetTicktime time.Duration // 0 means OTP's 60 s

	// TLS, if not nil, returns the configuration for the next connection in either direction. All
	// connections must then use TLS.
	TLS func() *tls.Config

	// Connections bounds the connected nodes, and ConnectionsPerHost those on one host. 0 means
	// MaxConnections or MaxPerHost. Limits on memory and descriptors may lower Connections.
	Connections, ConnectionsPerHost int

	// Memory is the number of bytes that the node may use; 0 means no limit. With little memory,
	// fewer nodes can be connected, and less memory is shared by their connections.
	Memory int64

	// Functions are functions that other nodes may call, in addition to the standard ones.
	Functions rpc.Table

	// Supervisors are started in order, before peers can connect.
	Supervisors []Supervisor

	Log *slog.Logger // nil means slog.Default

	setup time.Duration // bounds a handshake; 0 means setupTime
}

// Node is a running node.
type Node struct {
	options  Options // with defaults
	creation uint32

	ctx       context.Context
	cancel    context.CancelFunc
	ergo      *ergo.Node
	proto     *distribution.Proto
	registry  *registry
	processes sync.WaitGroup // the processes whose end has not been reported
	epmd      *epmd.Keeper
	handshake atomic.Pointer[handshake.Options] // of later handshakes; replaced by SetCookies
	meetings  *meetings
	names     names
	gate      *gate
	history   *history
	listener  net.Listener

	functions rpc.Table

	entering sync.Mutex // guards nextIdle, and conns and the limits while serveOrReplace checks and serves
	nextIdle time.Time  // before this time, no connection can have been idle for idleTime
	stopped  sync.Once

	// conns holds the connections by name. It is not a map under a lock, because an allocation
	// under the lock may wait for the garbage collector.
	conns sync.Map
}

// Start starts a node, registers it with EPMD and accepts connections. Stop shuts the node
// down; when ctx ends, the node ends immediately.
func Start(ctx context.Context, o Options) (*Node, error) {
	o.Log = cmp.Or(o.Log, slog.Default())
	o.NetTicktime = cmp.Or(o.NetTicktime, time.Minute)
	o.setup = cmp.Or(o.setup, setupTime)
	if !strings.Contains(o.Name, "@") {
		return nil, fmt.Errorf("node name %q: must be name@host", o.Name)
	}
	n := &Node{
		creation: handshake.NewCreation(),
		registry: newRegistry(),
		gate:     newGate(),
		history:  newHistory(),
		meetings: newMeetings(),
		options:  o,
	}
	n.ctx, n.cancel = context.WithCancel(ctx)
	n.handshake.Store(&handshake.Options{
		Node: o.Name, Creation: n.creation, Cookie: o.Cookie, PreviousCookie: o.Previous,
		LongLen: o.TLS != nil, Challenges: new(handshake.Challenges),
	})
	n.functions = n.standardFunctions()
	maps.Copy(n.functions, o.Functions)
	n.functions.AddModuleInfo()
	if err := n.start(o); err != nil {
		n.Stop()
		return nil, err
	}
	return n, nil
}

func (n *Node) start(o Options) (err error) {
	n.proto = &distribution.Proto{
		Node:        o.Name,
		Creation:    n.creation,
		Processes:   n.registry,
		Spawn:       n.functions.Run,
		Refuse:      rpc.Refuse,
		NetTicktime: o.NetTicktime,
		Log:         o.Log,
		Connection:  n.connection,
		Connect:     n.Connect,
		Down:        n.down,
	}
	n.proto.Limit(n.limit(o))
	if n.ergo, err = ergo.Start(n.ctx, o.Name, n.creation); err != nil {
		return fmt.Errorf("node %s: %w", o.Name, err)
	}
	name := etf.Atom(o.Name)
	kernel := Supervisor{Name: "kernel_sup", Module: "kernel", Children: []Child{
		{"net_kernel", "net_kernel", &netKernel{name: name, ticktime: o.NetTicktime.Milliseconds()}},
		{"global_name_server", "global", globalNameServer{}},
		{"rex", "rpc", &rpc.Rex{Node: name, Table: n.functions, Send: n.send}},
	}}
	for _, s := range append([]Supervisor{kernel}, o.Supervisors...) {
		if err := n.supervise(s); err != nil {
			return fmt.Errorf("node %s: %s: %w", o.Name, s.Name, err)
		}
	}
	if n.listener, err = listen(n.ctx, o); err != nil {
		return err
	}
	n.epmd = keeper(o, n.listener)
	if err := n.epmd.Start(n.ctx, o.Name); err != nil {
		return fmt.Errorf("node %s: %w", o.Name, err)
	}
	n.proto.Go(n.accept)
	return nil
}

// Stop ends the node. It stops accepting connections, unregisters the node, ends its processes with
// reason shutdown, reports this to peers that monitor them or are linked to them, and waits briefly
// for pending output to be written. Stop returns when all goroutines have ended. It may be called
// more than once.
func (n *Node) Stop() { n.stopped.Do(n.stop) }

func (n *Node) stop() {
	if n.listener != nil {
		n.listener.Close()
		n.epmd.Close()
	}
	if n.ergo != nil {
		n.ergo.Stop()
	}
	n.processes.Wait()
	var shutdown sync.WaitGroup
	for _, c := range n.connections() {
		shutdown.Go(c.Shutdown)
	}
	shutdown.Wait()
	n.cancel()
	n.proto.Wait()
}

// Name returns the node's name.
func (n *Node) Name() string { return n.options.Name }

// Running reports whether a server is registered under a name.
func (n *Node) Running(server string) bool { return n.registry.named(etf.Atom(server)).server != nil }

// Addr returns the address on which the node listens.
func (n *Node) Addr() net.Addr { return n.listener.Addr() }

// EPMD returns the state of the registration with EPMD.
func (n *Node) EPMD() epmd.State { return n.epmd.State() }

// Functions returns the functions that other nodes may call.
func (n *Node) Functions() rpc.Table { return n.functions }

// serve starts serving a stream after the handshake. If the peer is already connected, serve
// closes the stream and returns an error.
func (n *Node) serve(stream net.Conn, peer handshake.Peer) error {
	c := n.proto.New(n.ctx, stream, peer)
	if _, another := n.conns.LoadOrStore(peer.Name, c); another {
		c.Close()
		stream.Close()
		return fmt.Errorf("there is another connection to %s", peer.Name)
	}
	n.gate.up(host.Of(c.Addr()))
	n.meetings.up(peer.Name)
	n.proto.Go(func() { n.proto.Serve(c) })
	return nil
}

func (n *Node) down(c *distribution.Conn, blame string) {
	n.gate.down(host.Of(c.Addr()))
	n.history.down(c, blame, func() { n.conns.CompareAndDelete(c.Peer().Name, c) })
	n.names.takeBack(c.Peer())
}

func (n *Node) connection(peer string) *distribution.Conn {
	c, _ := n.conns.Load(peer)
	conn, _ := c.(*distribution.Conn)
	return conn
}

func (n *Node) connections() (all []*distribution.Conn) {
	for _, c := range n.conns.Range {
		all = append(all, c.(*distribution.Conn))
	}
	return all
}
