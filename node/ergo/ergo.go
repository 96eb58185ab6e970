// Package ergo runs the gen_servers of a node as processes of the Ergo framework,
// which gives them pids and names and restarts them when they end. No other package
// imports Ergo.
//
// Peers' messages do not pass through Ergo: connections pass them to the gen_servers directly.
// See package distribution.
package ergo

import (
	"context"
	"io"
	"math"
	"net"
	"sync"

	ergoetf "github.com/ergo-services/ergo/etf"
	"github.com/ergo-services/ergo/gen"
	"github.com/ergo-services/ergo/lib"
	ergonode "github.com/ergo-services/ergo/node"

	"github.com/flake-go/flake/node/etf"
)

// Process is a process that a [Node] runs.
type Process struct {
	Name string

	// Up is called when the process has started, with the ID of its pid (the Serial in
	// the upper 32 bits) and a function that ends it, which is nil for a supervisor. Up
	// must not block. end may be called at any time; it does nothing once the node stops.
	Up func(id uint64, end func(reason etf.Term))

	// Down is called when the process has ended.
	Down func(id uint64, reason etf.Term)
}

// Node is an Ergo node without its network.
type Node struct {
	processes ownContext
	end       context.CancelFunc // ends the processes
	node      ergonode.Node
	children  []*process
}

// Start starts a node, which runs until ctx ends or [Node.Stop] is called.
func Start(ctx context.Context, name string, creation uint32) (*Node, error) {
	// Ergo does not start without a listener. This one can be opened on any machine, and stopping the
	// node closes it. The processes continue, because they have a context of their own.
	n, err := ergonode.StartWithContext(ctx, name, "", ergonode.Options{
		Creation:         creation,
		Listeners:        []ergonode.Listener{{Hostname: "0.0.0.0", ListenBegin: 61000, ListenEnd: 65535}},
		Handshake:        &closed{},
		Proto:            &ergonode.Proto{},
		StaticRoutesOnly: true,
	})
	if err != nil {
		return nil, err
	}
	n.Stop()
	ctx, end := context.WithCancel(ctx)
	return &Node{processes: ownContext{ctx}, end: end, node: n}, nil
}

// ownContext is the context of processes that outlive Ergo's network. Ergo accepts a context whose
// value for the node's key is that key.
type ownContext struct{ context.Context }

// Value returns the key if there is no value.
func (c ownContext) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return key
}

// Supervise starts a supervisor and then its children in order. A child is restarted each time
// it ends, without limit: a peer that kills it repeatedly must not end the service for other
// peers.
func (n *Node) Supervise(supervisor Process, children ...Process) error {
	s := &supervisorProcess{spec: supervisor}
	for _, child := range children {
		s.children = append(s.children, &process{child, make(chan struct{}, 1)})
	}
	_, err := n.node.Spawn(supervisor.Name, gen.ProcessOptions{Context: n.processes}, s)
	if err == nil {
		n.children = append(n.children, s.children...)
	}
	return err
}

// Stop ends the node and its processes, without waiting for them to end. It first waits for
// processes that are being restarted, because Ergo has a data race if a supervisor ends while it
// learns that a child has ended.
func (n *Node) Stop() {
	for _, p := range n.children {
		select {
		case <-p.running:
		case <-n.processes.Done():
		}
	}
	n.end()
}

// supervisorProcess is a supervisor for Ergo.
type supervisorProcess struct {
	gen.Supervisor
	spec     Process
	children []*process
}

// ProcessLoop runs the supervisor.
func (s *supervisorProcess) ProcessLoop(p gen.ProcessState, started chan<- bool) string {
	s.spec.Up(p.Self().ID, nil) // before the Up of any child
	defer s.spec.Down(p.Self().ID, shutdown)
	return s.Supervisor.ProcessLoop(p, started)
}

// Ergo calls Init.
func (s *supervisorProcess) Init(...ergoetf.Term) (gen.SupervisorSpec, error) {
	spec := gen.SupervisorSpec{
		Name: s.spec.Name,
		Strategy: gen.SupervisorStrategy{
			Type:      gen.SupervisorStrategyOneForOne,
			Restart:   gen.SupervisorStrategyRestartPermanent,
			Intensity: math.MaxUint16,
			Period:    1,
		},
	}
	for _, child := range s.children {
		spec.Children = append(spec.Children, gen.SupervisorChildSpec{Name: child.Name, Child: child})
	}
	return spec, nil
}

// closed is a handshake that refuses all callers.
type closed struct{ ergonode.Handshake }

func (*closed) Init(string, uint32, ergonode.Flags) error { return nil }

// Accept returns io.EOF, which Ergo does not log.
func (*closed) Accept(net.Addr, lib.NetReadWriter, bool, string) (ergonode.HandshakeDetails, error) {
	return ergonode.HandshakeDetails{}, io.EOF
}

// process is a Process for Ergo. Only its end function and the end of the node can end it.
type process struct {
	Process
	running chan struct{} // holds an element while the end function can end the process
}

var _ gen.ProcessBehavior = (*process)(nil)

// Ergo calls ProcessInit before the process runs.
func (s *process) ProcessInit(p gen.Process, _ ...ergoetf.Term) (gen.ProcessState, error) {
	return gen.ProcessState{Process: p}, nil
}

// ProcessLoop runs the process and returns its exit reason.
func (s *process) ProcessLoop(p gen.ProcessState, started chan<- bool) string {
	id, done := p.Self().ID, p.Context().Done() // closed when the node or the supervisor ends
	ends := make(chan etf.Term, 1)              // Ergo's own Kill is not safe once the process ends
	var once sync.Once
	s.Up(id, func(reason etf.Term) {
		once.Do(func() {
			select {
			case <-s.running:
				ends <- reason
			case <-done:
			}
		})
	})
	s.running <- struct{}{}
	started <- true
	var reason etf.Term = shutdown
	select {
	case reason = <-ends:
	case <-done:
	}
	s.Down(id, reason)
	text, _ := reason.(etf.Atom)
	return string(text)
}

const (
	// Killed is the exit reason of a process that exit(Pid, kill) ended.
	Killed = etf.Atom("killed")

	shutdown = etf.Atom("shutdown")
)
