package node

import (
	"cmp"
	"runtime/metrics"
	"slices"
	"strconv"

	"github.com/flake-go/flake/genserver"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/rpc"
)

// standardFunctions returns the supported functions of Erlang's modules.
func (n *Node) standardFunctions() rpc.Table {
	return rpc.Table{
		{Module: "erlang", Function: "apply", Arity: 2}:      n.fnApply,
		{Module: "erlang", Function: "apply", Arity: 3}:      n.fnApply,
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
		{Module: "erlang", Function: "system_info", Arity: 1}:        fnSystemInfo,
		{Module: "sys", Function: "get_state", Arity: 1}:             n.fnGetState,
		{Module: "sys", Function: "get_state", Arity: 2}:             n.fnGetState,
		{Module: "supervisor", Function: "which_children", Arity: 1}: n.fnOfSupervisor("which_children"),
		{Module: "supervisor", Function: "count_children", Arity: 1}: n.fnOfSupervisor("count_children"),
		{Module: "supervisor", Function: "which_child", Arity: 2}:    n.fnOfSupervisor("which_child"),
		{Module: "supervisor", Function: "get_childspec", Arity: 2}:  n.fnOfSupervisor("get_childspec"),
	}
}

// fnApply implements apply(Fun, Arguments) and apply(Module, Function, Arguments). The only
// funs it can apply are fun M:F/A; the code of other funs does not exist here.
func (n *Node) fnApply(args []etf.Term) (etf.Term, error) {
	fail := func(reason etf.Term) (etf.Term, error) { return nil, &rpc.Exception{Class: rpc.Error, Reason: reason} }
	if len(args) == 2 {
		switch fun := args[0].(type) {
		case etf.Export:
			module, function, arity := fun.Parts()
			if arguments, ok := etf.Elements(args[1]); ok && len(arguments) != arity {
				return fail(etf.Tuple{etf.Atom("badarity"), etf.Tuple(args)})
			}
			args = []etf.Term{module, function, args[1]}
		case etf.Fun:
			return fail(etf.Atom("undef"))
		default:
			return fail(etf.Tuple{etf.Atom("badfun"), fun})
		}
	}
	result, exception := n.functions.Execute(args)
	if exception != nil {
		return nil, exception
	}
	return result, nil
}

func (n *Node) fnNode([]etf.Term) (etf.Term, error) { return etf.Atom(n.options.Name), nil }

// fnNodes implements nodes(), and nodes(Kind) for one kind or a list of kinds. A node that is
// visible to other nodes counts as visible, even though its connection to us is hidden. The
// known nodes are this node and the connected ones.
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
		list = append(list, etf.Atom(n.options.Name))
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
	if p := n.registry.named(name); p.server != nil {
		return p.server.Pid, nil
	}
	return etf.Atom("undefined"), nil
}

func (n *Node) fnRegistered([]etf.Term) (etf.Term, error) {
	var list etf.List
	for _, p := range *n.registry.current.Load() {
		list = append(list, p.server.Name)
	}
	sortAtoms(list)
	return list, nil
}

// fnPing connects to a node unless it is already connected.
func (n *Node) fnPing(args []etf.Term) (etf.Term, error) {
	peer, ok := args[0].(etf.Atom)
	if !ok {
		return nil, rpc.BadArgument()
	}
	if string(peer) == n.options.Name || n.Connect(string(peer)) == nil {
		return etf.Atom("pong"), nil
	}
	return etf.Atom("pang"), nil
}

func sortAtoms(list etf.List) {
	slices.SortFunc(list, func(a, b etf.Term) int { return cmp.Compare(a.(etf.Atom), b.(etf.Atom)) })
}

// The following functions query the node's processes.

