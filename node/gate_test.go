package node

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flake-go/flake/node/handshake"
	"github.com/flake-go/flake/node/host"
)

// from is a stream from an address.
type from struct {
	net.Conn
	addr string
}

func (f from) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(f.addr), 1))
}

func hostAt(addr string) netip.Addr { return host.Of(from{addr: addr}.RemoteAddr()) }

// Whoever opens handshakes and says nothing, callers that say their name get in, however
// many come at once, from that host or another.
func TestHandshakes(t *testing.T) {
	const callers = 200
	var many []string
	for i := range 250 {
		many = append(many, fmt.Sprintf("198.51.100.%d", i))
	}
	for _, tt := range []struct {
		name   string
		flood  []string
		caller string
		more   int // of the flood for each that a caller takes to say its name
	}{
		{"one host", []string{"192.0.2.1"}, "192.0.2.2", 20},
		{"one host, and the caller's", []string{"192.0.2.1"}, "192.0.2.1", 4},
		{"one network", []string{"2001:db8::1", "2001:db8::2"}, "2001:db8:1::1", 20},
		{"the loopback", []string{"127.0.0.1"}, "127.0.0.1", 4},
		{"the loopback, from elsewhere", []string{"192.0.2.1"}, "127.0.0.1", 20},
		{"many hosts", many, "192.0.2.1", 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := newGate()
			var came []*visit
			next := 0
			flood := func(n int) {
				for range n {
					_, out := g.arrive(from{addr: tt.flood[next%len(tt.flood)]})
					if next++; slices.Contains(came, out) {
						t.Fatal("a caller is broken off")
					}
				}
			}
			flood(MaxHandshakes)
			for range callers {
				v, out := g.arrive(from{addr: tt.caller})
				if out == nil || slices.Contains(came, out) {
					t.Fatalf("broken off: %+v", out)
				}
				came = append(came, v)
			}
			for _, v := range came {
				flood(tt.more)
				g.spoke(v)
			}
			flood(2 * MaxHandshakes)
			for _, v := range came {
				if !g.leave(v) || g.leave(v) {
					t.Fatal("a caller is not counted once")
				}
			}
			const left = MaxHandshakes - callers
			if len(g.handshakes) != left || g.silent.n != left {
				t.Errorf("%d are left, %d of them silent, want %d", len(g.handshakes), g.silent.n, left)
			}
			for _, v := range slices.Clone(g.handshakes) {
				g.leave(v)
			}
			if len(g.silent.hosts)+len(g.named.hosts) > 0 {
				t.Errorf("left: %v, %v", g.silent, g.named)
			}
		})
	}
}

// Those who say a name and no more do not keep those out who are about to say theirs.
func TestNamed(t *testing.T) {
	g := newGate()
	for range MaxHandshakes {
		v, _ := g.arrive(from{addr: "192.0.2.1"})
		g.spoke(v)
	}
	caller, _ := g.arrive(from{addr: "192.0.2.2"})
	for range MaxHandshakes / 3 {
		if _, out := g.arrive(from{addr: "192.0.2.1"}); out == caller {
			t.Fatal("the caller is broken off before it has said its name")
		}
	}
	g.spoke(caller)
	for range MaxHandshakes {
		if v, out := g.arrive(from{addr: "192.0.2.1"}); out == caller {
			t.Fatal("the caller is broken off")
		} else {
			g.spoke(v)
		}
	}
}

// If all have said their name, the one has to go that did so first.
func TestAllNamed(t *testing.T) {
	g := newGate()
	var all []*visit
	for i := range MaxHandshakes {
		v, _ := g.arrive(from{addr: fmt.Sprintf("198.51.100.%d", i%250)})
		all = append(all, v)
	}
	for _, v := range slices.Backward(all) {
		g.spoke(v)
	}
	_, out := g.arrive(from{addr: "192.0.2.1"})
	if out != all[MaxHandshakes-1] || g.leave(out) {
		t.Errorf("broken off: %+v, want %+v", out, all[MaxHandshakes-1])
	}
}

