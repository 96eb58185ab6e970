package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/flake-go/flake/node/epmd"

	"github.com/flake-go/flake/scripts/bench/lean"
)

const cookie = "bench"

// world is what the servers and callers of a run share: a directory for all
// that is built and written, and an EPMD of their own.
type world struct {
	ctx  context.Context
	dir  string
	port string // of EPMD
	env  []string
}

func newWorld(ctx context.Context, root string) (*world, error) {
	dir, err := os.MkdirTemp("", "flake-bench-")
	if err != nil {
		return nil, err
	}
	w := &world{ctx: ctx, dir: dir}
	if err := w.build(root); err != nil {
		return w, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return w, err
	}
	w.port = strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	l.Close()
	w.env = append(os.Environ(), "HOME="+dir, "ERL_EPMD_PORT="+w.port, "ERL_CRASH_DUMP=/dev/null")
	cmd := w.command("epmd", "-port", w.port, "-address", "127.0.0.1")
	return w, cmd.Start()
}

func (w *world) build(root string) error {
	sources := root + "/scripts/bench/erl/"
	for _, args := range [][]string{
		{"go", "-C", root, "build", "-o", w.path("flake"), "./rel/flake"},
		{"erlc", "-Werror", "-o", w.dir, sources + "bench_server.erl", sources + "bench_caller.erl"},
	} {
		if out, err := exec.CommandContext(w.ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%q: %w\n%s", args, err, out)
		}
	}
	return nil
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func (w *world) close() { os.RemoveAll(w.dir) }

// command is a command of this world, which does not outlive the harness.
func (w *world) command(name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(w.ctx, name, args...)
	cmd.Env = w.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// erl is a node whose module's start/0 is called. Other nodes it knows only if
// it calls them.
func (w *world) erl(name, module string, flags ...string) *exec.Cmd {
	args := []string{
		"-start_epmd", "false", "-pa", w.dir, "-name", name, "-setcookie", cookie,
		"-kernel", "inet_dist_use_interface", "{127,0,0,1}", "-connect_all", "false", "-s", module, "start",
	}
	return w.command("erl", append(args, flags...)...)
}

// server is one that hands out ids.
type server struct {
	node string
	addr string
	cmd  *exec.Cmd
	log  bytes.Buffer
}

func (w *world) otp() *server {
	s := &server{node: "otp@127.0.0.1"}
	s.cmd = w.erl(s.node, "bench_server", "-noinput")
	return s
}

func (w *world) flake() *server {
	s := &server{node: "flake@127.0.0.1"}
	s.cmd = w.command(w.path("flake"), "-noinput", "-config", w.path("flake.toml"))
	return s
}

const flakeConfig = `
[node]
name   = "flake@127.0.0.1"
cookie = "` + cookie + `"
[flake]
worker_id      = "02:00:00:00:00:01"
timestamp_path = %q
`

func (w *world) configure() error {
	text := fmt.Sprintf(flakeConfig, w.path("timestamp"))
	return os.WriteFile(w.path("flake.toml"), []byte(text), 0o600)
}

// start starts a server and returns the time to the first id that a caller gets,
// who is up already and asks again and again.
func (w *world) start(s *server) (time.Duration, error) {
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	begin := time.Now()
	if err := s.cmd.Start(); err != nil {
		return 0, err
	}
	short, _, _ := bytes.Cut([]byte(s.node), []byte("@"))
	var err error
	for time.Since(begin) < 20*time.Second {
		if err = w.firstID(s, string(short)); err == nil {
			return time.Since(begin), nil
		}
		time.Sleep(500 * time.Microsecond)
	}
	return 0, errors.Join(fmt.Errorf("%s does not answer: %w\n%s", s.node, err, s.log.Bytes()), s.stop())
}

func (w *world) firstID(s *server, short string) error {
	found, err := epmd.Lookup(w.ctx, "127.0.0.1:"+w.port, short)
	if err != nil {
		return err
	}
	s.addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(int(found.Port)))
	return lean.First(s.addr, s.node, cookie)
}

func (s *server) pid() int { return s.cmd.Process.Pid }

func (s *server) stop() error {
	s.cmd.Process.Signal(syscall.SIGTERM)
	var exit *exec.ExitError
	if err := s.cmd.Wait(); !errors.As(err, &exit) {
		return err
	}
	return nil
}
