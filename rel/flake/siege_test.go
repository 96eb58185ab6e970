package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/node/distribution"
	"github.com/flake-go/flake/node/epmd"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
)

// siege is a set of concurrent attacks, which last until a given time.
type siege struct {
	ctx     context.Context
	n       *flakeNode
	url     string
	percent int // the percentage of the attackers that take part, limited by open files
	pids    map[etf.Atom]etf.Pid
	names   atomic.Int64
}

// together are the attacks of a siege, each with its number of attackers.
var together = []struct {
	name  string
	conns int
	run   func(s *siege, i int)
}{
	{"exits in the name of the node's processes", 1, (*siege).forgedExits},
	{"slow casts, and the same name again", 1, (*siege).slowCasts},
	{"frames that do not end", 400, func(s *siege, _ int) { s.unfinished(64<<10-4, 60<<10) }},
	{"large frames that do not end", 4, func(s *siege, _ int) {
		s.unfinished(distribution.MaxFrame, distribution.MaxFrame/2)
	}},
	{"monitors", 400, (*siege).monitoring},
	{"monitors and links set and removed", 4, (*siege).setAndRemoved},
	{"connections", 3300, (*siege).idle},
	{"silent connections to EPMD", 1100, (*siege).silentEPMD},
	{"leases by HTTP", 200, (*siege).leases},
	{"wrong cookies", 1, (*siege).wrongCookies},
	{"silent connections to the node", 1, (*siege).silent},
	{"calls in another's name", 2, (*siege).inAnothersName},
	{"large answers not read", 4, (*siege).notRead},
}

func newSiege(ctx context.Context, t *testing.T, n *flakeNode, url string) *siege {
	t.Helper()
	s := &siege{ctx: ctx, n: n, url: url, percent: 100, pids: make(map[etf.Atom]etf.Pid)}
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	const need = 20_000 // files; the node needs three for each connection
	s.percent = min(*attackShare, int(min(100, files.Max*100/need)))
	c, err := n.connect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, name := range []etf.Atom{"flake", "persistent_timer", "flake_sup", "rex", "net_kernel", "kernel_sup"} {
		reply, err := c.Apply(ctx, "erlang", "whereis", []etf.Term{name})
		pid, ok := reply.(etf.Pid)
		if err != nil || !ok {
			t.Fatalf("%s: %v, %v", name, reply, err)
		}
		s.pids[name] = pid
	}
	dead, err := net.Listen("tcp", "127.0.0.1:0") // it never accepts, so dialers wait
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dead.Close() })
	registered, err := epmd.Register(ctx, "127.0.0.1:"+n.port, epmd.Node{
		Name: "dead", Port: uint16(dead.Addr().(*net.TCPAddr).Port), Type: epmd.Hidden,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { registered.Close() })
	return s
}

// begin starts the attackers, which continue until the end of the siege.
func (s *siege) begin(running *sync.WaitGroup) {
	for _, a := range together {
		if !strings.Contains(a.name, *attackOnly) {
			continue
		}
		for i := range max(1, a.conns*s.percent/100) {
			running.Go(func() { a.run(s, i) })
		}
	}
}

// pause waits, and reports whether the siege continues.
func (s *siege) pause(d time.Duration) bool { return pause(s.ctx, d) }

func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// dial opens a connection, which is closed at the end of the siege.
func (s *siege) dial(addr string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(s.ctx, "tcp", addr)
	if err == nil {
		context.AfterFunc(s.ctx, func() { c.Close() })
	}
	return c, err
}

// as returns an attacker with this name, or with a new name if it is empty. It returns nil if the node refuses it.
func (s *siege) as(name string) *attacker {
	if name == "" {
		name = fmt.Sprintf("siege%d@127.0.0.1", s.names.Add(1))
	}
	c, err := s.dial(s.n.addr)
	if err != nil {
		return nil
	}
	c.SetDeadline(time.Now().Add(setupTime))
	if _, err := handshake.Start(c, nodeName, handshake.Options{Node: name, Creation: 1, Cookie: cookie}); err != nil {
		c.Close()
		return nil
	}
	c.SetDeadline(time.Time{})
	return &attacker{
		Conn: c, node: s.n, self: etf.NewPid(etf.Atom(name), 1, 0,
			1), random: rand.New(rand.NewPCG(1, uint64(s.names.Load()))),
	}
}

// again calls do repeatedly until the end of the siege, each time on a new connection.
func (s *siege) again(name string, do func(a *attacker)) {
	for ; s.ctx.Err() == nil; s.pause(time.Second) {
		if a := s.as(name); a != nil {
			do(a)
			a.Close()
		}
	}
}