func TestDelay(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		addr string
		want []time.Duration // after each wrong cookie
	}{
		{"192.0.2.1", []time.Duration{100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 4000 * ms, 4000 * ms}},
		{"127.0.0.1", []time.Duration{100 * ms, 200 * ms, 200 * ms}},
	} {
		g := newGate()
		now := time.Now()
		g.now = func() time.Time { return now }
		host := hostAt(tt.addr)
		for i, want := range append([]time.Duration{0}, tt.want...) {
			if i > 0 {
				g.offended(host)
			}
			if d := g.delay(host); d != want {
				t.Errorf("%s after %d wrong cookies: %v, want %v", tt.addr, i, d, want)
			}
		}
		for range 100 {
			g.offended(host)
		}
		if d, most := g.delay(host), tt.want[len(tt.want)-1]; d != most || d >= setupTime {
			t.Errorf("%s: at most %v, want %v, and less than a handshake may take", tt.addr, d, most)
		}
		if d := g.delay(hostAt("192.0.2.99")); d != 0 {
			t.Errorf("another host waits %v", d)
		}
		now = now.Add(offenceKept + 1)
		g.offended(host)
		if d := g.delay(host); d != firstDelay {
			t.Errorf("%s: remembered for more than %v: %v", tt.addr, offenceKept, d)
		}
		now = now.Add(offenceKept + 1)
		if d := g.delay(host); d != 0 || len(g.offenders) > 0 {
			t.Errorf("%s: remembered for more than %v: %v", tt.addr, offenceKept, d)
		}
	}
}

// However many hosts have wrong cookies, few are remembered.
func TestOffenders(t *testing.T) {
	g := newGate()
	host := netip.MustParseAddr("198.18.0.0")
	for range 2 * maxOffenders {
		g.offended(host)
		host = host.Next()
	}
	if n := len(g.offenders); n != maxOffenders {
		t.Errorf("%d remembered, want %d", n, maxOffenders)
	}
}

func TestFull(t *testing.T) {
	for _, tt := range []struct {
		addr, other  string
		most         int
		want, others error
	}{
		{"192.0.2.1", "192.0.2.2", MaxPerHost, errHostFull, nil},
		{"127.0.0.1", "192.0.2.2", MaxConnections, errFull, errFull},
	} {
		g := newGate()
		host := hostAt(tt.addr)
		for n := range tt.most {
			if err := g.full(host); err != nil {
				t.Fatalf("%s: %v after %d", tt.addr, err, n)
			}
			g.up(host)
		}
		if err := g.full(host); err != tt.want {
			t.Errorf("%s: %v, want %v", tt.addr, err, tt.want)
		}
		if err := g.full(hostAt(tt.other)); err != tt.others {
			t.Errorf("%s: %v, want %v", tt.other, err, tt.others)
		}
		g.down(host)
		if err := g.full(host); err != nil {
			t.Errorf("%s: %v though one has gone", tt.addr, err)
		}
		for range tt.most - 1 {
			g.down(host)
		}
		if g.total != 0 || len(g.connected) != 0 {
			t.Errorf("%s: %d and %d are left", tt.addr, g.total, len(g.connected))
		}
	}
}

// A handshake that is broken off while it is kept waiting ends at once.
func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &Node{gate: newGate(), ctx: t.Context()}
		for _, broken := range []bool{false, true} {
			c, other := net.Pipe()
			defer other.Close()
			v, _ := n.gate.arrive(from{c, "192.0.2.1"})
			n.gate.offended(v.host)
			if broken {
				v.breakOff()
			}
			start := time.Now()
			if may := n.hold(v); may == broken || broken != (time.Since(start) == 0) {
				t.Errorf("broken off %t: may go on %t, after %v", broken, may, time.Since(start))
			}
		}
	})
}

// Wrong cookies keep the right one waiting, but not out.
func TestWrongCookies(t *testing.T) {
	n := start(t, Options{})
	for range 5 {
		c := dialRaw(t, n)
		_, err := handshake.Start(c, name, handshake.Options{Node: "guess@127.0.0.1", Creation: 1, Cookie: "wrong"})
		if err == nil || !strings.Contains(err.Error(), "wrong cookie") {
			t.Fatal(err)
		}
	}
	if d := n.gate.delay(netip.Addr{}); d != maxDelayLoopback {
		t.Errorf("delay %v, want %v", d, maxDelayLoopback)
	}
	dial(t, n, "right@127.0.0.1")
}

// More silent connections than there are places for handshakes keep nobody out.
func TestManySilent(t *testing.T) {
	n := start(t, Options{})
	var silent []net.Conn
	for range MaxHandshakes + 10 {
		silent = append(silent, dialRaw(t, n))
	}
	var timeout net.Error
	if _, err := silent[0].Read(make([]byte, 1)); err == nil || errors.As(err, &timeout) && timeout.Timeout() {
		t.Errorf("the oldest is still there: %v", err)
	}
	dial(t, n, "caller@127.0.0.1")
}
