package node

import (
	"slices"

	"github.com/flake-go/flake/genserver"
	"github.com/flake-go/flake/node/ergo"
	"github.com/flake-go/flake/node/etf"
)

// Supervisor is a supervisor and the gen_servers that it restarts.
type Supervisor struct {
	Name    etf.Atom
	Module  etf.Atom
	Servers []Server // in the order in which they start
}

// Server is a registered gen_server.
type Server struct {
	Name    etf.Atom
	Module  etf.Atom // the callback module that a BEAM would have
	Handler genserver.Handler
}

// supervise starts a supervisor and its servers as processes, which are registered while
// they live.
func (n *Node) supervise(s Supervisor) error {
	var self etf.Pid
	server := func(id uint64, name, module etf.Atom, h genserver.Handler) *genserver.Server {
		return &genserver.Server{Name: name, Module: module, Pid: n.pid(id), Parent: self, Family: s.Name, Handler: h}
	}
	children := make([]ergo.Process, len(s.Servers))
	for i, child := range s.Servers {
		children[i] = ergo.Process{
			Name: string(child.Name),
			Up: func(id uint64, end func(reason etf.Term)) {
				instance := server(id, child.Name, child.Module, child.Handler)
				instance.End = func(reason etf.Term) {
					n.log.Warn("process told to terminate and restarted", "process", child.Name)
					end(reason)
				}
				n.registry.add(instance, id, func() { end(ergo.Killed) })
			},
			Down: func(id uint64, reason etf.Term) { n.ended(child.Name, id, reason) },
		}
	}
	return n.ergo.Supervise(ergo.Process{
		Name: string(s.Name),
		Up: func(id uint64, _ func(etf.Term)) {
			self = n.pid(id)
			instance := server(id, s.Name, s.Module, supervisor{spec: s, registry: n.registry})
			n.registry.add(instance, id, nil) // killing it would end its servers
		},
		Down: func(id uint64, reason etf.Term) { n.ended(s.Name, id, reason) },
	}, children...)
}

// ended removes a process, and reports its end to peers.
func (n *Node) ended(name etf.Atom, id uint64, reason etf.Term) {
	n.registry.remove(name, id)
	n.proto.Ended(id, reason)
}

// pid returns the pid of a process of this node.
func (n *Node) pid(id uint64) etf.Pid {
	return etf.NewPid(etf.Atom(n.name), uint32(id), uint32(id>>32), n.creation)
}

// supervisor answers the requests of module supervisor.
type supervisor struct {
	genserver.Plain
	spec     Supervisor
	registry *registry
}

// HandleCall answers which_children, the last started first, and count_children. Peers
// cannot start, stop or replace children.
func (s supervisor) HandleCall(c genserver.Call) {
	r := etf.NewReader(c.Request)
	var reply etf.Term = etf.Tuple{etf.Atom("error"), etf.Atom("not_supported")}
	switch string(r.Atom()) {
	case "which_children":
		reply = s.which()
	case "count_children":
		n := int64(len(s.spec.Servers))
		reply = etf.List{
			etf.Tuple{etf.Atom("specs"), n},
			etf.Tuple{etf.Atom("active"), s.active()},
			etf.Tuple{etf.Atom("supervisors"), int64(0)},
			etf.Tuple{etf.Atom("workers"), n},
		}
	}
	if b, err := etf.Append(c.Begin(), reply, c.Caps()); err == nil {
		c.Reply(b)
	}
}

func (s supervisor) which() etf.List {
	var list etf.List
	for _, server := range slices.Backward(s.spec.Servers) {
		var pid etf.Term = etf.Atom("restarting")
		if p := s.registry.named(server.Name); p != nil {
			pid = p.server.Pid
		}
		list = append(list, etf.Tuple{server.Name, pid, etf.Atom("worker"), etf.List{server.Module}})
	}
	return list
}

func (s supervisor) active() (n int64) {
	for _, server := range s.spec.Servers {
		if s.registry.named(server.Name) != nil {
			n++
		}
	}
	return n
}
