package node

import (
	"runtime/metrics"

	"github.com/flake-go/flake/genserver"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/rpc"
)

// The functions that ask the node's processes.

// fnCall calls a server of this node, except rex: a call nested in a call would keep
// and encode the arguments again at each level. The third argument would be a timeout.
func (n *Node) fnCall(args []etf.Term) (etf.Term, error) {
	exit := func(why etf.Term) error { return exited(why, "gen_server", "call", args) }
	p, err := n.server(args[0], exit)
	if err != nil {
		return nil, err
	}
	if _, nests := p.Handler.(*rpc.Rex); nests {
		return nil, &rpc.Exception{Class: rpc.Error, Reason: etf.Atom("notsup")}
	}
	reply, err := p.Call(args[1])
	if err != nil {
		return nil, exit(etf.Atom("timeout"))
	}
	return reply, nil
}

// fnOfSupervisor is a function of module supervisor: a call of that name.
func (n *Node) fnOfSupervisor(request etf.Atom) rpc.Function {
	return func(args []etf.Term) (etf.Term, error) {
		return n.fnCall([]etf.Term{args[0], request, etf.Atom("infinity")})
	}
}

// fnGetState is sys:get_state. The second argument would be a timeout.
func (n *Node) fnGetState(args []etf.Term) (etf.Term, error) {
	p, err := n.server(args[0], func(why etf.Term) error { return exited(why, "sys", "get_state", args) })
	if err != nil {
		return nil, err
	}
	return p.Handler.State(), nil
}

func exited(why etf.Term, module, function etf.Atom, args []etf.Term) error {
	call := etf.Tuple{module, function, etf.List(args)}
	return &rpc.Exception{Class: rpc.Exit, Reason: etf.Tuple{why, call}}
}

// server returns the server that a name, {Name, Node} or a pid stands for. If there is
// none, exit makes the error from OTP's reason.
func (n *Node) server(ref etf.Term, exit func(why etf.Term) error) (*genserver.Server, error) {
	var p *process
	node := etf.Atom(n.name)
	switch ref := ref.(type) {
	case etf.Atom:
		p = n.registry.named(ref)
	case etf.Tuple:
		if len(ref) != 2 {
			return nil, rpc.BadArgument()
		}
		name, ok1 := ref[0].(etf.Atom)
		at, ok2 := ref[1].(etf.Atom)
		if !ok1 || !ok2 {
			return nil, rpc.BadArgument()
		}
		p, node = n.registry.named(name), at
	case etf.Pid:
		p, node = n.local(ref), ref.Node()
	default:
		return nil, rpc.BadArgument()
	}
	if string(node) != n.name {
		return nil, exit(etf.Tuple{etf.Atom("nodedown"), node}) // we call only our own
	}
	if p == nil {
		return nil, exit(etf.Atom("noproc"))
	}
	return p.server, nil
}

// local returns the process of this node with the pid, or nil.
func (n *Node) local(pid etf.Pid) *process {
	node, id, creation := etf.PidParts([]byte(pid))
	if string(node) != n.name || creation != n.creation {
		return nil
	}
	return n.registry.byID(id)
}

// fnIsProcessAlive knows the node's own processes, not those that others spawned here.
func (n *Node) fnIsProcessAlive(args []etf.Term) (etf.Term, error) {
	pid, ok := args[0].(etf.Pid)
	if !ok || string(pid.Node()) != n.name {
		return nil, rpc.BadArgument()
	}
	if n.local(pid) != nil {
		return etf.Atom("true"), nil
	}
	return etf.Atom("false"), nil
}

// send delivers a connection's message to a name, and reports whether it exists.
func (n *Node) send(name etf.Atom, message []byte, c genserver.Caller) bool {
	p := n.registry.named(name)
	if p == nil {
		return false
	}
	if err := p.server.Receive(message, c); err != nil {
		n.log.Warn("message dropped", "process", name, "err", err)
	}
	return true
}

// fnMemory is erlang:memory, in bytes. Of OTP's kinds this node has processes, the
// memory of values, and system, the rest.
func fnMemory(args []etf.Term) (etf.Term, error) {
	samples := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
	}
	metrics.Read(samples)
	value := func(i int) int64 { return int64(samples[i].Value.Uint64()) }
	total, used := value(0)-value(1), value(2)
	processes := used + value(3)
	kinds := etf.List{
		etf.Tuple{etf.Atom("total"), total},
		etf.Tuple{etf.Atom("processes"), processes},
		etf.Tuple{etf.Atom("processes_used"), used},
		etf.Tuple{etf.Atom("system"), total - processes},
		etf.Tuple{etf.Atom("atom"), int64(0)},
		etf.Tuple{etf.Atom("atom_used"), int64(0)},
		etf.Tuple{etf.Atom("binary"), int64(0)},
		etf.Tuple{etf.Atom("code"), int64(0)},
		etf.Tuple{etf.Atom("ets"), int64(0)},
	}
	if len(args) == 0 {
		return kinds, nil
	}
	wanted, isList := etf.Elements(args[0])
	if !isList {
		wanted = args
	}
	var list etf.List
	for _, kind := range wanted {
		found := false
		for _, k := range kinds {
			if k := k.(etf.Tuple); k[0] == kind {
				list, found = append(list, k), true
			}
		}
		if !found {
			return nil, rpc.BadArgument()
		}
	}
	if !isList {
		return list[0].(etf.Tuple)[1], nil
	}
	return list, nil
}
