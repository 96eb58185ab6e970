package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/internal/testenv"
)

// The tests of this package run the real command, many of them with real Erlang, Elixir, C and Java nodes. Tests whose
// programs are not installed are skipped. Each test has its own EPMD port, so the names of nodes need not differ.

const (
	nodeName = "flake@127.0.0.1"
	cookie   = "flake"

	// patience is how long a test may take before it counts as hanging. Tests that kill the command repeatedly get
	// restart in addition for each start, and tests that run for a set time get that time in addition.
	patience = 4 * time.Minute
	restart  = 20 * time.Second
)

// patient are flags that keep an Erlang node from giving up a handshake after 7 s.
var patient = []string{"-kernel", "net_setuptime", "120"}

var (
	built   string // the directory for built programs
	command string // flake, built with the race detector if there is a C compiler
)

func TestMain(m *testing.M) {
	for _, s := range []os.Signal{syscall.SIGHUP, os.Interrupt} {
		if signal.Ignored(s) { // as under nohup, or in a script's background job: commands would ignore it too
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	code, err := buildAndRun(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func buildAndRun(m *testing.M) (code int, err error) {
	if built, err = os.MkdirTemp("", "flake-test-"); err != nil {
		return 0, err
	}
	defer os.RemoveAll(built)
	if err := os.Chmod(built, 0o711); err != nil { // so that another user can run the commands
		return 0, err
	}
	command = filepath.Join(built, "flake")
	if err := buildRace(command, "."); err != nil {
		return 0, err
	}
	// HOME is replaced, because programs without a cookie of their own must not read the tester's.
	// Builds still use the tester's Go caches.
	for _, name := range []string{"GOCACHE", "GOMODCACHE"} {
		dir, err := exec.Command("go", "env", name).Output()
		if err != nil {
			return 0, err
		}
		os.Setenv(name, strings.TrimSpace(string(dir)))
	}
	os.Setenv("HOME", filepath.Join(built, "home"))
	// A program with the race detector waits a second before it exits, for the races of goroutines that still run.
	os.Setenv("GORACE", "atexit_sleep_ms=50 "+os.Getenv("GORACE"))
	flag.Parse()
	if n := flag.Lookup("test.parallel"); n.Value.String() == n.DefValue { // many tests mostly wait
		n.Value.Set(strconv.Itoa(4 * runtime.GOMAXPROCS(0)))
	}
	return m.Run(), nil
}

// buildRace builds a package, with the race detector if there is a C compiler for it.
func buildRace(path, pkg string) error {
	args := []string{"go", "build", "-o", path, pkg}
	if _, err := exec.LookPath("gcc"); err == nil || testenv.All() {
		args = slices.Insert(args, 2, "-race")
	}
	return compile(args...)
}

// compile runs a compiler. If it builds flake, that flake does not read the configuration installed
// on this machine.
func compile(command ...string) error {
	if command[0] == "go" { // without the commit: git may not read another user's checkout
		command = slices.Insert(command, 2, "-buildvcs=false",
			"-ldflags=-X=github.com/flake-go/flake/rel/flake/cli.Installed=/none")
	}
	cmd := exec.Command(command[0], command[1:]...)
	if !slices.Contains(command, "-race") { // which needs cgo; releases are built without
		cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%q: %w\n%s", command, err, out)
	}
	return nil
}

// need skips a test, or fails it under scripts/test, if err says that a program is not installed. Any other error fails
// the test.
func need(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, exec.ErrNotFound) {
		testenv.Missing(t, err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

var buildCaller = sync.OnceValue(func() error { return compile("erlc", "-Werror", "-o", built, "testdata/caller.erl") })

// process is a running command. Its output is kept, and shown if the test fails.
type process struct {
	t   *testing.T
	cmd *exec.Cmd

	mu      sync.Mutex
	changed sync.Cond
	out     bytes.Buffer
	ended   bool
}

// spawn runs a command until it or the test ends. port is the port of its EPMD.
func spawn(t *testing.T, port, name string, args ...string) *process {
	t.Helper()
	testenv.Need(t, name)
	ctx, cancel := context.WithTimeout(context.Background(),
		patience+time.Duration(*kills)*restart+*soakTime+*upgradeTime)
	p := &process{t: t, cmd: exec.CommandContext(ctx, name, args...)}
	home := built // where Erlang may leave a cookie
	if name == command {
		home = os.Getenv("HOME")
	}
	p.cmd.Env = append(os.Environ(), "HOME="+home, "ERL_EPMD_PORT="+port, "ERL_CRASH_DUMP=/dev/null")
	if strings.HasPrefix(filepath.Base(name), "flake") {
		p.cmd.Env = append(p.cmd.Env, "PATH=") // so that it finds no epmd, and serves its own
	}
	p.begin()
	t.Cleanup(func() {
		cancel()
		p.wait()
		if t.Failed() {
			t.Logf("%s %q: %v\n%s", filepath.Base(name), args, p.cmd.ProcessState, p.output())
		}
	})
	return p
}

// begin starts the command.
func (p *process) begin() {
	p.t.Helper()
	p.changed.L = &p.mu
	p.cmd.Stdout, p.cmd.Stderr = p, p
	p.cmd.WaitDelay = restart // for its last output; not forever, because a child may hold the pipe
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	go func() {
		p.cmd.Wait()
		p.mu.Lock()
		p.ended = true
		p.changed.Broadcast()
		p.mu.Unlock()
	}()
}

// Write keeps output of the process.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.changed.Broadcast()
	return p.out.Write(b)
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// await waits for a line that begins with prefix, and returns the rest of it.
func (p *process) await(prefix string) string {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		for line := range strings.Lines(p.out.String()) {
			rest, ok := strings.CutPrefix(line, prefix)
			if ok && strings.HasSuffix(rest, "\n") {
				return strings.TrimSpace(rest)
			}
		}
		if p.ended {
			p.t.Fatalf("the process ended without printing a line that begins with %q", prefix)
		}
		p.changed.Wait()
	}
}

// wait waits until the process ends and returns its exit status, or -1 if it was killed.
func (p *process) wait() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.ended {
		p.changed.Wait()
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Error(err)
	}
}

// flakeNode is a node that serves, started with the command.
type flakeNode struct {
	*process
	name string
	port string // of the EPMD
	addr string // where it listens
	epmd string // its registration, as announced
	tls  *tls.Config
}

// startNode starts the command with an EPMD port, or with a free one if the port is empty. At the end of the
// test it must stop cleanly.
func startNode(t *testing.T, port string, flags ...string) *flakeNode {
	t.Helper()
	return startCommand(t, command, port, "", flags...)
}

// startCommand is like startNode, for any command and with settings for [node].
func startCommand(t *testing.T, command, port, node string, flags ...string) *flakeNode {
	t.Helper()
	if port == "" {
		port = freePort(t)
	}
	flags = append([]string{"-noinput", "-config", configFile(t, node)}, flags...)
	n := &flakeNode{process: spawn(t, port, command, flags...), port: port}
	t.Cleanup(func() {
		n.cmd.Process.Signal(syscall.SIGTERM)
		if status := n.wait(); status != 0 || strings.Contains(n.output(), "DATA RACE") {
			t.Errorf("flake: exit status %d", status)
		}
	})
	n.name = nodeName
	n.addr = n.await("  address ")
	n.epmd = n.await("  EPMD ")
	if i := slices.Index(flags, "-name"); i >= 0 {
		n.name = flags[i+1]
	}
	return n
}

// configFile writes a file with these settings for [node]. Each file has its own timestamp and
// worker id for [flake], because nodes on one machine must not share them.
func configFile(t *testing.T, node string) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "sys.toml")
	worker := flake.RandomWorker()
	text := fmt.Sprintf("[node]\n%s\n[flake]\ntimestamp_path = %q\nworker_id = %q\n",
		node, filepath.Join(dir, "timestamp"), worker)
	writeFile(t, path, text)
	return path
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// erl runs checks of testdata/caller.erl in an Erlang node with these flags.
func (n *flakeNode) erl(flags []string, checks ...string) {
	n.t.Helper()
	wantChecks(n.t, spawnErlTo(n.t, n.name, n.port, flags, checks...), checks...)
}

func runChecks(t *testing.T, port string, flags []string, checks ...string) {
	t.Helper()
	wantChecks(t, spawnErl(t, port, flags, checks...), checks...)
}

func spawnErl(t *testing.T, port string, flags []string, checks ...string) *process {
	t.Helper()
	return spawnErlTo(t, nodeName, port, flags, checks...)
}

// spawnErlTo runs checks on the named node. Later flags override earlier ones.
func spawnErlTo(t *testing.T, node, port string, flags []string, checks ...string) *process {
	t.Helper()
	need(t, buildCaller())
	args := []string{"-noinput", "-pa", built}
	if flags == nil {
		flags = []string{"-name", "caller@127.0.0.1"}
	}
	if !slices.Contains(flags, "-setcookie") { // given two, Erlang would use neither
		args = append(args, "-setcookie", cookie)
	}
	if !slices.Contains(flags, "inet6_tcp") {
		args = append(args, "-kernel", "inet_dist_use_interface", "{127,0,0,1}")
	}
	if !slices.Contains(flags, "-start_epmd") {
		args = append(args, "-start_epmd", "false")
	}
	args = append(append(args, patient...), flags...)
	args = append(args, "-s", "caller", "main", "-extra", node)
	return spawn(t, port, "erl", append(args, checks...)...)
}

func wantChecks(t *testing.T, p *process, checks ...string) {
	t.Helper()
	p.wait()
	for _, check := range checks {
		name, _, _ := strings.Cut(check, "=")
		if !strings.Contains(p.output(), "CHECK "+name+" ok\n") {
			t.Errorf("the check %s failed", name)
		}
	}
}

var ports atomic.Int64 // the number of ports that freePort has tried

// freePort returns a port that is not in use, and that the system does not assign to dialers.
func freePort(t *testing.T) string {
	t.Helper()
	for range 1000 {
		port := strconv.FormatInt(10000+(int64(os.Getpid())*100+ports.Add(1))%20000, 10)
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return ""
}

// await polls for a condition that nothing reports.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(patience / 4); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("still waiting after %v: %s", patience/4, what)
		}
	}
}

func mustBeClosed(t *testing.T, addr string) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial %s: got %v, want connection refused", addr, err)
	}
	if err == nil {
		c.Close()
	}
}
