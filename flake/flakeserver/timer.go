package flakeserver

import (
	"time"

	"github.com/flake-go/flake/genserver"
	"github.com/flake-go/flake/node/etf"
)

// Timer is the original's gen_server persistent_timer, which keeps the time.
type Timer struct {
	IDs interface {
		// LastSaved tells when the time was last made durable.
		LastSaved() (time.Time, error)
	}
}

// HandleCall answers get_last_timestamp with {ok, Milliseconds}, and anything
// else with ok.
func (t Timer) HandleCall(dst, request []byte, caps etf.Caps) []byte {
	r := etf.NewReader(request)
	if string(r.Atom()) != "get_last_timestamp" {
		return etf.MustAppendAtom(dst, "ok", caps)
	}
	saved, _ := t.IDs.LastSaved()
	dst = etf.MustAppendAtom(etf.AppendTupleHeader(dst, 2), "ok", caps)
	return etf.AppendInt(dst, saved.UnixMilli())
}

// HandleCast does nothing.
func (Timer) HandleCast([]byte, genserver.Caller) {}

// HandleInfo does nothing.
func (Timer) HandleInfo([]byte, genserver.Caller) {}
