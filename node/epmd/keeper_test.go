package epmd

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"
)

// reports is the log of a keeper. It calls changed for each line, because a keeper logs each change
// of its state.
type reports struct {
	slog.Handler
	changed func()
}

func (r reports) Handle(context.Context, slog.Record) error {
	r.changed()
	return nil
}

// newKeeper returns a keeper in mode Auto, without a daemon and with a short patience. It sends
// its states to the channel.
func newKeeper(t *testing.T, name string, port uint16) (*Keeper, chan State) {
	states := make(chan State, 100)
	k := &Keeper{Port: port, Node: Node{Name: name, Port: 4711}, program: "no-such-daemon", patience: 1}
	k.Log = slog.New(reports{slog.NewTextHandler(io.Discard, nil), func() { states <- k.State() }})
	t.Cleanup(k.Close)
	return k, states
}

// startKeeper starts a keeper for the node that k.Node names.
func startKeeper(ctx context.Context, k *Keeper) error { return k.Start(ctx, k.Node.Name+"@127.0.0.1") }

func awaitState(t *testing.T, states <-chan State, what string, cond func(State) bool) {
	t.Helper()
	ctx := testContext(t)
	for {
		select {
		case s := <-states:
			if cond(s) {
				return
			}
		case <-ctx.Done():
			t.Fatalf("timed out waiting for: %s", what)
		}
	}
}

func TestKeepersTakeOverTheEPMD(t *testing.T) {
	noLeak(t)
	ctx := testContext(t)
	port := freePort(t)
	addr := JoinPort(loopback, port)
	first, _ := newKeeper(t, "first", port)
	if err := startKeeper(ctx, first); err != nil {
		t.Fatal(err)
	}
	if got, want := first.State().String(), "registered with its own EPMD at "+addr; got != want {
		t.Errorf("first is %s, want %s", got, want)
	}
	if n, err := Lookup(ctx, JoinPort("127.0.0.2", port), "first"); err != nil || n.Port != 4711 {
		t.Errorf("at another address: %+v, %v", n, err)
	}
	second, states := newKeeper(t, "second", port)
	if err := startKeeper(ctx, second); err != nil {
		t.Fatal(err)
	}
	if got, want := second.State().String(), "registered with the EPMD at "+addr; got != want {
		t.Errorf("second is %s, want %s", got, want)
	}
	taken, _ := newKeeper(t, "first", port)
	if err := startKeeper(ctx, taken); !errors.Is(err, ErrNameTaken) {
		t.Errorf("the same name: %v", err)
	}
	first.Close()
	awaitState(t, states, "lost", func(s State) bool { return !s.Registered })
	awaitState(t, states, "registered with its own", func(s State) bool { return s.Registered && s.Serving })
	if _, err := Lookup(ctx, addr, "second"); err != nil {
		t.Error(err)
	}
	second.Close()
	if _, err := net.Dial("tcp", addr); err == nil {
		t.Error("the port is open")
	}
}

