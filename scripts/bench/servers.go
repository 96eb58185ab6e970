package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/node/epmd"
	"github.com/flake-go/flake/node/etf"
)

const cookie = "bench"

// world holds what the servers and callers of a run share: a directory for all files, and EPMDs.
type world struct {
	ctx       context.Context
	root, dir string // the tree to measure, and a directory for all files
	near, far site   // where the servers are, and where their callers are
	port      string // EPMD's port
	env       []string
	ends      *[]func() // called by close, the last one first
}

// site is where nodes run.
type site struct {
	host  string
	enter []string // the prefix of a command in its network namespace, or nil
}

const self = "/proc/self/exe" // this program

func newWorld(ctx context.Context, root string) (*world, error) {
	dir, err := os.MkdirTemp("", "flake-bench-")
	if err != nil {
		return nil, err
	}
	w := &world{ctx: ctx, root: root, dir: dir, ends: new([]func())}
	w.atClose(func() { os.RemoveAll(dir) })
	if err := w.build(); err != nil {
		return w, err
	}
	here := site{host: "127.0.0.1"}
	return w.at(here, here)
}

// scope returns a world whose close ends only what is started in it.
func (w *world) scope() *world {
	v := *w
	v.ends = new([]func())
	return &v
}

// atClose registers a function for close to call.
func (w *world) atClose(end func()) { *w.ends = append(*w.ends, end) }

// close ends everything that was started.
func (w *world) close() {
	for _, end := range slices.Backward(*w.ends) {
		end()
	}
}

// run starts a command, which close kills.
func (w *world) run(cmd *exec.Cmd) error {
	err := cmd.Start()
	if err == nil {
		w.atClose(func() { cmd.Process.Kill(); cmd.Wait() })
	}
	return err
}

// at returns a world with the same files at other sites, and with other EPMDs.
func (w *world) at(near, far site) (*world, error) {
	l, err := net.Listen("tcp", near.host+":0")
	if err != nil {
		return w, err
	}
	v := *w
	v.near, v.far = near, far
	v.port = strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	l.Close()
	v.env = append(os.Environ(), "HOME="+v.dir, "ERL_EPMD_PORT="+v.port, "ERL_CRASH_DUMP=/dev/null")
	for _, s := range []site{near, far} {
		if s.enter == nil && s.host != near.host {
			continue
		}
		if err := v.run(v.commandAt(s, "epmd", "-port", v.port, "-address", s.host)); err != nil {
			return &v, err
		}
	}
	return &v, nil
}

