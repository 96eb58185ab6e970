package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/workers/etcd/etcdtest"
)

// shellOf returns the first block of shell commands in a section of a page.
func shellOf(t *testing.T, page, section string) string {
	t.Helper()
	text := readFile(t, page)
	_, rest, _ := strings.Cut(text, "\n## "+section+"\n")
	_, rest, _ = strings.Cut(rest, "```sh\n")
	block, _, ok := strings.Cut(rest, "```\n")
	if !ok {
		t.Fatalf("%s has no commands under %q", page, section)
	}
	return block
}

// The commands for a restore in docs/operating/etcd.md work as they stand, and afterwards no id
// repeats. One node got its number after the snapshot, and continues with it. Another waits for
// etcd during the restore, and then claims a number.
func TestEtcdPage(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "rel/flake/bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(command, filepath.Join(dir, "rel/flake/bin/flake")); err != nil {
		t.Fatal(err)
	}
	start := func() *etcdNode {
		config := etcdConfig(t, c.Endpoints(), 3*etcdHold, "count = 2\nwait = true")
		n := &etcdNode{t: t, config: config, made: map[string][]string{}, url: "http://127.0.0.1:1/"}
		n.start()
		return n
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var wg sync.WaitGroup

	first := start()
	first.serving()
	first.process.signal(syscall.SIGTERM)
	first.process.wait()
	c.Members[0].Copy(filepath.Join(dir, "restored"))
	c.Leader()
	before := start()
	wg.Go(func() { before.take(ctx) })
	before.serving()
	before.awaitMore("after the snapshot")
	c.Members[0].Kill()
	waits := start()
	wg.Go(func() { waits.take(ctx) })
	if err := os.Link(before.config, filepath.Join(dir, "sys.toml")); err != nil {
		t.Fatal(err)
	}
	commands := shellOf(t, "../../docs/operating/etcd.md", "After a restore")
	for _, port := range []string{"23790", "23800"} {
		commands = strings.ReplaceAll(commands, port, freePort(t))
	}
	running, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	sh := exec.CommandContext(running, "sh", "-c", commands)
	sh.Dir, sh.WaitDelay = dir, time.Second
	sh.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	sh.Cancel = func() error { return syscall.Kill(-sh.Process.Pid, syscall.SIGKILL) }
	if out, _ := sh.CombinedOutput(); running.Err() != nil ||
		!strings.Contains(string(out), "ids with a new claim begin after") {
		t.Fatalf("%v: %s\n%s", running.Err(), commands, out)
	}
	c.Members[0].Restore(filepath.Join(dir, "restored"))
	waits.serving()
	for _, n := range []*etcdNode{before, waits} {
		n.awaitMore("with the restored store")
	}
	stop()
	wg.Wait()
	differ(t, before, waits)
}
