// Command containers shows how much load the node bears in control groups with little memory.
// Beyond that load, the node must refuse callers and survive:
//
//	go run ./scripts/containers
//	go run ./scripts/containers -sizes 64 -callers 500 -attack 1m
//
// It needs writable control groups for memory, version 1 or 2, and so usually root. For each
// size it connects more and more callers, which all keep calling, until some are refused. Then
// hostile nodes take as much memory as they can, while a few callers keep calling.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

var (
	sizes   = flag.String("sizes", "32,64,128", "the sizes of the groups, in MB")
	most    = flag.Int("callers", 4000, "the maximum number of callers to connect")
	attack  = flag.Duration("attack", 20*time.Second, "how long to attack")
	verbose = flag.Bool("v", false, "show the output of the node")
)

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "containers:", err)
		os.Exit(1)
	}
}

func run() error {
	dir, err := os.MkdirTemp("", "flake-containers-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	command := filepath.Join(dir, "flake")
	if out, err := exec.Command("go", "build", "-o", command, "./rel/flake").CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	died := false
	for _, size := range strings.Split(*sizes, ",") {
		mb, err := strconv.Atoi(size)
		if err != nil {
			return err
		}
		lived, err := try(command, dir, mb)
		if err != nil {
			return fmt.Errorf("%d MB: %w", mb, err)
		}
		died = died || !lived
	}
	if died {
		return errors.New("the node did not survive")
	}
	return nil
}

// try loads a node in a group of mb MB and reports whether it survived.
func try(command, dir string, mb int) (lived bool, err error) {
	g, err := newGroup(mb << 20)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, g.remove()) }()
	for _, load := range []struct {
		name string
		run  func(n *node) string
	}{{"callers", callers}, {"attack", attacked}} {
		n, err := start(g, command, dir)
		if err != nil {
			return false, err
		}
		idle := n.rss()
		said := load.run(n)
		rss := n.rss()
		lived = n.stop()
		fmt.Printf("%4d MB, %s: %s; resident %d kB idle, %d kB at the end; the group at most %d kB; lived: %t\n",
			mb, load.name, said, idle, rss, g.peak()>>10, lived)
		if !lived {
			return false, nil
		}
	}
	return true, nil
}

// node is the running command.
type node struct {
	cmd   *exec.Cmd
	addr  string
	ended chan struct{}
}

func start(g group, command, dir string) (*node, error) {
	config := filepath.Join(dir, "sys.toml")
	text := fmt.Sprintf("[node]\nname = %q\ncookie = %q\nepmd = \"off\"\n[flake]\ntimestamp_path = %q\nworker_id = "+
		"\"02:00:00:00:00:01\"\n",
		nodeName, cookie, filepath.Join(dir, "timestamp"))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	n := &node{cmd: g.command(command, "-noinput", "-config", config), ended: make(chan struct{})}
	if *verbose {
		n.cmd.Stderr = os.Stderr
	}
	out, err := n.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := n.cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for n.addr == "" && lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "  address "); ok {
			n.addr = strings.TrimSpace(rest)
		}
	}
	go func() {
		for lines.Scan() {
		}
		n.cmd.Wait()
		close(n.ended)
	}()
	if n.addr == "" {
		<-n.ended
		return nil, fmt.Errorf("the node did not start: %v; -v shows why", n.cmd.ProcessState)
	}
	return n, nil
}

func (n *node) lives() bool {
	select {
	case <-n.ended:
		return false
	default:
		return true
	}
}

// stop ends the node and reports whether it was running and ended cleanly.
func (n *node) stop() bool {
	n.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-n.ended:
	case <-time.After(time.Minute):
		n.cmd.Process.Kill()
		<-n.ended
	}
	return n.cmd.ProcessState.Success()
}

// rss returns the resident memory in kB, or 0 if the node is not running.
func (n *node) rss() (kB int) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.cmd.Process.Pid))
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			fmt.Sscan(rest, &kB)
		}
	}
	return kB
}
