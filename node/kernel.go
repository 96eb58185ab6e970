package node

import (
	"strconv"
	"strings"

	"github.com/flake-go/flake/genserver"
	"github.com/flake-go/flake/node/etf"
)

// netKernel is the server net_kernel.
type netKernel struct {
	genserver.Plain
	name     etf.Atom
	ticktime int64 // milliseconds
}

// HandleCall answers these requests as OTP does:
//
//	{is_auth, Node}   yes; net_adm:ping sends this request
//	nodename          the node's name
//	longnames         whether the node's host has a dot or is an IPv6 address
//	ticktime          net_ticktime in milliseconds, as since OTP 24
//
// For nodes before OTP 23 it spawns a process, and answers with the pid or
// {'EXIT', {Reason, []}}:
//
//	{spawn | spawn_link, M, F, A, GroupLeader}
//	{spawn_opt, M, F, A, Options, link | no_link, GroupLeader}
//
// Like OTP's net_kernel, it does not answer other requests.
func (k *netKernel) HandleCall(c genserver.Call) {
	var reply etf.Term
	r := etf.NewReader(c.Request)
	if r.Peek() == etf.SmallTupleExt {
		if arity, word := r.Tuple(), string(r.Atom()); arity == 2 && word == "is_auth" {
			reply = etf.Atom("yes")
		} else if refused := k.spawn(c, &r, arity, word); refused != "" {
			reply = etf.Tuple{etf.Atom("EXIT"), etf.Tuple{etf.Atom(refused), etf.List{}}}
		}
	} else {
		switch string(r.Atom()) {
		case "nodename":
			reply = k.name
		case "longnames":
			_, host, _ := strings.Cut(string(k.name), "@")
			reply = etf.Atom(strconv.FormatBool(strings.ContainsAny(host, ".:")))
		case "ticktime":
			reply = k.ticktime
		}
	}
	if reply != nil {
		b, _ := etf.Append(c.Begin(), reply, c.Caps()) // every peer can read these
		c.Reply(b)
	}
}

// spawn spawns a process for a request whose arity and first element have been read. If that
// fails, it returns OTP's error. On success, and if the request is of another kind, it returns "".
func (k *netKernel) spawn(c genserver.Call, r *etf.Reader, arity int, word string) (refused string) {
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
	m, ofPeer := c.Caller.(caller)
	if r.Finish() != nil || !ofPeer || !etf.Tag(c.From.To[0]).IsPid() {
		return "badarg"
	}
	return m.SpawnFor(c.From.To, link, module, function, arguments, options, func(pid []byte) {
		c.Reply(append(c.Begin(), pid...))
	})
}

// globalNameServer is the server global_name_server. It answers every call with false and so
// refuses all locks of module global; without the server, global would assume consent. The node
// keeps no global names.
type globalNameServer struct{ genserver.Plain }

// HandleCall replies false.
func (globalNameServer) HandleCall(c genserver.Call) {
	c.Reply(etf.MustAppendAtom(c.Begin(), "false", c.Caps()))
}
