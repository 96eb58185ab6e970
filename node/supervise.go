package node

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/flake-go/flake/genserver"
	"github.com/flake-go/flake/node/distribution"
	"github.com/flake-go/flake/node/ergo"
	"github.com/flake-go/flake/node/etf"
)

// Supervisor is a supervisor and the gen_servers that it restarts.
type Supervisor struct {
	Name     etf.Atom
	Module   etf.Atom
	Children []Child // in the order in which they start
}

// Child is a gen_server of a [Supervisor].
type Child struct {
	Name    etf.Atom
	Module  etf.Atom // the callback module that a BEAM would have
	Handler genserver.Handler
}

// supervise starts a supervisor and its servers as processes, which are registered while they
// are alive.
func (n *Node) supervise(s Supervisor) error {
	var self etf.Pid // of the supervisor
	processOf := func(v Child) ergo.Process {
		return ergo.Process{Name: string(v.Name), Down: n.ended, Up: func(id uint64, end func(reason etf.Term)) {
			server := &genserver.Server{Name: v.Name, Module: v.Module, Handler: v.Handler, Family: s.Name}
			server.Pid = n.pid(id)
			var kill func() // nil for the supervisor: killing it would end its servers
			if end == nil {
				self = server.Pid
			} else {
				kill = func() { end(ergo.Killed) }
				server.End = func(reason etf.Term) {
					n.options.Log.Warn("process terminated on request and restarted", "process", v.Name)
					end(reason)
				}
			}
			server.Parent = self
			receive := func(m *distribution.Message) error { return server.Receive(m.Term(), caller{m}) }
			n.processes.Add(1)
			n.registry.change(func(all []process) []process {
				return append(all, process{&distribution.Process{ID: id, Receive: receive, Kill: kill}, server})
			})
		}}
	}
	var children []ergo.Process
	for _, v := range s.Children {
		children = append(children, processOf(v))
	}
	return n.ergo.Supervise(processOf(Child{s.Name, s.Module, supervisor{spec: s, registry: n.registry}}), children...)
}

// ended removes a process and reports its end to peers.
func (n *Node) ended(id uint64, reason etf.Term) {
	defer n.processes.Done()
	n.registry.change(func(all []process) []process {
		return slices.DeleteFunc(all, func(p process) bool { return p.ID == id })
	})
	n.proto.Ended(id, reason)
}

func (n *Node) pid(id uint64) etf.Pid {
	return etf.NewPid(etf.Atom(n.options.Name), uint32(id), uint32(id>>32), n.creation)
}

// supervisor answers the requests of module supervisor.
type supervisor struct {
	genserver.Plain
	spec     Supervisor
	registry *registry
}

// HandleCall answers which_children (most recently started first), count_children, which_child and
// get_childspec. Peers cannot start, stop or replace children.
func (s supervisor) HandleCall(c genserver.Call) {
	var children etf.List
	n, active := int64(len(s.spec.Children)), int64(0)
	for _, server := range slices.Backward(s.spec.Children) {
		var pid etf.Term = etf.Atom("restarting")
		if p := s.registry.named(server.Name); p.server != nil {
			pid = p.server.Pid
			active++
		}
		children = append(children, etf.Tuple{server.Name, pid, etf.Atom("worker"), etf.List{server.Module}})
	}
	var reply etf.Term = etf.Tuple{etf.Atom("error"), etf.Atom("not_supported")}
	request, _ := etf.Decode(c.Request)
	pair, _ := request.(etf.Tuple)
	switch {
	case request == etf.Atom("which_children"):
		reply = children
	case request == etf.Atom("count_children"):
		reply = etf.List{
			etf.Tuple{etf.Atom("specs"), n},
			etf.Tuple{etf.Atom("active"), active},
			etf.Tuple{etf.Atom("supervisors"), int64(0)},
			etf.Tuple{etf.Atom("workers"), n},
		}
	case len(pair) == 2 && (pair[0] == etf.Atom("which_child") || pair[0] == etf.Atom("get_childspec")):
		reply = etf.Tuple{etf.Atom("error"), etf.Atom("not_found")}
		for _, child := range children {
			info := child.(etf.Tuple)
			_, isPid := pair[1].(etf.Pid)
			switch {
			case info[0] != pair[1] && !(isPid && info[1] == pair[1]):
			case pair[0] == etf.Atom("which_child"):
				reply = etf.Tuple{etf.Atom("ok"), info}
			default:
				reply = etf.Tuple{etf.Atom("ok"), childSpec(info[0], info[3])}
			}
		}
	}
	if b, err := etf.Append(c.Begin(), reply, c.Caps()); err == nil {
		c.Reply(b)
	}
}

// childSpec returns the specification that a BEAM would have for a server.
func childSpec(id, modules etf.Term) etf.Map {
	return etf.Map{
		{Key: etf.Atom("id"), Value: id},
		{Key: etf.Atom("start"), Value: etf.Tuple{modules.(etf.List)[0], etf.Atom("start_link"), etf.List{}}},
		{Key: etf.Atom("restart"), Value: etf.Atom("permanent")},
		{Key: etf.Atom("significant"), Value: etf.Atom("false")},
		{Key: etf.Atom("shutdown"), Value: int64(5000)},
		{Key: etf.Atom("type"), Value: etf.Atom("worker")},
		{Key: etf.Atom("modules"), Value: modules},
	}
}

// registry holds the gen_servers and supervisors. Lookups take no lock; each change copies the
// list, because calls are far more frequent than process starts. The list is short.
type registry struct {
	mu      sync.Mutex // guards current against concurrent changes
	current atomic.Pointer[[]process]
}

// process is the process of a gen_server or supervisor. Its fields are nil if a lookup has found none.
type process struct {
	*distribution.Process
	server *genserver.Server
}

// caller is the Caller of a message from a peer.
type caller struct{ *distribution.Message }

func (c caller) Later(f func(genserver.Caller)) {
	c.Message.Later(func(m *distribution.Message) { f(caller{m}) })
}

func newRegistry() *registry {
	r := &registry{}
	r.current.Store(new([]process))
	return r
}

func (r *registry) change(edit func([]process) []process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := edit(slices.Clone(*r.current.Load()))
	r.current.Store(&next)
}

func (r *registry) find(is func(process) bool) (found process) {
	all := *r.current.Load()
	if i := slices.IndexFunc(all, is); i >= 0 {
		found = all[i]
	}
	return found
}

func (r *registry) named(name etf.Atom) process {
	return r.find(func(p process) bool { return p.server.Name == name })
}

func (r *registry) byID(id uint64) process {
	return r.find(func(p process) bool { return p.ID == id })
}

// Whereis implements distribution.Processes.
func (r *registry) Whereis(name []byte) *distribution.Process {
	return r.find(func(p process) bool { return string(p.server.Name) == string(name) }).Process
}

// ByID implements distribution.Processes.
func (r *registry) ByID(id uint64) *distribution.Process { return r.byID(id).Process }
