package daemon

import (
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/rpc"
	"github.com/flake-go/flake/rel/flake/output"
	"github.com/flake-go/flake/rel/flake/remote"
)

// A function that never returns keeps the node from stopping, but not the last time from being saved.
func TestStopDespiteHang(t *testing.T) {
	cfg := config.Default()
	cfg.Node.Name, cfg.Node.EPMD, cfg.Node.Listen = "hung@127.0.0.1", "off", "127.0.0.1:4378"
	cfg.Node.Cookie, cfg.Flake.TimestampPath = "hung", filepath.Join(t.TempDir(), "timestamp")
	lines := output.OpenLog(cfg.Log, t.Output())
	defer lines.Close()
	s, err := Start(t.Context(), cfg, io.Discard, lines)
	if err != nil {
		t.Fatal(err)
	}
	called, end := make(chan bool), make(chan bool)
	s.Node.Functions()[rpc.MFA{Module: "test", Function: "hang", Arity: 0}] = func([]etf.Term) (etf.Term, error) {
		called <- true
		<-end
		return nil, nil
	}
	caller, err := remote.NewNode(cfg.Node)
	if err != nil {
		t.Fatal(err)
	}
	defer caller.Close()
	go caller.Apply(t.Context(), "test", "hang", nil)
	<-called
	server := s.Generators.List[0].Server
	ids := server.IDs
	if _, err := server.Get(t.Context(), idserver.Meta{}); err != nil {
		t.Fatal(err)
	}
	if mark := ids.Mark(); !mark.After(time.Now()) {
		t.Fatalf("before the stop, the mark is %v", mark)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	if mark := ids.Mark(); mark.After(time.Now()) {
		t.Errorf("after the stop, the mark is %v", mark)
	}
	close(end)
	s.Node.Stop() // waits for the function
}
