package flakeserver

import (
	"log/slog"
	"testing"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/node/etf"
)

// BenchmarkHandleCall is a call without the node's part of it.
func BenchmarkHandleCall(b *testing.B) {
	ids, err := flake.NewGenerator(1, nil)
	if err != nil {
		b.Fatal(err)
	}
	s := &Server{IDs: Flake(ids), Log: slog.New(slog.DiscardHandler)}
	for name, request := range map[string]string{"get": "w\x03get", "{get,62}": "h\x02w\x03geta\x3e"} {
		b.Run(name, func(b *testing.B) {
			var buf []byte
			b.ReportAllocs()
			for b.Loop() {
				buf = s.HandleCall(buf[:0], []byte(request), etf.AllCaps)
			}
		})
	}
}
