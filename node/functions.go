package node

import (
	"cmp"
	"slices"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/rpc"
)

// standardFunctions are the functions of Erlang's own that make sense here.
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

		{Module: "erlang", Function: "is_process_alive", Arity: 1}:   n.fnIsProcessAlive,
		{Module: "erlang", Function: "memory", Arity: 0}:             fnMemory,
		{Module: "erlang", Function: "memory", Arity: 1}:             fnMemory,
		{Module: "sys", Function: "get_state", Arity: 1}:             n.fnGetState,
		{Module: "sys", Function: "get_state", Arity: 2}:             n.fnGetState,
		{Module: "supervisor", Function: "which_children", Arity: 1}: n.fnOfSupervisor("which_children"),
		{Module: "supervisor", Function: "count_children", Arity: 1}: n.fnOfSupervisor("count_children"),
	}
}

func (n *Node) fnNode([]etf.Term) (etf.Term, error) { return etf.Atom(n.name), nil }

// fnNodes is nodes(), and nodes(Kind) for one kind or a list of them. A node that is
// visible to other nodes counts as visible, though we are hidden from each other.
// Known are this node and the connected ones.
func (n *Node) fnNodes(args []etf.Term) (etf.Term, error) {
	kinds := []etf.Term{etf.Atom("visible")}
	if len(args) == 1 {
		kinds = args
		if list, ok := etf.Elements(args[0]); ok {
			kinds = list
		}
	}
	var this, visible, hidden bool
	for _, kind := range kinds {
		switch kind {
		case etf.Atom("this"):
			this = true
		case etf.Atom("visible"):
			visible = true
		case etf.Atom("hidden"):
			hidden = true
		case etf.Atom("connected"):
			visible, hidden = true, true
		case etf.Atom("known"):
			this, visible, hidden = true, true, true
		default:
			return nil, rpc.BadArgument()
		}
	}
	var list etf.List
	if this {
		list = append(list, etf.Atom(n.name))
	}
	for _, c := range n.connections() {
		if c.Peer().Hidden && hidden || !c.Peer().Hidden && visible {
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
		return n.pid(p.ID), nil
	}
	return etf.Atom("undefined"), nil
}

func (n *Node) fnRegistered([]etf.Term) (etf.Term, error) {
	list := n.registry.list()
	sortAtoms(list)
	return list, nil
}

// fnPing connects to a node that is not yet connected.
func (n *Node) fnPing(args []etf.Term) (etf.Term, error) {
	peer, ok := args[0].(etf.Atom)
	if !ok {
		return nil, rpc.BadArgument()
	}
	if string(peer) == n.name || n.Connect(string(peer)) == nil {
		return etf.Atom("pong"), nil
	}
	return etf.Atom("pang"), nil
}

func sortAtoms(list etf.List) {
	slices.SortFunc(list, func(a, b etf.Term) int { return cmp.Compare(a.(etf.Atom), b.(etf.Atom)) })
}
