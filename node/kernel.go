package node

import (
	"strings"

	"github.com/flake-go/flake/genserver"
	"github.com/flake-go/flake/node/etf"
)

// netKernel answers what other nodes ask the net_kernel of a node.
type netKernel struct {
	silent
	name     etf.Atom
	ticktime int64 // seconds
}

// HandleCall answers, in OTP's words:
//
//	{is_auth, Node}   yes; it is net_adm:ping
//	nodename          the node's name
//	longnames         whether it has a long name: its host has a dot, or is of IPv6
//	ticktime          net_ticktime in seconds
//
// OTP's net_kernel does not answer what it does not know. HandleSlowCall knows more.
func (k *netKernel) HandleCall(dst, request []byte, caps etf.Caps) []byte {
	r := etf.NewReader(request)
	if r.Peek() == etf.SmallTupleExt {
		if r.Tuple() == 2 && string(r.Atom()) == "is_auth" {
			return etf.MustAppendAtom(dst, "yes", caps)
		}
		return nil
	}
	switch string(r.Atom()) {
	case "nodename":
		return etf.MustAppendAtom(dst, k.name, caps)
	case "longnames":
		return etf.MustAppendAtom(dst, k.longNames(), caps)
	case "ticktime":
		return etf.AppendInt(dst, k.ticktime)
	}
	return nil
}

// HandleSlowCall is HandleCall, and spawns for nodes before OTP 23. They are answered
// with the pid, or {'EXIT', {Reason, []}}:
//
//	{spawn | spawn_link, M, F, A, GroupLeader}
//	{spawn_opt, M, F, A, Options, link | no_link, GroupLeader}
func (k *netKernel) HandleSlowCall(from genserver.From, request []byte, c genserver.Caller) {
	answer := func(reply []byte) {
		c.Answer(from.Pid, from.Alias, append(from.Begin(c.Buffer()), reply...))
	}
	refused, known := k.spawn(from, request, c, answer)
	if !known {
		if reply := k.HandleCall(nil, request, c.Caps()); reply != nil {
			answer(reply)
		}
	} else if refused != "" {
		exit := etf.Tuple{etf.Atom("EXIT"), etf.Tuple{etf.Atom(refused), etf.List{}}}
		reply, _ := etf.Append(nil, exit, c.Caps())
		answer(reply)
	}
}

// spawner is a Caller whose processes may spawn others here.
type spawner interface {
	SpawnFor(owner []byte, link bool, module, function etf.Atom, arguments, options []byte, began func(pid []byte)) (refused string)
}

func (k *netKernel) spawn(from genserver.From, request []byte, c genserver.Caller, began func(pid []byte)) (refused string, known bool) {
	r := etf.NewReader(request)
	if r.Peek() != etf.SmallTupleExt {
		return "", false
	}
	arity := r.Tuple()
	word := string(r.Atom())
	module, function := etf.Atom(r.Atom()), etf.Atom(r.Atom())
	arguments := r.Raw()
	options, link := etf.AppendNil(nil), word == "spawn_link"
	switch {
	case arity == 5 && (word == "spawn" || link):
	case arity == 7 && word == "spawn_opt":
		options = r.Raw()
		link = string(r.Atom()) == "link"
	default:
		return "", false
	}
	r.Raw()
	s, ok := c.(spawner)
	if r.Finish() != nil || !ok {
		return "badarg", true
	}
	return s.SpawnFor(from.Pid, link, module, function, arguments, options, began), true
}

func (k *netKernel) longNames() etf.Atom {
	_, host, _ := strings.Cut(string(k.name), "@")
	if strings.ContainsAny(host, ".:") {
		return "true"
	}
	return "false"
}

// silent takes casts and messages and does nothing.
type silent struct{}

func (silent) HandleCast([]byte, genserver.Caller) {}
func (silent) HandleInfo([]byte, genserver.Caller) {}
