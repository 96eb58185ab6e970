package main

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/internal/certstest"
	"github.com/flake-go/flake/internal/testenv"
	"github.com/flake-go/flake/node/etf"
)

// mayGrow, mayGrowPerConnection and mayGrowPerTLS limit the growth of the node's resident memory, whatever peers
// do. mayGrow is for up to mayGrowConnections connections, mayGrowPerConnection for each connection beyond that, and
// mayGrowPerTLS for each TLS connection.
const (
	mayGrow              = 100_000_000
	mayGrowPerConnection = 32 << 10
	mayGrowPerTLS        = 64 << 10
	mayGrowConnections   = 1024
)

var (
	hostileConns = flag.Int("hostile.conns", 0,
		"how many connections TestHostileMemory attacks on; 0: as many as its tables say, or a quarter of "+
			"them outside scripts/test")
	hostileTime = flag.Duration("hostile.time", 0, "the minimum time for which it attacks")
)

// plain builds the command without the race detector, which takes extra memory.
var plain = sync.OnceValues(func() (string, error) {
	path := filepath.Join(built, "flake-plain")
	return path, compile("go", "build", "-o", path, ".")
})

// startPlain starts the command that plain builds, with settings for [node].
func startPlain(t *testing.T, node string) *flakeNode {
	t.Helper()
	command, err := plain()
	if err != nil {
		t.Fatal(err)
	}
	return startCommand(t, command, "", node)
}

// TestHostileMemory attacks the command with several peers at a time. The command serves others
// during and after the attack, and needs little memory. To attack on more connections and for
// longer:
//
//	go test -v -parallel 1 -run 'TestHostileMemory$' ./rel/flake -hostile.conns=10000 -hostile.time=15s
func TestHostileMemory(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/clear_refs"); err != nil {
		testenv.Missing(t, err)
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
				node := "[http]\nlisten = \"127.0.0.1:0\"\n"
				if kind.tls != nil {
					node += table
				}
				conns := attack.conns
				if !testenv.All() {
					conns = (conns + 3) / 4
				}
				if *hostileConns > 0 {
					conns = *hostileConns
				}
				n := startPlain(t, node)
				n.tls = kind.tls
				caller, err := n.connect(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				served(t, n)
				before := memory(t, n, "VmRSS")
				resetPeak(t, n)
				var flake etf.Pid
				if kind.cookie != "" {
					var ok bool
					if flake, ok = (&attacker{node: n}).whereis("flake"); !ok {
						t.Fatal("flake is not registered")
					}
				}
				all := make([]*attacker, conns) // they begin together
				for i := range all {
					all[i] = newAttacker(t, n, i, kind.cookie)
					all[i].flake = flake
				}
				var attackers sync.WaitGroup
				for _, a := range all {
					attackers.Go(func() { attack.run(a) })
				}
				took := serving(t, n, caller, &attackers)
				files := n.state(t).files
				served(t, n)
				peak := memory(t, n, "VmHWM")
				t.Logf("%d kB, %+d kB at most, %d descriptors; %v", before, peak-before, files, took)
				if (peak-before)<<10 > mayGrow+mayGrowPerConnection*max(conns-mayGrowConnections, 0)+kind.perTLS*conns {
					t.Errorf("resident memory grew from %d to %d kB", before, peak)
				}
			})
		}
	}
}

// Memory that the node allocated for peers is returned to the system soon after they have left.
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
	await(t, "memory is in use", func() bool { return memory(t, n, "VmRSS") > before+spare })
	for _, a := range all {
		a.Close()
	}
	await(t, "memory is returned", func() bool { return memory(t, n, "VmRSS") < before+spare })
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

// whereis returns the pid of a registered process. It looks it up repeatedly, up to patience,
// because the process may be restarting.
func (a *attacker) whereis(name etf.Atom) (pid etf.Pid, ok bool) {
	for over := time.Now().Add(patience); !ok && time.Now().Before(over); {
		pid, ok = a.lookup(name)
	}
	return pid, ok
}

