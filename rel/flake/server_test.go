package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/rel/flake/daemon"
	"github.com/flake-go/flake/rel/flake/output"
)

// The tests in this file look inside the server, so the server runs in their process.

// startHere starts a server with its own EPMD port, and returns both. Tests that call
// startHere must not be parallel.
func startHere(t *testing.T, changes ...func(*config.Config)) (s *daemon.Daemon, port string) {
	t.Helper()
	port = freePort(t)
	t.Setenv("ERL_EPMD_PORT", port)
	cfg := config.Default()
	cfg.Node.Name, cfg.Node.Cookie = nodeName, cookie
	cfg.Flake.TimestampPath = filepath.Join(t.TempDir(), "timestamp")
	cfg.Flake.Random, cfg.Flake.Options = false, formats.Options{"worker_id": 0x030000<<24 | int64(os.Getpid()&(1<<24-1))}
	for _, change := range changes {
		change(&cfg)
	}
	path := os.Getenv("PATH")
	t.Setenv("PATH", "") // so that it finds no epmd
	defer os.Setenv("PATH", path)
	lines := &output.Log{Logger: slog.New(slog.NewTextHandler(t.Output(), nil)), Level: new(slog.LevelVar)}
	s, err := daemon.Start(t.Context(), cfg, io.Discard, lines)
	if err != nil {
		t.Fatal(err)
	}
	return s, port
}

// onHTTP returns a change that makes a server listen for HTTP, and the URL of that server.
func onHTTP(t *testing.T) (change func(*config.Config), url string) {
	addr := "127.0.0.1:" + freePort(t)
	return func(c *config.Config) { c.HTTP.Listen = addr }, "http://" + addr + "/"
}

// pid returns the server's pid as an external term, in hexadecimal.
func pid(t *testing.T, s *daemon.Daemon) string {
	t.Helper()
	return fmt.Sprintf("%X%X", etf.VersionMagic, string(termOf(t, s, "flake")))
}

// termOf returns the pid of a registered process.
func termOf(t *testing.T, s *daemon.Daemon, name string) etf.Pid {
	t.Helper()
	pid, _ := s.Node.Functions().Apply("erlang", "whereis", []etf.Term{etf.Atom(name)})
	if pid, ok := pid.(etf.Pid); ok {
		return pid
	}
	t.Fatalf("no process is registered as %s", name)
	return ""
}

// The node dials other nodes, as it would if a local process sent a message to them.
func TestDial(t *testing.T) {
	s, port := startHere(t)
	defer s.Stop()
	spawnErl(t, port, []string{"-name", "stranger@127.0.0.1", "-setcookie", "wrong"}, "dialled").await("READY")
	if err := s.Node.Connect("stranger@127.0.0.1"); err == nil {
		t.Error("connected to a node with another cookie")
	}
	friend := spawnErl(t, port, []string{"-name", "friend@127.0.0.1"}, "dialled")
	friend.await("READY")
	if err := s.Node.Connect("friend@127.0.0.1"); err != nil {
		t.Error(err)
	}
	wantChecks(t, friend, "dialled")
}

func TestNoGoroutineLeft(t *testing.T) {
	need(t, buildCaller())
	idle := runtime.NumGoroutine()
	s, port := startHere(t)
	serving := runtime.NumGoroutine()

	for i := range 50 {
		hangUp(t, dialAs(t, s.Node.Addr().String(), fmt.Sprintf("caller%d@127.0.0.1", i)))
	}
	runChecks(t, port, nil, "ping", "concurrent", "monitors", "noproc")
	awaitGoroutines(t, serving)

	s.Stop()
	awaitGoroutines(t, idle)
}

func awaitGoroutines(t *testing.T, want int) {
	t.Helper()
	defer func() {
		if t.Failed() {
			stacks := make([]byte, 1<<20)
			t.Logf("%s", stacks[:runtime.Stack(stacks, true)])
		}
	}()
	await(t, "goroutines have ended", func() bool { return runtime.NumGoroutine() <= want })
}

// The node ignores a peer that falsely reports the end of one of the node's processes. The server survives the end of
// a process that is linked to it.
func TestForgedEnds(t *testing.T) {
	s, port := startHere(t)
	defer s.Stop()
	names := []string{"flake", "persistent_timer", "rex", "net_kernel", "flake_sup", "kernel_sup"}
	var pids []etf.Pid
	for _, name := range names {
		pids = append(pids, termOf(t, s, name))
	}
	a := attacker{Conn: dialAs(t, s.Node.Addr().String(), "attacker@127.0.0.1")}
	reason := etf.Atom("x")
	for _, from := range pids {
		for _, to := range pids {
			a.frame(a.control(3, from, to, reason))
			a.frame(a.control(13, from, to, etf.Atom("token"), reason))
			a.frame(a.control(21, from, to, etf.NewRef(nodeName, 1, 1, 2, 3), reason))
		}
	}
	a.flush()
	hangUp(t, a.Conn)
	runChecks(t, port, nil, "get", "servers", "functions", "link="+pid(t, s))
	for i, name := range names {
		if got := termOf(t, s, name); got != pids[i] {
			t.Errorf("%s has the pid %v, want %v", name, got, pids[i])
		}
	}
	runChecks(t, port, nil, "kill="+pid(t, s)) // its supervisor still restarts it
}
