// Package ergo runs the gen_servers of a node as processes of the Ergo framework,
// which gives them pids and names and restarts them when they end. No other package
// imports Ergo.
//
// Peers' messages do not pass through Ergo: connections hand them to the gen_servers
// directly. See package dist.
package ergo

import (
	"context"
	"io"
	"math"
	"net"

	ergoetf "github.com/ergo-services/ergo/etf"
	"github.com/ergo-services/ergo/gen"
	"github.com/ergo-services/ergo/lib"
	ergonode "github.com/ergo-services/ergo/node"

	"github.com/flake-go/flake/node/etf"
)

// Process is what a [Node] runs.
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
	ctx         context.Context
	node        ergonode.Node
	supervisors []gen.Process
	ends        *ends
}

// Start starts a node. It ends when ctx ends, if not before.
func Start(ctx context.Context, name string, creation uint32) (*Node, error) {
	n, err := ergonode.StartWithContext(ctx, name, "", ergonode.Options{
		Creation:         creation,
		Listeners:        []ergonode.Listener{{Hostname: "127.0.0.1"}},
		Handshake:        &closed{},
		Proto:            &ergonode.Proto{},
		StaticRoutesOnly: true,
	})
	if err != nil {
		return nil, err
	}
	return &Node{ctx: ctx, node: n, ends: newEnds()}, nil
}

// Supervise starts a supervisor and then its children in order. A child is restarted
// each time it ends, without limit: a peer that kills it repeatedly must not end the
// service for others.
func (n *Node) Supervise(supervisor Process, children ...Process) error {
	p, err := n.node.Spawn(supervisor.Name, gen.ProcessOptions{}, &supervisorProcess{spec: supervisor, children: children, ends: n.ends})
	if err == nil {
		n.supervisors = append(n.supervisors, p)
	}
	return err
}

// Shutdown ends all processes with the reason shutdown, and does not wait for their end.
// It first waits for processes that are being restarted.
func (n *Node) Shutdown() {
	n.ends.stop(n.ctx)
	for i := len(n.supervisors) - 1; i >= 0; i-- {
		n.supervisors[i].Exit(shutdown)
	}
}

// Stop ends the node at once.
func (n *Node) Stop() { n.node.Stop() }

const shutdown = "shutdown"

// supervisorProcess is a supervisor for Ergo.
type supervisorProcess struct {
	gen.Supervisor
	spec     Process
	children []Process
	ends     *ends
}

// ProcessInit is called by Ergo before the supervisor runs.
func (s *supervisorProcess) ProcessInit(p gen.Process, args ...ergoetf.Term) (gen.ProcessState, error) {
	s.spec.Up(p.Self().ID, nil)
	return s.Supervisor.ProcessInit(p, args...)
}

// ProcessLoop runs the supervisor.
func (s *supervisorProcess) ProcessLoop(p gen.ProcessState, started chan<- bool) (reason string) {
	defer func() { s.spec.Down(p.Self().ID, etf.Atom(reason)) }()
	return s.Supervisor.ProcessLoop(p, started)
}

// Init is called by Ergo.
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
		spec.Children = append(spec.Children, gen.SupervisorChildSpec{Name: child.Name, Child: &process{Process: child, ends: s.ends}})
	}
	return spec, nil
}

// closed is a handshake that refuses all callers. An Ergo node cannot run without a
// listener.
type closed struct{ ergonode.Handshake }

func (*closed) Init(string, uint32, ergonode.Flags) error { return nil }

// Accept returns io.EOF, which Ergo does not log.
func (*closed) Accept(net.Addr, lib.NetReadWriter, bool, string) (ergonode.HandshakeDetails, error) {
	return ergonode.HandshakeDetails{}, io.EOF
}
