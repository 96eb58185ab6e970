package iderl

import (
	"log/slog"
	"testing"

	"github.com/flake-go/flake/flake"
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

// BenchmarkHandleCall is a call without the node's part of it.
func BenchmarkHandleCall(b *testing.B) {
	ids, err := flake.NewGenerator(1, flake.Options{})
	if err != nil {
		b.Fatal(err)
	}
	h := &Handler{&idserver.Server{IDs: idserver.Flake(ids)}, slog.New(slog.DiscardHandler)}
	for name, request := range map[string]string{"get": "w\x03get", "{get,62}": "h\x02w\x03geta\x3e"} {
		b.Run(name, func(b *testing.B) {
			call := genserver.Call{Caller: &deaf{caller: caller{ctx: b.Context(), caps: etf.AllCaps}}, From: from, Request: []byte(request)}
			b.ReportAllocs()
			for b.Loop() {
				h.HandleCall(call)
			}
		})
	}
}
