package node

import (
	"errors"
	"testing"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/rpc"
)

// Calls of functions do not nest through rex: each would take the arguments of all
// within it again.
func TestCallsAreNotNested(t *testing.T) {
	n := start(t, Options{})
	call := func(server etf.Atom, request etf.Term) (etf.Term, error) {
		return n.fnCall([]etf.Term{server, request})
	}
	if reply, err := call("net_kernel", etf.Atom("nodename")); err != nil || reply != etf.Term(etf.Atom(name)) {
		t.Errorf("%v, %v", reply, err)
	}
	inner := etf.Tuple{etf.Atom("call"), etf.Atom("erlang"), etf.Atom("node"), etf.List{}, etf.Atom("user")}
	var exception *rpc.Exception
	if _, err := call("rex", inner); !errors.As(err, &exception) || exception.Reason != etf.Term(etf.Atom("notsup")) {
		t.Errorf("%v", err)
	}
}