func (a *attacker) lookup(name etf.Atom) (etf.Pid, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), patience/4)
	defer cancel()
	c, err := client.Dialer{Cookie: cookie, Addr: a.node.addr}.Dial(ctx, nodeName)
	if err != nil {
		return "", false
	}
	defer c.Close()
	reply, err := c.Apply(ctx, "erlang", "whereis", []etf.Term{name})
	pid, ok := reply.(etf.Pid)
	return pid, ok && err == nil
}

// latencies are the durations of calls.
type latencies []time.Duration

func (l latencies) String() string {
	if len(l) == 0 {
		return "none"
	}
	slices.Sort(l)
	return fmt.Sprintf("%d, p99 %v", len(l), l[(len(l)-1)*99/100].Round(time.Millisecond))
}

// repeated calls do again and again until over is closed, and returns how long each call took. It pauses after each,
// so that others get processor time.
func repeated(over <-chan struct{}, do func()) (all latencies) {
	for {
		start := time.Now()
		do()
		all = append(all, time.Since(start))
		select {
		case <-over:
			return all
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// serving takes ids as a newcomer, on the connection c, and over HTTP, until the attackers are done.
func serving(t *testing.T, n *flakeNode, c *client.Conn, attackers *sync.WaitGroup) string {
	t.Helper()
	over := make(chan struct{})
	minimum := time.After(*hostileTime)
	go func() {
		attackers.Wait()
		<-minimum
		close(over)
	}()
	var callers, requests latencies
	var lost, refused int
	var others sync.WaitGroup
	others.Go(func() {
		callers = repeated(over, func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			var err error
			if c == nil {
				c, err = client.Dialer{Addr: n.addr, Cookie: cookie, TLS: n.tls}.Dial(ctx, nodeName)
			}
			if err == nil {
				_, err = c.Call(ctx, "flake", etf.Atom("get"))
			}
			if err == nil {
				return
			}
			if lost++; c != nil {
				c.Close()
			}
			c = nil
		})
		if c != nil {
			c.Close()
		}
	})
	url := n.await("  HTTP ") + "v1/ids"
	others.Go(func() {
		requests = repeated(over, func() {
			answer, err := http.Post(url, "", nil)
			if err == nil {
				answer.Body.Close()
			}
			if err != nil || answer.StatusCode != http.StatusOK {
				refused++
			}
		})
	})
	newcomers := repeated(over, func() { served(t, n) })
	others.Wait()
	return fmt.Sprintf("newcomers %v; a caller %v, %d failed; HTTP %v, %d failed", newcomers, callers, lost,
		requests, refused)
}

// connect connects as a new caller.
func (n *flakeNode) connect(ctx context.Context) (*client.Conn, error) {
	for {
		begun := time.Now()
		c, err := client.Dialer{Addr: n.addr, Cookie: cookie, TLS: n.tls}.Dial(ctx, nodeName)
		if err == nil || !tooSlow(begun) || ctx.Err() != nil {
			return c, err
		}
	}
}

// served fails the test unless a new caller is admitted and gets an id.
func served(t *testing.T, n *flakeNode) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		c, err := n.connect(ctx)
		if err != nil {
			t.Fatalf("a new caller was not admitted: %v", err)
		}
		reply, err := c.Call(ctx, "flake", etf.Atom("get"))
		c.Close()
		if answer, ok := reply.(etf.Tuple); ok && len(answer) == 2 && answer[0] == etf.Atom("ok") {
			return
		}
		// flake may have been killed, and be restarting.
		if ctx.Err() != nil {
			t.Fatalf("a new caller was not served: %v, %v", reply, err)
		}
	}
}

// memory returns a value from the node's /proc/PID/status, in kB.
func memory(t *testing.T, n *flakeNode, key string) int {
	t.Helper()
	status := readFile(t, fmt.Sprintf("/proc/%d/status", n.cmd.Process.Pid))
	for line := range strings.Lines(status) {
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
