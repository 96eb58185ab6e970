package iderl

import (
	"log/slog"
	"testing"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/genserver"
	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/node/etf"
)

// deaf is a caller that ignores its answers.
type deaf struct {
	caller
	buf []byte
}

func (d *deaf) Buffer() []byte      { return d.buf[:0] }
func (d *deaf) Send(_, _, b []byte) { d.buf = b }

// BenchmarkHandleCall measures a call without the node's part.
func BenchmarkHandleCall(b *testing.B) {
	ids, err := flake.NewGenerator(1, flake.Options{})
	if err != nil {
		b.Fatal(err)
	}
	plain := formats.Flake(ids)
	for name, c := range map[string]struct {
		request string
		ids     formats.Source
	}{
		"get":      {"w\x03get", plain},
		"{get,62}": {"h\x02w\x03geta\x3e", plain},
	} {
		h := &Handler{&idserver.Server{IDs: c.ids}, slog.New(slog.DiscardHandler)}
		b.Run(name, func(b *testing.B) {
			call := genserver.Call{Caller: &deaf{caller: caller{ctx: b.Context(), caps: etf.AllCaps}}, From: from,
				Request: []byte(c.request)}
			b.ReportAllocs()
			for b.Loop() {
				h.HandleCall(call)
			}
		})
	}
}
