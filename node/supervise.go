package node

import (
	"log/slog"
	"math"
	"slices"

	ergo "github.com/ergo-services/ergo/etf"
	"github.com/ergo-services/ergo/gen"

	"github.com/flake-go/flake/genserver"
	"github.com/flake-go/flake/node/dist"
	"github.com/flake-go/flake/node/etf"
)

// Supervisor is a supervisor and the gen_servers that it keeps alive.
type Supervisor struct {
	Name    etf.Atom
	Module  etf.Atom
	Servers []Server // in the order of their start
}

// Server is a registered gen_server.
type Server struct {
	Name    etf.Atom
	Module  etf.Atom // the callback module that a BEAM would have
	Handler genserver.Handler
}

// supervisor is a Supervisor as a process of Ergo.
type supervisor struct {
	gen.Supervisor
	spec     Supervisor
	registry *registry
	log      *slog.Logger
	self     etf.Pid
}

// ProcessInit is called by Ergo before the process runs.
func (s *supervisor) ProcessInit(p gen.Process, args ...ergo.Term) (gen.ProcessState, error) {
	s.self = etfPidOf(p)
	s.registry.add(p, inline{&genserver.Server{
		Name:    s.spec.Name,
		Module:  s.spec.Module,
		Pid:     s.self,
		Parent:  s.self,
		Family:  s.spec.Name,
		Handler: children{supervisor: s},
	}}, nil) // to kill it would be to end the service
	return s.Supervisor.ProcessInit(p, args...)
}

// ProcessLoop is the life of the process.
func (s *supervisor) ProcessLoop(p gen.ProcessState, started chan<- bool) string {
	defer s.registry.remove(p.Process)
	return s.Supervisor.ProcessLoop(p, started)
}

// Init is called by Ergo. Restarts are not bounded: a peer that kills a server
// again and again shall not be able to end the service for all.
func (s *supervisor) Init(...ergo.Term) (gen.SupervisorSpec, error) {
	spec := gen.SupervisorSpec{
		Name: string(s.spec.Name),
		Strategy: gen.SupervisorStrategy{
			Type:      gen.SupervisorStrategyOneForOne,
			Restart:   gen.SupervisorStrategyRestartPermanent,
			Intensity: math.MaxUint16,
			Period:    1,
		},
	}
	for _, server := range s.spec.Servers {
		spec.Children = append(spec.Children, gen.SupervisorChildSpec{
			Name: string(server.Name),
			Child: &genserver.Process{
				Up: func(p gen.Process, end func(reason string)) {
					s.registry.add(p, s.serving(server, p, end), func() { end(genserver.Killed) })
				},
				Down: s.registry.remove,
			},
		})
	}
	return spec, nil
}

// serving is one life of a server.
func (s *supervisor) serving(server Server, p gen.Process, end func(reason string)) dist.Handler {
	return inline{&genserver.Server{
		Name:    server.Name,
		Module:  server.Module,
		Pid:     etfPidOf(p),
		Parent:  s.self,
		Family:  s.spec.Name,
		Handler: server.Handler,
		End: func(reason etf.Term) {
			s.log.Warn("process told to terminate, and started anew", "name", server.Name)
			end(genserver.Reason(reason))
		},
	}}
}

// inline has a gen_server answer on the goroutine that reads a connection.
type inline struct{ *genserver.Server }

// Receive implements dist.Handler.
func (i inline) Receive(message []byte, c dist.Caller) error { return i.Server.Receive(message, c) }

// children answers what module supervisor asks a supervisor.
type children struct {
	silent
	supervisor *supervisor
}

// HandleCall answers which_children, the last started first, and count_children.
// Children cannot be started, stopped or replaced from outside.
func (c children) HandleCall(dst, request []byte, caps etf.Caps) []byte {
	r := etf.NewReader(request)
	var reply etf.Term = etf.Tuple{etf.Atom("error"), etf.Atom("not_supported")}
	switch string(r.Atom()) {
	case "which_children":
		reply = c.which()
	case "count_children":
		n := int64(len(c.supervisor.spec.Servers))
		reply = etf.List{
			etf.Tuple{etf.Atom("specs"), n},
			etf.Tuple{etf.Atom("active"), c.active()},
			etf.Tuple{etf.Atom("supervisors"), int64(0)},
			etf.Tuple{etf.Atom("workers"), n},
		}
	}
	b, err := etf.Append(dst, reply, caps)
	if err != nil {
		return nil
	}
	return b
}

func (c children) which() etf.List {
	var list etf.List
	for _, server := range slices.Backward(c.supervisor.spec.Servers) {
		var pid etf.Term = etf.Atom("restarting")
		if p := c.supervisor.registry.named(server.Name); p != nil {
			pid = etfPid(p.Pid)
		}
		list = append(list, etf.Tuple{server.Name, pid, etf.Atom("worker"), etf.List{server.Module}})
	}
	return list
}

func (c children) active() (n int64) {
	for _, server := range c.supervisor.spec.Servers {
		if c.supervisor.registry.named(server.Name) != nil {
			n++
		}
	}
	return n
}

func etfPidOf(p gen.Process) etf.Pid { return etfPid(p.Self()) }

func etfPid(p ergo.Pid) etf.Pid {
	return etf.NewPid(etf.Atom(p.Node), uint32(p.ID), uint32(p.ID>>32), p.Creation)
}

func ergoPid(p etf.Pid) ergo.Pid {
	return ergo.Pid{Node: ergo.Atom(p.Node()), ID: uint64(p.Serial())<<32 | uint64(p.ID()), Creation: p.Creation()}
}