func (s *siege) forgedExits(int) {
	s.again("", func(a *attacker) {
		for a.failed == nil {
			for _, from := range s.pids {
				for _, to := range s.pids {
					a.frame(a.control(3, from, to, etf.Atom("x")))
					a.frame(a.control(13, from, to, etf.Atom("token"), etf.Atom("x")))
					a.frame(a.control(21, from, to, a.ref(1), etf.Atom("x")))
					a.frame(a.control(8, from, to, etf.Atom("shutdown")))
				}
			}
			if a.flush(); !s.pause(50 * time.Millisecond) {
				return
			}
		}
	})
}

// slowCasts starts slow functions, and reconnects under the same name.
func (s *siege) slowCasts(int) {
	const name = "slow@127.0.0.1"
	s.again(name, func(a *attacker) {
		for range 600 {
			a.regSend("rex", castOfPing)
			a.rex("net_adm", "ping", external(pingArgs))
		}
		a.flush()
		for range 200 {
			s.as(name)
			if !s.pause(5 * time.Millisecond) {
				return
			}
		}
	})
}

func (s *siege) unfinished(announced, sent int) {
	s.again("", func(a *attacker) {
		a.announce(announced)
		a.write(make([]byte, sent))
		a.awaitEnd()
	})
}

func (s *siege) monitoring(i int) {
	s.again("", func(a *attacker) {
		a.numbered(900, func(i int) { a.frame(a.control(19, a.self, etf.Atom("flake"), a.ref(i))) })
		a.flush()
		a.awaitEnd()
	})
}

func (s *siege) setAndRemoved(int) {
	const many = 100_000
	s.again("", func(a *attacker) {
		go a.awaitEnd()
		flake := s.pids["flake"]
		for _, ops := range [][2]int64{{19, 1}, {20, 4}} { // MONITOR_P and LINK, DEMONITOR_P and UNLINK
			a.numbered(many, func(i int) {
				a.frame(a.control(ops[0], a.self, etf.Atom("flake"), a.ref(i)))
				a.frame(a.control(ops[1], etf.NewPid(a.self.Node(), uint32(i), 0, 1), flake))
			})
		}
		if a.flush(); a.failed == nil {
			s.pause(10 * time.Second) // stays connected
		}
	})
}

func (s *siege) idle(int) { s.again("", (*attacker).awaitEnd) }

func (s *siege) silentEPMD(int) {
	for ; s.ctx.Err() == nil; s.pause(time.Second) {
		if c, err := s.dial("127.0.0.1:" + s.n.port); err == nil {
			io.Copy(io.Discard, c)
			c.Close()
		}
	}
}

// leases requests as many ids as possible, and does not always wait for the answer.
func (s *siege) leases(i int) {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	c := &http.Client{Transport: transport, Timeout: time.Duration(1+i%10) * time.Second}
	for s.ctx.Err() == nil {
		url := fmt.Sprintf("%s/v1/leases?n=%d", s.url, idserver.MaxLease)
		r, err := http.NewRequestWithContext(s.ctx, http.MethodPost, url, nil)
		if err != nil {
			return
		}
		answer, err := c.Do(r)
		if err != nil {
			s.pause(100 * time.Millisecond)
			continue
		}
		io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
	}
}

func (s *siege) wrongCookies(int) {
	for s.pause(200 * time.Millisecond) {
		if c, err := s.dial(s.n.addr); err == nil {
			go func() {
				defer c.Close()
				handshake.Start(c, nodeName, handshake.Options{Node: "guess@127.0.0.1", Creation: 1, Cookie: "guess"})
			}()
		}
	}
}

// silent dials 40 times a second, and sends nothing or half of its name.
func (s *siege) silent(int) {
	name := nameMessage("half@127.0.0.1")
	for i := 0; s.pause(25 * time.Millisecond); i++ {
		if c, err := s.dial(s.n.addr); err == nil {
			c.Write(name[:i%2*len(name)/(1+i%3)])
			go func() {
				defer c.Close()
				io.Copy(io.Discard, c)
			}()
		}
	}
}

// inAnothersName requests the largest answers for processes of the honest node.
func (s *siege) inAnothersName(int) {
	s.again("", func(a *attacker) {
		go a.awaitEnd()
		a.self = etf.NewPid("caller@127.0.0.1", 1, 0, 1)
		for call := a.bulk(); a.failed == nil && s.pause(10*time.Millisecond); {
			call(1)
		}
	})
}

func (s *siege) notRead(int) {
	s.again("", func(a *attacker) {
		for call := a.bulk(); a.failed == nil && s.pause(10*time.Millisecond); {
			call(1)
		}
	})
}
