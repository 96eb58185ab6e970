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
// OTP's net_kernel does not answer what it does not know.
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

func (k *netKernel) longNames() etf.Atom {
	_, host, _ := strings.Cut(string(k.name), "@")
	if strings.ContainsAny(host, ".:") {
		return "true"
	}
	return "false"
}

// silent takes casts and messages and does nothing.
type silent struct{}

func (silent) HandleCast([]byte)                   {}
func (silent) HandleInfo([]byte, genserver.Caller) {}
