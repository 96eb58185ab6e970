// Package ergo runs the gen_servers of a node as processes of the Ergo framework,
// which gives them pids and names and restarts them when they end. No other package
// imports Ergo.
//
// Peers' messages do not pass through Ergo: connections pass them to the gen_servers directly.
// See package dist.
package ergo

import (
	"context"
	"io"
	"math"
	"net"
	"slices"
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
	ctx         context.Context
	node        ergonode.Node
	supervisors []gen.Process

	// ending is read-locked once for each process that was ended by its end function, until the
	// process is restarted or ctx ends. Shutdown locks it for good, because Ergo has a data race
	// if a process ends while its supervisor stops it.
	ending sync.RWMutex
}

// Start starts a node, which runs until ctx ends or [Node.Stop] is called.
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
	return &Node{ctx: ctx, node: n}, nil
}

// Supervise starts a supervisor and then its children in order. A child is restarted each time
// it ends, without limit: a peer that kills it repeatedly must not end the service for other
// peers.
func (n *Node) Supervise(supervisor Process, children ...Process) error {
	s := &supervisorProcess{spec: supervisor, children: children, node: n}
	p, err := n.node.Spawn(supervisor.Name, gen.ProcessOptions{}, s)
	if err == nil {
		n.supervisors = append(n.supervisors, p)
	}
	return err
}

// Shutdown ends all processes with the reason shutdown, without waiting for them to end. It
// first waits for processes that are being restarted.
func (n *Node) Shutdown() {
	n.ending.Lock()
	for _, s := range slices.Backward(n.supervisors) {
		s.Exit(shutdown)
	}
}

// Stop ends the node immediately.
func (n *Node) Stop() { n.node.Stop() }

const shutdown = "shutdown"

// supervisorProcess is a supervisor for Ergo.
type supervisorProcess struct {
	gen.Supervisor
	spec     Process
	children []Process
	node     *Node
}

// Ergo calls ProcessInit before the supervisor runs.
func (s *supervisorProcess) ProcessInit(p gen.Process, args ...ergoetf.Term) (gen.ProcessState, error) {
	s.spec.Up(p.Self().ID, nil)
	return s.Supervisor.ProcessInit(p, args...)
}

// ProcessLoop runs the supervisor.
func (s *supervisorProcess) ProcessLoop(p gen.ProcessState, started chan<- bool) (reason string) {
	defer func() { s.spec.Down(p.Self().ID, etf.Atom(reason)) }()
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
		p := &process{Process: child, node: s.node}
		spec.Children = append(spec.Children, gen.SupervisorChildSpec{Name: child.Name, Child: p})
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

// process is a Process for Ergo. It traps exits, so that only its end function and its
// supervisor can end it.
type process struct {
	Process
	node      *Node
	restarted func() // called after the restart if the end function ended the last run
}

var _ gen.ProcessBehavior = (*process)(nil)

// Ergo calls ProcessInit before the process runs.
func (s *process) ProcessInit(p gen.Process, _ ...ergoetf.Term) (gen.ProcessState, error) {
	p.SetTrapExit(true)
	return gen.ProcessState{Process: p}, nil
}

// ProcessLoop runs the process and returns its exit reason.
func (s *process) ProcessLoop(p gen.ProcessState, started chan<- bool) string {
	id := p.Self().ID
	ends := make(chan etf.Term, 1) // Ergo's own Kill is not safe once the process ends
	var once sync.Once
	restarted := s.restarted
	s.Up(id, func(reason etf.Term) {
		once.Do(func() {
			ending := &s.node.ending
			if ending.TryRLock() {
				stop := context.AfterFunc(s.node.ctx, ending.RUnlock)
				s.restarted = func() {
					if stop() {
						ending.RUnlock()
					}
				}
				ends <- reason
			}
		})
	})
	if restarted != nil {
		restarted()
	}
	reason := s.await(ends, p, started)
	s.Down(id, reason)
	text, _ := reason.(etf.Atom)
	return string(text)
}

// await waits for the end of the process and returns the reason. Only the supervisor
// calls the process's Exit, and then ends too, which ends the process's context. await
// waits for that, because Ergo has a data race if a child ends while its supervisor does.
func (s *process) await(ends <-chan etf.Term, p gen.ProcessState, started chan<- bool) (reason etf.Term) {
	channels, ctx := p.ProcessChannels(), p.Context()
	started <- true
	for {
		select {
		case reason := <-ends:
			return reason
		case exit := <-channels.GracefulExit:
			if exit.From == p.Self() {
				<-ctx.Done()
				return etf.Atom(exit.Reason)
			}
		case <-channels.Mailbox:
		case direct := <-channels.Direct:
			p.PutSyncReply(direct.Ref, nil, lib.ErrUnsupportedRequest)
		case <-ctx.Done():
			for len(channels.GracefulExit) > 0 { // both may be ready
				if exit := <-channels.GracefulExit; exit.From == p.Self() {
					return etf.Atom(exit.Reason)
				}
			}
			return Killed
		}
	}
}

// Killed is the exit reason of a process that exit(Pid, kill) ended.
const Killed = etf.Atom("killed")
