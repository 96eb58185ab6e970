package iderl

import (
	"time"

	"github.com/flake-go/flake/genserver"
	"github.com/flake-go/flake/node/etf"
)

// Timer is the original's gen_server persistent_timer, which keeps the time.
type Timer struct {
	genserver.Plain
	IDs interface {
		// LastSaved returns the time last saved durably.
		LastSaved() (time.Time, error)
	}
}

// HandleCall answers get_last_timestamp with {ok, Milliseconds}, and anything
// else with ok.
func (t Timer) HandleCall(c genserver.Call) {
	r := etf.NewReader(c.Request)
	if string(r.Atom()) != "get_last_timestamp" {
		c.Reply(etf.MustAppendAtom(c.Begin(), "ok", c.Caps()))
		return
	}
	saved, _ := t.IDs.LastSaved()
	dst := etf.MustAppendAtom(etf.AppendTupleHeader(c.Begin(), 2), "ok", c.Caps())
	c.Reply(etf.AppendInt(dst, saved.UnixMilli()))
}
