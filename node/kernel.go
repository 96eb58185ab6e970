package node

import (
	"strings"

	"github.com/flake-go/flake/genserver"
	"github.com/flake-go/flake/node/dist"
	"github.com/flake-go/flake/node/etf"
)

// netKernel answers what other nodes ask this node's net_kernel.
type netKernel struct {
	genserver.Plain
	name     etf.Atom
	ticktime int64 // seconds
}

// HandleCall answers, in OTP's words:
//
//	{is_auth, Node}   yes; net_adm:ping asks it
//	nodename          the node's name
//	longnames         whether it has a long name: its host has a dot or is IPv6
//	ticktime          net_ticktime in seconds
//
// It spawns for nodes before OTP 23 and answers with the pid, or
// {'EXIT', {Reason, []}}:
//
//	{spawn | spawn_link, M, F, A, GroupLeader}
//	{spawn_opt, M, F, A, Options, link | no_link, GroupLeader}
//
// Like OTP's net_kernel, it does not answer other requests.
func (k *netKernel) HandleCall(c genserver.Call) {
	if reply := k.reply(c.Begin(), c.Request, c.Caps()); reply != nil {
		c.Reply(reply)
	} else if refused := k.spawn(c); refused != "" {
		exit := etf.Tuple{etf.Atom("EXIT"), etf.Tuple{etf.Atom(refused), etf.List{}}}
		reply, _ := etf.Append(c.Begin(), exit, c.Caps())
		c.Reply(reply)
	}
}

// reply appends the reply to anything but a spawn, or returns nil if it is unknown.
func (k *netKernel) reply(dst, request []byte, caps etf.Caps) []byte {
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

// spawn carries out a request to spawn, or returns why it refuses.
func (k *netKernel) spawn(c genserver.Call) (refused string) {
	r := etf.NewReader(c.Request)
	if r.Peek() != etf.SmallTupleExt {
		return ""
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
		return ""
	}
	r.Raw()
	m, ofPeer := c.Caller.(*dist.Message)
	if r.Finish() != nil || !ofPeer {
		return "badarg"
	}
	return m.SpawnFor(c.From.Pid, link, module, function, arguments, options, func(pid []byte) {
		c.Reply(append(c.Begin(), pid...))
	})
}

func (k *netKernel) longNames() etf.Atom {
	_, host, _ := strings.Cut(string(k.name), "@")
	if strings.ContainsAny(host, ".:") {
		return "true"
	}
	return "false"
}
