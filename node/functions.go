package node

import (
	"cmp"
	"slices"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/rpc"
)

// standardFunctions are those of Erlang's own that make sense here.
func (n *Node) standardFunctions() rpc.Table {
	return rpc.Table{
		{Module: "erlang", Function: "node", Arity: 0}:       n.fnNode,
		{Module: "erlang", Function: "nodes", Arity: 0}:      n.fnNodes,
		{Module: "erlang", Function: "nodes", Arity: 1}:      n.fnNodes,
		{Module: "erlang", Function: "whereis", Arity: 1}:    n.fnWhereis,
		{Module: "erlang", Function: "registered", Arity: 0}: n.fnRegistered,
		{Module: "net_adm", Function: "ping", Arity: 1}:      n.fnPing,
		{Module: "gen_server", Function: "call", Arity: 2}:   n.fnCall,
		{Module: "gen_server", Function: "call", Arity: 3}:   n.fnCall,
	}
}

func (n *Node) fnNode([]etf.Term) (etf.Term, error) { return etf.Atom(n.name), nil }

// fnNodes is nodes() and nodes(Type). A node counts as visible if it is one to
// other nodes, though to each other we are hidden.
func (n *Node) fnNodes(args []etf.Term) (etf.Term, error) {
	var kind etf.Term = etf.Atom("visible")
	if len(args) == 1 {
		kind = args[0]
	}
	var list etf.List
	switch kind {
	case etf.Atom("this"):
		return etf.List{etf.Atom(n.name)}, nil
	case etf.Atom("visible"), etf.Atom("hidden"), etf.Atom("connected"):
	default:
		return nil, rpc.BadArgument()
	}
	for _, c := range n.connections() {
		if kind == etf.Atom("connected") || c.Peer().Hidden == (kind == etf.Atom("hidden")) {
			list = append(list, etf.Atom(c.Peer().Name))
		}
	}
	sortAtoms(list)
	return list, nil
}

func (n *Node) fnWhereis(args []etf.Term) (etf.Term, error) {
	name, ok := args[0].(etf.Atom)
	if !ok {
		return nil, rpc.BadArgument()
	}
	if p := n.registry.named(name); p != nil {
		return etfPid(p.Pid), nil
	}
	return etf.Atom("undefined"), nil
}

func (n *Node) fnRegistered([]etf.Term) (etf.Term, error) {
	list := n.registry.list()
	sortAtoms(list)
	return list, nil
}

// fnPing connects to a node that is not connected yet.
func (n *Node) fnPing(args []etf.Term) (etf.Term, error) {
	peer, ok := args[0].(etf.Atom)
	if !ok {
		return nil, rpc.BadArgument()
	}
	if string(peer) == n.name || n.connection(string(peer)) != nil || n.ergo.Connect(string(peer)) == nil {
		return etf.Atom("pong"), nil
	}
	return etf.Atom("pang"), nil
}

// fnCall calls a server of this node by its name. The third argument would be a
// time-out.
func (n *Node) fnCall(args []etf.Term) (etf.Term, error) {
	name, ok := args[0].(etf.Atom)
	if !ok {
		return nil, rpc.BadArgument()
	}
	exit := func(why etf.Atom) error {
		call := etf.Tuple{etf.Atom("gen_server"), etf.Atom("call"), etf.List(args)}
		return &rpc.Exception{Class: rpc.Exit, Reason: etf.Tuple{why, call}}
	}
	p := n.registry.named(name)
	if p == nil {
		return nil, exit("noproc")
	}
	reply, err := p.Handler.(inline).Call(args[1]) // as the supervisor added it
	if err != nil {
		return nil, exit("timeout")
	}
	return reply, nil
}

func sortAtoms(list etf.List) {
	slices.SortFunc(list, func(a, b etf.Term) int { return cmp.Compare(a.(etf.Atom), b.(etf.Atom)) })
}
