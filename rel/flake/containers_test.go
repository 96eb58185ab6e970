package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/internal/testenv"
	"github.com/flake-go/flake/node/etf"
)

var (
	containers       = flag.String("containers", "", "the sizes of TestContainers's control groups, in MB, such as 32,64")
	containerCallers = flag.Int("containers.callers", 4000, "the maximum number of callers that it connects")
)

// TestContainers puts load on nodes in control groups with little memory. For each size, one node gets
// more and more callers, which all keep calling, until some are refused. Another node is attacked by peers
// that take as much memory as they can, while a few callers keep calling. A node may refuse or disconnect callers, but
// must survive. It needs writable control groups for memory, and so usually root:
//
//	go test -v -run TestContainers ./rel/flake -containers=32,64,128 -attack.percent=100
func TestContainers(t *testing.T) {
	for _, size := range strings.FieldsFunc(*containers, func(r rune) bool { return r == ',' }) {
		mb, err := strconv.Atoi(size)
		if err != nil {
			t.Fatal(err)
		}
		for _, load := range []struct {
			name string
			put  func(t *testing.T, c *crowd, url string)
		}{{"callers", untilRefused}, {"attack", underAttack}} {
			t.Run(fmt.Sprintf("%d MB, %s", mb, load.name), func(t *testing.T) {
				command, peak := inGroup(t, mb<<20)
				address := "127.0.0.1:" + freePort(t)
				n := startCommand(t, command, "", fmt.Sprintf("max_connections = %d\n[http]\nlisten = %q\n", mostTogether, address))
				before := memory(t, n, "VmRSS")
				ctx, cancel := context.WithCancel(t.Context())
				c := &crowd{ctx: ctx, n: n}
				load.put(t, c, "http://"+address)
				t.Logf("%v; resident %d kB idle, %d kB at the end; the group at most %s bytes",
					c, before, memory(t, n, "VmRSS"), peak())
				cancel()
				c.running.Wait()
				served(t, n)
			})
		}
	}
}

func untilRefused(_ *testing.T, c *crowd, _ string) {
	const step = 50
	for int(c.connected.Load()) < *containerCallers && c.refused.Load()+c.lost.Load() < step {
		var adding sync.WaitGroup
		for range step {
			adding.Go(c.add)
		}
		adding.Wait()
	}
	pause(c.ctx, 5*time.Second) // all of them call for a while
}

func underAttack(t *testing.T, c *crowd, url string) {
	for range 32 {
		c.add()
	}
	ctx, cancel := context.WithTimeout(c.ctx, *siegeTime)
	defer cancel()
	var attackers sync.WaitGroup
	newSiege(ctx, t, c.n, url).begin(&attackers)
	attackers.Wait()
}

// crowd is a set of callers, each its own node, that call at a steady rate.
type crowd struct {
	ctx     context.Context
	n       *flakeNode
	running sync.WaitGroup

	connected, refused, lost, calls atomic.Int64
}

func (c *crowd) String() string {
	return fmt.Sprintf("%d callers, %d refused, %d lost, %d calls",
		c.connected.Load(), c.refused.Load(), c.lost.Load(), c.calls.Load())
}

// add connects a caller, which calls until it gets no answer in time, or the crowd is done.
func (c *crowd) add() {
	ctx, cancel := context.WithTimeout(c.ctx, setupTime)
	defer cancel()
	conn, err := client.Dialer{Cookie: cookie, Addr: c.n.addr}.Dial(ctx, nodeName)
	if err == nil {
		err = c.call(conn)
	}
	if err != nil {
		c.refused.Add(1)
		if conn != nil {
			conn.Close()
		}
		return
	}
	c.connected.Add(1)
	c.running.Go(func() {
		defer conn.Close()
		for pause(c.ctx, 100*time.Millisecond) {
			if err := c.call(conn); err != nil && c.ctx.Err() == nil {
				c.lost.Add(1)
				return
			}
		}
	})
}

func (c *crowd) call(conn *client.Conn) error {
	ctx, cancel := context.WithTimeout(c.ctx, setupTime)
	defer cancel()
	_, err := conn.Call(ctx, "flake", etf.Atom("get"))
	if err == nil {
		c.calls.Add(1)
	}
	return err
}

// inGroup returns a command that runs flake in a new control group, and a function that returns the group's
// peak use of memory. The processes in the group may together use at most limit bytes.
func inGroup(t *testing.T, limit int) (command string, peak func() string) {
	t.Helper()
	flake, err := plain()
	if err != nil {
		t.Fatal(err)
	}
	dir, most := "/sys/fs/cgroup/memory", "memory.max_usage_in_bytes"
	memory, swap, noSwap := "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", limit
	if _, err := os.Stat(dir); err != nil { // control groups of version 2
		dir, most = "/sys/fs/cgroup", "memory.peak"
		memory, swap, noSwap = "memory.max", "memory.swap.max", 0
		os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+memory"), 0) // fails if memory is enabled already
	}
	if dir, err = os.MkdirTemp(dir, "flake-test-"); err != nil {
		testenv.Missing(t, err)
	}
	t.Cleanup(func() { await(t, "the group is empty", func() bool { return os.Remove(dir) == nil }) })
	if err := os.WriteFile(filepath.Join(dir, memory), []byte(strconv.Itoa(limit)), 0); err != nil {
		testenv.Missing(t, err)
	}
	os.WriteFile(filepath.Join(dir, swap), []byte(strconv.Itoa(noSwap)), 0) // not every system has this file
	return script(t, "echo $$ > %q\nexec %q \"$@\"", filepath.Join(dir, "cgroup.procs"), flake), func() string {
		text, _ := os.ReadFile(filepath.Join(dir, most))
		return strings.TrimSpace(string(text))
	}
}