// fnCall calls a server on this node. It refuses calls to rex, because such calls could be
// nested and each level would hold and encode the arguments again. It ignores the timeout.
func (n *Node) fnCall(args []etf.Term) (etf.Term, error) {
	exit := func(why etf.Term) error { return exited(why, "gen_server", "call", args) }
	p, err := n.server(args[0], exit)
	if err != nil {
		return nil, err
	}
	if _, nests := p.Handler.(*rpc.Rex); nests {
		return nil, &rpc.Exception{Class: rpc.Error, Reason: etf.Atom("notsup")}
	}
	reply, ok := p.Call(args[1])
	if !ok {
		return nil, exit(etf.Atom("timeout"))
	}
	return reply, nil
}

// fnOfSupervisor returns a function that calls a supervisor with a request. If the function has a
// second argument, the request is a tuple of both.
func (n *Node) fnOfSupervisor(name etf.Atom) rpc.Function {
	return func(args []etf.Term) (etf.Term, error) {
		var request etf.Term = name
		if len(args) > 1 {
			request = etf.Tuple{name, args[1]}
		}
		return n.fnCall([]etf.Term{args[0], request, etf.Atom("infinity")})
	}
}

// fnGetState implements sys:get_state. It ignores the timeout.
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

// server returns the server that a name, {Name, Node} or a pid refers to. If there is no such
// server, the error is exit(reason) with OTP's reason.
func (n *Node) server(ref etf.Term, exit func(why etf.Term) error) (*genserver.Server, error) {
	var p process
	node := etf.Atom(n.options.Name)
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
	switch {
	case string(node) == n.options.Name:
	case n.connection(string(node)) != nil: // servers of other nodes cannot be called
		return nil, &rpc.Exception{Class: rpc.Error, Reason: etf.Atom("notsup")}
	default:
		return nil, exit(etf.Tuple{etf.Atom("nodedown"), node})
	}
	if p.server == nil {
		return nil, exit(etf.Atom("noproc"))
	}
	return p.server, nil
}

// local returns this node's process with the pid.
func (n *Node) local(pid etf.Pid) process {
	node, id, creation := etf.PidParts([]byte(pid))
	if string(node) != n.options.Name || creation != n.creation {
		return process{}
	}
	return n.registry.byID(id)
}

// fnIsProcessAlive returns false for processes spawned by peers.
func (n *Node) fnIsProcessAlive(args []etf.Term) (etf.Term, error) {
	pid, ok := args[0].(etf.Pid)
	if !ok || string(pid.Node()) != n.options.Name {
		return nil, rpc.BadArgument()
	}
	return etf.Atom(strconv.FormatBool(n.local(pid).server != nil)), nil
}

// send delivers a message from a connection to the server registered under a name and reports
// whether there is such a server.
func (n *Node) send(name etf.Atom, message []byte, c genserver.Caller) bool {
	p := n.registry.named(name)
	if p.server == nil {
		return false
	}
	if err := p.server.Receive(message, c); err != nil {
		n.options.Log.Warn("message dropped", "process", name, "err", err)
	}
	return true
}

// otpRelease is the first release of OTP that demands, of other nodes, the capabilities of this one.
const otpRelease = etf.String("26")

// fnSystemInfo implements erlang:system_info(otp_release), with which Erlang's shell decides how to start a
// remote shell. Other items are bad arguments, as in OTP those that it does not know.
func fnSystemInfo(args []etf.Term) (etf.Term, error) {
	if args[0] != etf.Atom("otp_release") {
		return nil, rpc.BadArgument()
	}
	return otpRelease, nil
}

// fnMemory implements erlang:memory, in bytes. The kind processes is the memory of Go's heap, and
// system is all other memory; most of OTP's other kinds are 0.
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
	}
	for _, kind := range []etf.Atom{"atom", "atom_used", "binary", "code", "ets"} {
		kinds = append(kinds, etf.Tuple{kind, int64(0)})
	}
	if len(args) == 0 {
		return kinds, nil
	}
	wanted, isList := etf.Elements(args[0])
	if !isList {
		return rpc.Value(kinds, args[0])
	}
	var list etf.List
	for _, kind := range wanted {
		value, err := rpc.Value(kinds, kind)
		if err != nil {
			return nil, err
		}
		list = append(list, etf.Tuple{kind, value})
	}
	return list, nil
}
