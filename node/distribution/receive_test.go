package distribution

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/wire"
)

// old is a message in forms that we do not send: {get, 1} with an ATOM_EXT and an
// INTEGER_EXT.
var old = []byte("h\x02d\x00\x03getb\x00\x00\x00\x01")

var traceToken = etf.Tuple{int64(0), int64(0), theirs, int64(1), int64(2)}

// A process receives a message byte for byte.
func TestToHandler(t *testing.T) {
	empty, flake := etf.Atom(""), etf.Atom("flake")
	for name, control := range map[string]etf.Tuple{
		"REG_SEND":                 {number(wire.OpRegSend), theirs, empty, flake},
		"REG_SEND, no cookie atom": {number(wire.OpRegSend), theirs, etf.Tuple{}, flake},
		"REG_SEND_TT":              {number(wire.OpRegSendTT), theirs, empty, flake, traceToken},
		"SEND":                     {number(wire.OpSend), empty, ours},
		"SEND, old pid":            {number(wire.OpSend), empty, oursOld},
		"SEND_TT":                  {number(wire.OpSendTT), empty, ours, traceToken},
		"SEND_SENDER":              {number(wire.OpSendSender), theirs, ours},
		"SEND_SENDER_TT":           {number(wire.OpSendSenderTT), theirs, ours, traceToken},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, flags, func(t *testing.T, r *rig) {
				r.send(frame(control, old))
				if got, want := r.local.flake.take(), fmt.Sprintf("%x\n", old); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
				r.want()
			})
		})
	}
}

// A pid of an earlier run of the node is not ours.
func TestStranger(t *testing.T) {
	for name, pid := range map[string]etf.Pid{
		"of another node":    etf.NewPid("other@127.0.0.1", 1001, 0, creation),
		"of an earlier run":  etf.NewPid(here, 1001, 0, creation-1),
		"of a similar run":   etf.NewPid(here, 1001, 0, creation^4),
		"old, earlier run":   oldPid(here, 1001, (creation+1)&3),
		"old, two runs ago":  oldPid(here, 1001, (creation+2)&3),
		"of another process": gone,
		"of another serial":  etf.NewPid(here, 1001, 1, creation),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, flags, func(t *testing.T, r *rig) {
				r.send(frame(etf.Tuple{number(wire.OpSend), etf.Atom(""), pid}, old), monitorP(pid, ref3))
				r.want(down(pid, ref3, "noproc"))
				if got := r.local.flake.take(); got != "" {
					t.Errorf("flake received %s, want nothing", got)
				}
			})
		})
	}
}

// exit(Pid, kill) ends a process; other exit signals become messages to it.
func TestExitSignals(t *testing.T) {
	kill, why := etf.Atom("kill"), etf.Atom("why")
	exit := func(reason etf.Term) string {
		return fmt.Sprintf("%x\n", external(etf.Tuple{etf.Atom("EXIT"), theirs, reason}))
	}
	for name, test := range map[string]struct {
		control etf.Tuple
		want    string
	}{
		"EXIT2 kill":          {etf.Tuple{number(wire.OpExit2), theirs, ours, kill}, "killed\n"},
		"EXIT2_TT kill":       {etf.Tuple{number(wire.OpExit2TT), theirs, ours, traceToken, kill}, "killed\n"},
		"EXIT2, old atom":     {etf.Tuple{number(wire.OpExit2), theirs, ours, why}, exit(why)},
		"EXIT2 a tuple":       {etf.Tuple{number(wire.OpExit2), theirs, ours, etf.Tuple{kill}}, exit(etf.Tuple{kill})},
		"EXIT2_TT":            {etf.Tuple{number(wire.OpExit2TT), theirs, ours, traceToken, why}, exit(why)},
		"EXIT kill, linked":   {etf.Tuple{number(wire.OpExit), theirs, ours, kill}, exit(kill)},
		"EXIT_TT why, linked": {etf.Tuple{number(wire.OpExitTT), theirs, ours, traceToken, why}, exit(why)},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, flags, func(t *testing.T, r *rig) {
				r.send(frame(etf.Tuple{number(wire.OpLink), theirs, ours}), frame(test.control))
				if got := r.local.flake.take(); got != test.want {
					t.Errorf("got %q, want %q", got, test.want)
				}
				r.want()
			})
		})
	}
	bubble(t, flags, func(t *testing.T, r *rig) {
		r.local.flake.receive = func(*Message) error { return errors.New("no") }
		r.send(frame(etf.Tuple{number(wire.OpLink), theirs, ours}), frame(etf.Tuple{number(wire.OpExit), theirs, ours, why}))
		r.logged("control message 3: no")
	})
}

// A process that cannot be killed receives the signal as a message.
func TestNoKill(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		r.local.names["flake"].Kill = nil
		r.send(frame(etf.Tuple{number(wire.OpExit2), theirs, ours, etf.Atom("kill")}))
		want := fmt.Sprintf("%x\n", external(etf.Tuple{etf.Atom("EXIT"), theirs, etf.Atom("kill")}))
		if got := r.local.flake.take(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// An EXIT signal is dropped if its sender is not linked to our process, or if our process has
// ended.
func TestExitWithoutLink(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		r.send(
			frame(etf.Tuple{number(wire.OpExit), theirs, ours, etf.Atom("why")}),
			frame(etf.Tuple{number(wire.OpLink), theirs, ours}),
			frame(etf.Tuple{number(wire.OpUnlink), theirs, ours}),
			frame(etf.Tuple{number(wire.OpExit), theirs, ours, etf.Atom("why")}),
		)
		if got := r.local.flake.take(); got != "" {
			t.Errorf("flake received %s, want nothing", got)
		}
		r.send(frame(etf.Tuple{number(wire.OpLink), theirs, ours}))
		synctest.Wait()
		delete(r.local.names, "flake") // ended, but not reported yet
		r.send(frame(etf.Tuple{number(wire.OpExit), theirs, ours, etf.Atom("why")}))
		if !r.alive() {
			t.Error("the connection has ended")
		}
	})
}

// A panic in a process ends only the connection that caused it.
func TestFault(t *testing.T) {
	bubble(t, flags, func(t *testing.T, other *rig) {
		r := connect(t, flags)
		r.local.flake.receive = func(*Message) error { panic("fault") }
		r.send(frame(etf.Tuple{number(wire.OpSend), etf.Atom(""), ours}, old))
		if r.alive() {
			t.Error("the connection is not closed")
		}
		r.logged("fault in the node")
		other.send(monitorP(gone, ref3))
		other.want(down(gone, ref3, "noproc"))
	})
}