// The EPMD listens on the addresses in ERL_EPMD_ADDRESS and on loopback.
func TestAddresses(t *testing.T) {
	noLeak(t)
	for _, tt := range []struct {
		env          string
		open, closed []string
	}{
		{"", []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"}, nil},
		{"127.0.0.2", []string{"127.0.0.1", "127.0.0.2"}, []string{"127.0.0.3"}},
		{" 127.0.0.3, ,127.0.0.2", []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"}, []string{"127.0.0.4"}},
		{"0.0.0.0", []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"}, nil},
		{"127.0.0.2,0.0.0.0", []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"}, nil},
		{"::", []string{"127.0.0.1"}, []string{"127.0.0.2"}},
		{"0.0.0.0,::", []string{"127.0.0.1", "127.0.0.2"}, nil},
	} {
		t.Setenv("ERL_EPMD_ADDRESS", tt.env)
		k, _ := newKeeper(t, "flake", freePort(t))
		if err := startKeeper(testContext(t), k); err != nil {
			t.Fatal(err)
		}
		for _, host := range tt.open {
			if _, err := Lookup(testContext(t), JoinPort(host, k.Port), "flake"); err != nil {
				t.Errorf("%q: %v", tt.env, err)
			}
		}
		for _, host := range tt.closed {
			if _, err := Lookup(testContext(t), JoinPort(host, k.Port), "flake"); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("%q: at %s: %v", tt.env, host, err)
			}
		}
		k.Close()
	}
	for _, env := range []string{"localhost", "127.0.0.1;::1", "192.0.2.1"} {
		t.Setenv("ERL_EPMD_ADDRESS", env)
		k, _ := newKeeper(t, "flake", freePort(t))
		if err := startKeeper(testContext(t), k); err == nil || !strings.HasPrefix(err.Error(), "epmd: serve: ") {
			t.Errorf("%q: %v", env, err)
		}
		if _, err := net.Dial("tcp", JoinPort(loopback, k.Port)); err == nil {
			t.Errorf("%q: the port is open", env)
		}
	}
}

// If another EPMD has the port, a keeper does not serve its own.
func TestServeFails(t *testing.T) {
	noLeak(t)
	_, addr := startServer(t, "0.0.0.0:0", nil)
	for _, env := range []string{"", "127.0.0.1"} {
		t.Setenv("ERL_EPMD_ADDRESS", env)
		k, _ := newKeeper(t, "flake", netip.MustParseAddrPort(addr).Port())
		if err := k.fill(); err != nil {
			t.Fatal(err)
		}
		if err := k.provide(t.Context()); !errors.Is(err, syscall.EADDRINUSE) || k.server != nil {
			t.Errorf("%q: %v, server %v", env, err, k.server)
		}
	}
}

// If another program has the EPMD's port, at the loopback address or at another, the error names the settings
// that avoid it.
func TestPortOfAnotherProgram(t *testing.T) {
	noLeak(t)
	elsewhere, err := net.Listen("tcp", JoinPort("127.0.0.2", 0))
	if err != nil {
		t.Fatal(err)
	}
	defer elsewhere.Close()
	for _, addr := range []string{startFakeEPMD(t, "HTTP/1.1 400 Bad Request", false), startFakeEPMD(t, "", false),
		elsewhere.Addr().String()} {
		k, _ := newKeeper(t, "flake", netip.MustParseAddrPort(addr).Port())
		err := errors.Join(k.Prepare(t.Context()), startKeeper(t.Context(), k))
		if err == nil || !strings.Contains(err.Error(), "node.epmd") {
			t.Errorf("another program at %s: %v", addr, err)
		}
	}
}

// Each connection to an EPMD makes a request, because OTP's daemon logs an error about one that does not.
func TestPrepareMakesARequest(t *testing.T) {
	noLeak(t)
	var log strings.Builder
	server, addr := startServer(t, anyPort, func(s *Server) {
		s.log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	k, _ := newKeeper(t, "flake", netip.MustParseAddrPort(addr).Port())
	if err := k.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.Close()
	if strings.Contains(log.String(), "connection closed") {
		t.Error(log.String())
	}
}

// The EPMD that Prepare starts serves other nodes, and the node itself registers with it.
func TestPrepare(t *testing.T) {
	noLeak(t)
	ctx := testContext(t)
	k, _ := newKeeper(t, "flake", freePort(t))
	second, _ := newKeeper(t, "second", k.Port)
	for _, k := range []*Keeper{k, second, k} {
		if err := k.Prepare(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Names(ctx, JoinPort(loopback, k.Port)); err != nil {
		t.Error(err)
	}
	if err := startKeeper(ctx, k); err != nil || !k.State().Serving {
		t.Errorf("state %v, error %v", k.State(), err)
	}
	if err := startKeeper(ctx, second); err != nil || second.State().Serving {
		t.Errorf("the second: %v, %v", second.State(), err)
	}
	only, _ := newKeeper(t, "only", freePort(t))
	if err := only.Prepare(ctx); err != nil {
		t.Fatal(err)
	}
	only.Close()
	if _, err := net.Dial("tcp", JoinPort(loopback, only.Port)); err == nil {
		t.Error("the port is open")
	}
}

// The port of another program's EPMD stays free long enough for that EPMD to be restarted.
func TestKeeperIsPatient(t *testing.T) {
	noLeak(t)
	old, addr := startServer(t, anyPort, nil)
	port := netip.MustParseAddrPort(addr).Port()
	k, states := newKeeper(t, "flake", port)
	k.patience = time.Hour
	if err := startKeeper(testContext(t), k); err != nil {
		t.Fatal(err)
	}
	old.Close()
	awaitState(t, states, "refused", func(s State) bool { return errors.Is(s.Err, syscall.ECONNREFUSED) || s.Serving })
	startServer(t, addr, nil)
	awaitState(t, states, "registered again", func(s State) bool { return s.Registered && !s.Serving })
}

// When our own EPMD stops, the other nodes registered with it are logged.
func TestStopLogsOtherNodes(t *testing.T) {
	noLeak(t)
	for _, others := range [][]string{nil, {"other", "another"}} {
		var log strings.Builder
		k, _ := newKeeper(t, "flake", freePort(t))
		k.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		if err := startKeeper(testContext(t), k); err != nil {
			t.Fatal(err)
		}
		for _, name := range others {
			reg, err := Register(testContext(t), k.State().Addr, Node{Name: name, Port: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer reg.Close()
		}
		k.Close()
		want := len(others) > 0
		if got := log.String(); strings.Contains(got, `nodes="[another other]"`) != want ||
			strings.Contains(got, "WARN") != want {
			t.Errorf("%q: logged %q", others, got)
		}
	}
}

func TestStateWhenNameIsTaken(t *testing.T) {
	noLeak(t)
	old, addr := startServer(t, anyPort, nil)
	k, states := newKeeper(t, "flake", 1)
	k.Mode = Mode(addr)
	if err := startKeeper(testContext(t), k); err != nil {
		t.Fatal(err)
	}
	old.Close()
	rival := &client{node: &Node{Name: "flake"}}
	s, _ := startServer(t, addr, func(s *Server) { s.registered.Add(rival) })
	awaitState(t, states, "name taken", func(s State) bool { return errors.Is(s.Err, ErrNameTaken) })
	if got := k.State().String(); !strings.Contains(got, "already registered") {
		t.Error(got)
	}
	s.mu.Lock()
	s.registered.Remove(rival)
	s.mu.Unlock()
	awaitState(t, states, "registered again", func(s State) bool { return s.Registered && !s.Serving })
}

func TestStartFailsWithoutEPMD(t *testing.T) {
	noLeak(t)
	k, _ := newKeeper(t, "flake", 1)
	k.Mode = Mode(JoinPort(loopback, freePort(t)))
	if err := startKeeper(t.Context(), k); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("Start: %v", err)
	}
}

func TestDefaultPort(t *testing.T) {
	for _, tt := range []struct {
		env  string
		port uint16
	}{{"", 4369}, {"4370", 4370}, {"0", 0}, {"x", 0}, {"65536", 0}} {
		t.Setenv("ERL_EPMD_PORT", tt.env)
		if port, err := DefaultPort(); port != tt.port || (err == nil) != (tt.port != 0) {
			t.Errorf("%q: %d, %v", tt.env, port, err)
		}
	}
}

func TestFind(t *testing.T) {
	noLeak(t)
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	k := &Keeper{Port: freePort(t), Node: Node{Port: 4711}, Log: quiet, program: "no-such-daemon"}
	defer k.Close()
	if err := k.Start(ctx, "flake"); err == nil {
		t.Error("a name without a host is registered")
	}
	if err := k.Start(ctx, "flake@127.0.0.1"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"127.0.0.1", "localhost"} {
		n, host, err := k.Find(t.Context(), "flake@"+want)
		if err != nil || host != want || n.Port != 4711 {
			t.Errorf("Find = %+v, %q, %v", n, host, err)
		}
	}
	if _, _, err := k.Find(t.Context(), "nobody@127.0.0.1"); !errors.Is(err, ErrNotFound) {
		t.Errorf("Find: %v", err)
	}
	if _, _, err := k.Find(t.Context(), "flake"); err == nil {
		t.Error("a name without a host is found")
	}
	cancel()
	k.Close()
	if _, _, err := k.Find(t.Context(), "flake@127.0.0.1"); err == nil {
		t.Error("the EPMD has outlived the context")
	}
	off := &Keeper{Mode: Off, Log: quiet}
	defer off.Close()
	err := off.Start(t.Context(), "flake@127.0.0.1")
	if got := off.State().String(); err != nil || got != "not registered: EPMD is off" {
		t.Error(got, err)
	}
	_, _, err = off.Find(t.Context(), "flake@127.0.0.1")
	if want := `epmd: look up "flake@127.0.0.1": EPMD is off`; err == nil || err.Error() != want {
		t.Errorf("Find: %v, want %s", err, want)
	}
	off.Fixed, off.Node.Port = true, 9100
	if n, host, err := off.Find(t.Context(), "flake@10.0.0.2"); n.Port != 9100 || host != "10.0.0.2" || err != nil {
		t.Errorf("Find = %+v, %q, %v", n, host, err)
	}
}

// Start succeeds even if the EPMD is slow to notice that an earlier node of the same name has ended.
func TestKeeperWaitsForItsName(t *testing.T) {
	noLeak(t)
	l, err := net.Listen("tcp", JoinPort(loopback, 0))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	asked := 0
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Read(make([]byte, 1024))
			refused := byte(0)
			if asked++; asked == 1 {
				refused = 1
			}
			c.Write([]byte{tagAlive2Resp, refused, 0, 1})
			t.Cleanup(func() { c.Close() })
		}
	}()
	k, _ := newKeeper(t, "again", uint16(l.Addr().(*net.TCPAddr).Port))
	if err := startKeeper(testContext(t), k); err != nil {
		t.Fatal(err)
	}
	k.Close()
}
