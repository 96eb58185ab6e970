package client

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/flake-go/flake/genserver"
	"github.com/flake-go/flake/node"
	"github.com/flake-go/flake/node/epmd"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
)

const (
	name   = "n@127.0.0.1"
	cookie = "secret"
)

// echo replies with what it is asked, but to silence.
type echo struct{}

func (echo) HandleCall(dst, request []byte, _ etf.Caps) []byte {
	if r := etf.NewReader(request); string(r.Atom()) == "silence" {
		return nil
	}
	return append(dst, request...)
}
func (echo) HandleCast([]byte)                   {}
func (echo) HandleInfo([]byte, genserver.Caller) {}

func start(t *testing.T) *node.Node {
	t.Helper()
	n, err := node.Start(t.Context(), node.Options{
		Name: name, Cookie: cookie, EPMD: epmd.Off, Log: slog.New(slog.DiscardHandler),
		Supervisors: []node.Supervisor{{Name: "sup", Servers: []node.Server{{Name: "echo", Handler: echo{}}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Stop)
	return n
}

func dialed(t *testing.T) *Conn {
	t.Helper()
	c, err := DialAddr(t.Context(), start(t).Addr().String(), name, cookie)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestCall(t *testing.T) {
	c := dialed(t)
	for _, want := range []etf.Term{etf.Atom("a"), int64(1), etf.String("text"), etf.Tuple{etf.List{int64(1000)}}} {
		got, err := c.Call(t.Context(), "echo", want)
		if err != nil || string(etf.Format(nil, got)) != string(etf.Format(nil, want)) {
			t.Errorf("%v, %v, want %v", got, err, want)
		}
	}
	if _, err := c.Call(t.Context(), "nobody", etf.Atom("a")); !errors.Is(err, ErrNoProcess) {
		t.Errorf("call of no name: %v", err)
	}
	if _, err := c.Call(t.Context(), "echo", struct{}{}); err == nil {
		t.Error("a request that is no term is sent")
	}
	if _, err := c.Call(t.Context(), "echo", etf.Atom("still there")); err != nil {
		t.Error(err)
	}
}

func TestApply(t *testing.T) {
	c := dialed(t)
	got, err := c.Apply(t.Context(), "erlang", "node", nil)
	if err != nil || got != etf.Atom(name) {
		t.Errorf("%v, %v", got, err)
	}
	got, err = c.Apply(t.Context(), "os", "cmd", []etf.Term{etf.String("ls")})
	if want := `{badrpc,{'EXIT',{undef,[{os,cmd,["ls"],[]}]}}}`; err != nil || string(etf.Format(nil, got)) != want {
		t.Errorf("%v, %v", got, err)
	}
}

func TestContext(t *testing.T) {
	c := dialed(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := c.Call(ctx, "echo", etf.Atom("silence")); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestRefused(t *testing.T) {
	addr := start(t).Addr().String()
	if _, err := DialAddr(t.Context(), addr, name, "wrong"); err == nil {
		t.Error("in with a wrong cookie")
	}
	if _, err := DialAddr(t.Context(), addr, "other@127.0.0.1", cookie); !errors.Is(err, handshake.ErrRefused) {
		t.Errorf("another node than the one dialled: %v", err)
	}
	if _, err := DialAddr(t.Context(), "127.0.0.1:1", name, cookie); err == nil {
		t.Error("connected to nobody")
	}
}