func (w *world) build() error {
	sources := w.root + "/scripts/bench/erl/"
	for _, args := range [][]string{
		{"env", "CGO_ENABLED=0", // as in the releases
			"go", "-C", w.root, "build", "-buildvcs=false", "-o", w.path("flake"), "./rel/flake"},
		{"erlc", "-Werror", "-o", w.dir, sources + "bench_server.erl", sources + "bench_caller.erl",
			sources + "bench_work.erl"},
	} {
		if out, err := exec.CommandContext(w.ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%q: %w\n%s", args, err, out)
		}
	}
	return nil
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

// command returns a command for this world. The command ends when this program ends.
func (w *world) command(name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(w.ctx, name, args...)
	cmd.Env = w.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

func (w *world) commandAt(s site, args ...string) *exec.Cmd {
	args = append(slices.Clone(s.enter), args...)
	return w.command(args[0], args[1:]...)
}

// erl returns the command for a node that calls a module's start/0. The node connects only to
// nodes that it calls.
func (w *world) erl(s site, name, module string, flags ...string) *exec.Cmd {
	args := []string{
		"erl", "-start_epmd", "false", "-pa", w.dir, "-name", name + "@" + s.host, "-setcookie", cookie, "-kernel",
		"inet_dist_use_interface", "{" + strings.ReplaceAll(s.host, ".", ",") + "}", "-connect_all", "false", "-s",
		module, "start",
	}
	return w.commandAt(s, append(args, flags...)...)
}

// server is a node that returns ids.
type server struct {
	node string
	addr string
	cmd  *exec.Cmd
	log  bytes.Buffer
}

func (w *world) otp() *server {
	return &server{node: "otp@" + w.near.host, cmd: w.erl(w.near, "otp", "bench_server", "-noinput")}
}

func (w *world) flake() *server {
	s := &server{node: "flake@" + w.near.host, cmd: w.command(w.path("flake"), "-noinput")}
	s.cmd.Env = append(s.cmd.Environ(), "FLAKE_NODE_NAME="+s.node, "FLAKE_NODE_COOKIE="+cookie,
		"FLAKE_WORKER_ID=02:00:00:00:00:01", "FLAKE_TIMESTAMP_PATH="+w.path("timestamp"))
	return s
}

// all starts all servers.
func (w *world) all() (servers [sides]*server, err error) {
	servers = [sides]*server{theirs: w.otp(), ours: w.flake(), floor: w.echo()}
	for _, s := range servers {
		if _, err := w.start(s); err != nil {
			return servers, err
		}
	}
	return servers, nil
}

// start starts a server, which close stops, and returns the time until a polling caller gets its
// first id.
func (w *world) start(s *server) (time.Duration, error) {
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	begin := time.Now()
	if err := s.cmd.Start(); err != nil {
		return 0, err
	}
	w.atClose(func() { s.cmd.Process.Signal(syscall.SIGTERM); s.cmd.Wait() })
	var err error
	for time.Since(begin) < 20*time.Second {
		if err = w.firstID(s); err == nil {
			return time.Since(begin), nil
		}
		time.Sleep(500 * time.Microsecond)
	}
	return 0, fmt.Errorf("%s does not answer: %w\n%s", s.node, err, s.log.Bytes())
}

func (w *world) firstID(s *server) error {
	ctx, cancel := context.WithTimeout(w.ctx, timeout)
	defer cancel()
	found, err := epmd.Lookup(ctx, "127.0.0.1:"+w.port, shortName(s.node))
	if err != nil {
		return err
	}
	s.addr = net.JoinHostPort(w.near.host, strconv.Itoa(int(found.Port)))
	conn, err := client.Dialer{Cookie: cookie, Addr: s.addr}.Dial(ctx, s.node)
	if err != nil {
		return err
	}
	defer conn.Close()
	reply, err := conn.Call(ctx, "flake", etf.Atom("get"))
	if answer, ok := reply.(etf.Tuple); err == nil && (!ok || answer[0] != etf.Atom("ok")) {
		err = fmt.Errorf("not an id: %s", etf.Format(nil, reply))
	}
	return err
}

// shortName returns a node's name up to the @, as in EPMD.
func shortName(node string) string {
	name, _, _ := strings.Cut(node, "@")
	return name
}

func (s *server) pid() int { return s.cmd.Process.Pid }

// link is the name of both ends of a virtual link. RFC 2544 reserves the addresses of the ends
// for benchmarks.
const (
	link    = "flakebench"
	nearEnd = "198.18.0.1"
	farEnd  = "198.18.0.2"
)

// overVeth returns a world whose callers are in a separate network namespace, at the far end
// of a virtual link.
func (w *world) overVeth() (*world, error) {
	holder := w.command("sleep", "infinity")
	holder.SysProcAttr.Cloneflags = syscall.CLONE_NEWNET
	if err := w.run(holder); err != nil {
		return nil, err
	}
	// A process left over from a node may keep the namespace, and so the link.
	w.atClose(func() { w.command("ip", "link", "del", link).Run() })
	pid := fmt.Sprint(holder.Process.Pid)
	there := site{farEnd, []string{"nsenter", "-t", pid, "-n"}}
	for _, step := range []struct {
		at   site
		args string
	}{
		{w.near, "ip link add " + link + " type veth peer name " + link + " netns " + pid},
		{w.near, "ip addr add " + nearEnd + "/30 dev " + link},
		{w.near, "ip link set " + link + " up"},
		{there, "ip addr add " + farEnd + "/30 dev " + link},
		{there, "ip link set " + link + " up"},
		{there, "ip link set lo up"},
	} {
		cmd := w.commandAt(step.at, strings.Fields(step.args)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%q: %w\n%s", cmd.Args, err, out)
		}
	}
	return w.at(site{host: nearEnd}, there)
}

// cpuTime returns the sum of utime and stime in /proc/PID/stat, but in nanoseconds instead of
// hundredths of a second.
func cpuTime(pid int) (time.Duration, error) {
	const sched = 2 // CPUCLOCK_SCHED, clock_getcpuclockid(3)
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|sched), &ts); err != nil {
		return 0, fmt.Errorf("CPU time of process %d: %w", pid, err)
	}
	return time.Duration(ts.Nano()), nil
}

// resident returns the resident memory of a process, in bytes.
func resident(pid int) (float64, error) {
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	var size, pages int
	_, err = fmt.Sscan(string(statm), &size, &pages)
	return float64(pages * os.Getpagesize()), err
}

// machine describes the machine, and its load before the run.
func machine() string {
	model := "unknown processor"
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			model = strings.TrimSpace(value)
			break
		}
	}
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	load, _ := os.ReadFile("/proc/loadavg")
	busy, _, _ := strings.Cut(string(load), " ")
	nice, _ := syscall.Getpriority(syscall.PRIO_PROCESS, 0) // the system call returns 20 - nice
	return fmt.Sprintf("%s, Linux %s, load %s before, nice %d",
		model, strings.TrimSpace(string(release)), busy, 20-nice)
}
