package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/node/certs/certstest"
	"github.com/flake-go/flake/node/etf"
)

// mayGrow is how many bytes the node's resident memory may grow, whatever anyone does:
// with mayGrowConnections or fewer, for each connection beyond, and for each with TLS.
const (
	mayGrow              = 100_000_000
	mayGrowPerConnection = 32 << 10
	mayGrowPerTLS        = 64 << 10
	mayGrowConnections   = 1024
)

// plain builds the command without the race detector, which takes extra memory.
var plain = sync.OnceValues(func() (string, error) {
	path := filepath.Join(built, "flake-plain")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// startPlain starts it, with settings for [node].
func startPlain(t *testing.T, node string) *flakeNode {
	t.Helper()
	command, err := plain()
	if err != nil {
		t.Fatal(err)
	}
	return startCommand(t, command, "", node)
}

// TestHostileMemory attacks the command, several peers at a time. It serves
// others meanwhile and afterwards, and takes little memory for it.
func TestHostileMemory(t *testing.T) {
	if _, err := os.Stat("/proc/self/clear_refs"); err != nil {
		t.Skipf("memory is not measured here: %v", err)
	}
	ca := certstest.NewCA(t, "ca")
	table, secured := tlsTable(ca, "none"), ca.Client("caller", loopback)
	for _, kind := range []struct {
		name    string
		attacks []attack
		cookie  string
		tls     *tls.Config
		perTLS  int
	}{
		{"with the cookie", withCookie, cookie, nil, 0},
		{"without the cookie", withoutCookie, "", nil, 0},
		{"TLS with the cookie", withTLS, "", secured, mayGrowPerTLS},
		{"TLS without the cookie", beforeTLS, "", secured, 0},
	} {
		for _, attack := range kind.attacks {
			t.Run(kind.name+"/"+attack.name, func(t *testing.T) {
				t.Parallel() // many wait for most of their time
				node := ""
				if kind.tls != nil {
					node = table
				}
				n := startPlain(t, node)
				n.tls = kind.tls
				served(t, n)
				before := memory(t, n, "VmRSS")
				resetPeak(t, n)
				var attackers, start sync.WaitGroup
				start.Add(attack.conns)
				for i := range attack.conns {
					a := newAttacker(t, n, i, kind.cookie)
					a.start = &start
					attackers.Go(func() { attack.run(a) })
				}
				calls, slowest := serving(t, n, &attackers)
				served(t, n)
				peak := memory(t, n, "VmHWM")
				t.Logf("%d kB, %+d kB at most; %d calls meanwhile, the slowest %v", before, peak-before, calls, slowest.Round(time.Millisecond))
				if (peak-before)<<10 > mayGrow+mayGrowPerConnection*max(attack.conns-mayGrowConnections, 0)+kind.perTLS*attack.conns {
					t.Errorf("%d kB at the start, %d at most", before, peak)
				}
			})
		}
	}
}

// What others had it take is given back to the system soon after they have gone.
func TestMemoryGivenBack(t *testing.T) {
	t.Parallel()
	const conns, size, spare = 300, 60 << 10, 12 << 10
	n := startPlain(t, "")
	served(t, n)
	before := memory(t, n, "VmRSS")
	var all []*attacker
	for i := range conns {
		a := newAttacker(t, n, i, cookie)
		a.announce(64<<10 - 4)
		a.write(make([]byte, size))
		all = append(all, a)
	}
	await(t, "memory is taken", func() bool { return memory(t, n, "VmRSS") > before+spare })
	for _, a := range all {
		a.Close()
	}
	await(t, "it is given back", func() bool { return memory(t, n, "VmRSS") < before+spare })
}

func newAttacker(t *testing.T, n *flakeNode, i int, cookie string) *attacker {
	t.Helper()
	name := fmt.Sprintf("hostile%d@127.0.0.1", i)
	a := &attacker{
		node: n, i: i, self: etf.NewPid(etf.Atom(name), 1, 0, 1), random: rand.New(rand.NewPCG(1, uint64(i))),
	}
	if cookie == "" {
		a.Conn = dial(t, n.addr)
	} else {
		a.Conn = dialAs(t, n.addr, name)
	}
	return a
}

// whereis returns the pid of a registered process.
func (a *attacker) whereis(name etf.Atom) etf.Pid {
	for {
		if pid, ok := a.lookup(name); ok {
			return pid
		}
	}
}

func (a *attacker) lookup(name etf.Atom) (etf.Pid, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), patience/4)
	defer cancel()
	c, err := client.DialAddr(ctx, a.node.addr, nodeName, cookie)
	if err != nil {
		return "", false
	}
	defer c.Close()
	reply, err := c.Apply(ctx, "erlang", "whereis", []etf.Term{name})
	pid, ok := reply.(etf.Pid)
	return pid, ok && err == nil
}

// serving calls the node again and again until the attackers are done, but leaves them
// some time of the processor.
func serving(t *testing.T, n *flakeNode, attackers *sync.WaitGroup) (calls int, slowest time.Duration) {
	t.Helper()
	over := make(chan struct{})
	go func() {
		attackers.Wait()
		close(over)
	}()
	for {
		start := time.Now()
		served(t, n)
		slowest = max(slowest, time.Since(start))
		calls++
		select {
		case <-over:
			return calls, slowest
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// served connects and calls, as a new caller does.
func served(t *testing.T, n *flakeNode) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		begun := time.Now()
		c, err := client.Dialer{Addr: n.addr, Cookie: cookie, TLS: n.tls}.Dial(ctx, nodeName)
		if err != nil && tooSlow(begun) && ctx.Err() == nil {
			continue
		}
		if err != nil {
			t.Fatalf("not let in: %v", err)
		}
		reply, err := c.Call(ctx, "flake", etf.Atom("get"))
		c.Close()
		if answer, ok := reply.(etf.Tuple); ok && len(answer) == 2 && answer[0] == etf.Atom("ok") {
			return
		}
		// flake may have been killed and be about to come back.
		if ctx.Err() != nil {
			t.Fatalf("not served: %v, %v", reply, err)
		}
	}
}

// memory reads a figure of the node's memory, in kB.
func memory(t *testing.T, n *flakeNode, key string) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, key+":"); ok {
			kB, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
			if err != nil {
				t.Fatal(err)
			}
			return kB
		}
	}
	t.Fatalf("no %s in %s", key, status)
	return 0
}

// resetPeak resets VmHWM.
func resetPeak(t *testing.T, n *flakeNode) {
	t.Helper()
	const peak = "5" // proc_pid_clear_refs(5)
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", n.cmd.Process.Pid), []byte(peak), 0); err != nil {
		t.Fatal(err)
	}
}
