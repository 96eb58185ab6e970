package node

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flake-go/flake/node/handshake"
	"github.com/flake-go/flake/node/host"
	"github.com/flake-go/flake/node/reserve"
)

// from is a connection whose remote address is addr.
type from struct {
	net.Conn
	addr string
}

func (f from) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(f.addr), 1))
}

func hostAt(addr string) netip.Addr { return host.Of(from{addr: addr}.RemoteAddr()) }

// left removes an applicant, and reports whether it was still counted.
func left(g *gate, v *applicant) bool {
	was := g.counted(v)
	g.leave(v)
	return was && !g.counted(v)
}

// Applicants that send their name can connect despite any number of concurrent silent handshakes
// from the same host or from another.
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
		more   int // connections of the flood for each step of a caller
	}{
		{"one host", []string{"192.0.2.1"}, "192.0.2.2", 20},
		{"the caller's host", []string{"192.0.2.1"}, "192.0.2.1", 4},
		{"one network", []string{"2001:db8::1", "2001:db8::2"}, "2001:db8:1::1", 20},
		{"loopback", []string{"127.0.0.1"}, "127.0.0.1", 4},
		{"one host, caller on loopback", []string{"192.0.2.1"}, "127.0.0.1", 20},
		{"many hosts", many, "192.0.2.1", 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := newGate()
			var came []*applicant
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
				g.nameReceived(v)
			}
			flood(2 * MaxHandshakes)
			for _, v := range came {
				if !left(g, v) {
					t.Fatal("a caller is broken off, or still counted")
				}
			}
			if n := len(g.handshakes.All); n != MaxHandshakes-callers {
				t.Errorf("%d handshakes are left, want %d", n, MaxHandshakes-callers)
			}
		})
	}
}

// Applicants that send only a name do not keep out applicants that are about to send theirs.
func TestNamed(t *testing.T) {
	g := newGate()
	for range MaxHandshakes {
		v, _ := g.arrive(from{addr: "192.0.2.1"})
		g.nameReceived(v)
	}
	caller, _ := g.arrive(from{addr: "192.0.2.2"})
	for range MaxHandshakes / 3 {
		if _, out := g.arrive(from{addr: "192.0.2.1"}); out == caller {
			t.Fatal("the caller is broken off before it has sent its name")
		}
	}
	g.nameReceived(caller)
	for range MaxHandshakes {
		if v, out := g.arrive(from{addr: "192.0.2.1"}); out == caller {
			t.Fatal("the caller is broken off")
		} else {
			g.nameReceived(v)
		}
	}
}

// If all applicants have sent their name, the one that did so first is broken off.
func TestAllNamed(t *testing.T) {
	g := newGate()
	var all []*applicant
	for i := range MaxHandshakes {
		v, _ := g.arrive(from{addr: fmt.Sprintf("198.51.100.%d", i%250)})
		all = append(all, v)
	}
	for _, v := range slices.Backward(all) {
		g.nameReceived(v)
	}
	_, out := g.arrive(from{addr: "192.0.2.1"})
	if out != all[MaxHandshakes-1] || g.counted(out) {
		t.Errorf("broken off: %+v, want %+v", out, all[MaxHandshakes-1])
	}
}

// A slow applicant that answers is not broken off because of silent applicants.
func TestSlow(t *testing.T) {
	g := newGate()
	var slow []*applicant
	for range 100 {
		g.arrive(from{addr: "192.0.2.1"})
	}
	for range MaxHandshakes - 100 {
		v, _ := g.arrive(from{addr: "192.0.2.1"})
		g.nameReceived(v)
		slow = append(slow, v)
	}
	for range 100 {
		if _, out := g.arrive(from{addr: "192.0.2.1"}); slices.Contains(slow, out) {
			t.Fatal("a caller that has sent its name is broken off")
		}
	}
}

// Applicants that are delayed because of wrong cookies from their host are never broken off. If too
// many are delayed, the delay of the applicant that has waited longest ends early.
func TestDelayed(t *testing.T) {
	const addr, callers = "192.0.2.1", 100
	g := newGate()
	g.offended(hostAt(addr))
	var came []*applicant
	flood := func(n int, name bool, addrs ...string) {
		for i := range n {
			v, out := g.arrive(from{addr: addrs[i%len(addrs)]})
			if slices.Contains(came, out) {
				t.Fatal("a caller is broken off")
			}
			if name {
				g.nameReceived(v)
			}
		}
	}
	for range callers {
		v, _ := g.arrive(from{addr: addr})
		if g.nameReceived(v) != firstDelay {
			t.Fatal("the caller is not delayed")
		}
		came = append(came, v)
	}
	flood(2*MaxHandshakes, true, "198.51.100.1", "198.51.100.2", "198.51.100.3")
	flood(2*MaxHandshakes, false, addr)
	flood(maxDelayed-callers, true, addr)
	for _, v := range came {
		select {
		case <-v.released:
			t.Fatal("a delay ended early, although there is room")
		default:
		}
	}
	const slow = 100 // connections that arrive before a caller answers
	for i := range callers + slow {
		flood(1, true, addr)
		select {
		case <-came[min(i, callers-1)].released:
		default:
			t.Fatal("the longest delay did not end early, although too many callers are delayed")
		}
		if i >= slow && !left(g, came[i-slow]) {
			t.Fatal("a caller is broken off before it can answer")
		}
	}
}

// An applicant that has proved that it has the cookie is broken off only when another applicant with the
// same name has done so too. The number of these applicants is bounded.
func TestProved(t *testing.T) {
	g := newGate()
	arrive := func() *applicant {
		v, _ := g.arrive(from{addr: "192.0.2.1"})
		g.nameReceived(v)
		return v
	}
	first := arrive()
	for i := range MaxConnections {
		v := first
		if i > 0 {
			v = arrive()
		}
		if out, err := g.proved(v, fmt.Sprint(i)); out != nil || err != nil {
			t.Fatalf("%d: %v, broken off: %v", i, err, out)
		}
	}
	for range 2 * MaxHandshakes {
		arrive()
	}
	again := arrive()
	if out, err := g.proved(again, "0"); out != first || err != nil || g.counted(first) {
		t.Errorf("broken off: %+v, %v, want the first", out, err)
	}
	if _, err := g.proved(first, "0"); err != errBrokenOff {
		t.Errorf("the caller that was broken off: %v", err)
	}
	g.leave(first)
	if !g.counted(again) {
		t.Error("the last caller with a name is not counted")
	}
	more := arrive()
	if _, err := g.proved(more, "more"); err != errFull || !left(g, more) {
		t.Errorf("one more caller: %v, want %v", err, errFull)
	}
	if !left(g, again) || len(g.proven) != MaxConnections-1 {
		t.Errorf("%d callers wait, want %d", len(g.proven), MaxConnections-1)
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
			t.Errorf("%s: the longest delay is %v, want %v, and less than setupTime", tt.addr, d, most)
		}
		if d := g.delay(hostAt("192.0.2.99")); d != 0 {
			t.Errorf("another host waits %v", d)
		}
		now = now.Add(offenceKept + 1)
		g.offended(host)
		if d := g.delay(host); d != firstDelay {
			t.Errorf("%s: for a wrong cookie after more than %v, the delay is %v, want %v",
				tt.addr, offenceKept, d, firstDelay)
		}
		now = now.Add(offenceKept + 1)
		if d := g.delay(host); d != 0 || len(g.offenders) > 0 {
			t.Errorf("%s: after more than %v, the delay is %v, want 0; %d hosts are remembered",
				tt.addr, offenceKept, d, len(g.offenders))
		}
	}
}

// The number of remembered hosts with wrong cookies is bounded, and so is that of remembered rivals.
func TestOffenders(t *testing.T) {
	g := newGate()
	host := netip.MustParseAddr("198.18.0.0")
	for range 2 * maxOffenders {
		g.offended(host)
		g.replaced(host.String(), "192.0.2.1", "192.0.2.2")
		host = host.Next()
	}
	if hosts, rivals := len(g.offenders), len(g.rivals); hosts != maxOffenders || rivals != maxOffenders {
		t.Errorf("%d hosts and %d rivals are remembered, want %d", hosts, rivals, maxOffenders)
	}
}

// Nodes with the same name are reported once each time that they begin to replace each other. A node that moves
// or reconnects is not reported.
func TestReplaced(t *testing.T) {
	g := newGate()
	now := time.Now()
	g.now = func() time.Time { return now }
	for i, tt := range []struct {
		name, old, by string
		after         time.Duration
		rivals        bool
	}{
		{name: "a", old: "1", by: "2"},
		{name: "a", old: "2", by: "2"},
		{name: "a", old: "2", by: "3"},
		{name: "b", old: "3", by: "2"},
		{name: "a", old: "3", by: "2", after: offenceKept, rivals: true},
		{name: "a", old: "2", by: "3"},
		{name: "a", old: "3", by: "2", after: offenceKept},
		{name: "a", old: "2", by: "3", after: 2 * offenceKept},
		{name: "a", old: "3", by: "2", rivals: true},
	} {
		now = now.Add(tt.after)
		if got := g.replaced(tt.name, tt.old, tt.by); got != tt.rivals {
			t.Errorf("step %d: %t, want %t", i, got, tt.rivals)
		}
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
			t.Errorf("%s: %v, although one node has left", tt.addr, err)
		}
		for range tt.most - 1 {
			g.down(host)
		}
		if len(g.connected.All) != 0 {
			t.Errorf("%s: %d connections are left", tt.addr, len(g.connected.All))
		}
	}
}

// A delayed handshake that is broken off ends immediately.
func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &Node{gate: newGate(), ctx: t.Context()}
		for _, broken := range []bool{false, true} {
			c, other := net.Pipe()
			defer other.Close()
			v, _ := n.gate.arrive(from{c, "192.0.2.1"})
			n.gate.offended(v.host)
			if broken {
				close(v.broken)
			}
			start := time.Now()
			if may := n.delay(v) == nil; may == broken || broken != (time.Since(start) == 0) {
				t.Errorf("broken off %t: may continue %t, after %v", broken, may, time.Since(start))
			}
		}
	})
}

// Wrong cookies delay an applicant with the right one, but do not keep it out.
func TestWrongCookies(t *testing.T) {
	n := start(t, Options{})
	for range 5 {
		c := dialRaw(t, n)
		_, err := handshake.Start(c, name, handshake.Options{Node: "guess@127.0.0.1", Creation: 1, Cookie: "wrong"})
		if err == nil || !strings.Contains(err.Error(), "wrong cookie") {
			t.Fatal(err)
		}
	}
	n.gate.mu.Lock()
	d := n.gate.delay(netip.Addr{})
	n.gate.mu.Unlock()
	if d != maxDelayLoopback {
		t.Errorf("delay %v, want %v", d, maxDelayLoopback)
	}
	dial(t, n, "right@127.0.0.1")
}

// Silent connections do not keep out other applicants, even if they exceed the limit on handshakes.
func TestManySilent(t *testing.T) {
	n := start(t, Options{})
	var silent []net.Conn
	for range MaxHandshakes + 10 {
		silent = append(silent, dialRaw(t, n))
	}
	var timeout net.Error
	if _, err := silent[0].Read(make([]byte, 1)); err == nil || errors.As(err, &timeout) && timeout.Timeout() {
		t.Errorf("the oldest connection is not closed: %v", err)
	}
	io.WriteString(dialRaw(t, n), "\x00\x0fN\x00\x00") // the beginning of a name
	dial(t, n, "caller@127.0.0.1")
}

func TestWithin(t *testing.T) {
	const mb = 1 << 20
	for memory, want := range map[int64][3]int{ // connections, with TLS, percent
		1 * mb:    {42, 11, 2},
		28 * mb:   {298, 81, 15},
		57 * mb:   {917, 250, 48},
		115 * mb:  {2432, 663, 100},
		1000 * mb: {40192, 10961, 100},
	} {
		connections, percent := within(memory, false)
		secured, same := within(memory, true)
		if got := [3]int{connections, secured, percent}; got != want || same != percent {
			t.Errorf("%d MB: %v, want %v", memory/mb, got, want)
		}
	}
}

func TestRoom(t *testing.T) {
	const little = 28 << 20
	for _, tt := range []struct {
		o           Options
		connections int
		lacks       string
	}{
		{Options{Connections: 10}, 10, ""},
		{Options{Connections: 10, Memory: little}, 10, ""},
		{Options{Memory: little}, 298, "memory"},
		{Options{Memory: 1 << 50, Connections: math.MaxInt32}, reserve.Rest(filesOfOthers), "file descriptors (ulimit -n)"},
	} {
		connections, _, lacks := tt.o.room()
		if connections != tt.connections || lacks != tt.lacks {
			t.Errorf("%d of %d connections in %d bytes: %q, want %d, %q", connections, tt.o.Connections, tt.o.Memory, lacks,
				tt.connections, tt.lacks)
		}
	}
}

// One limit on connections applies to each host, and the other to all hosts together.
func TestConnections(t *testing.T) {
	n := start(t, Options{Connections: 2, ConnectionsPerHost: 1})
	elsewhere := hostAt("192.0.2.1")
	n.gate.up(elsewhere)
	if err := n.gate.full(elsewhere); err != errHostFull {
		t.Errorf("another connection from the host: %v, want %v", err, errHostFull)
	}
	dial(t, n, "a@127.0.0.1").get()
	dial(t, n, "b@127.0.0.1").ended()
	n.gate.down(elsewhere)
	dial(t, n, "c@127.0.0.1").get()
}

// When memory is used up, no node can connect until another leaves.
func TestLittleMemory(t *testing.T) {
	n := start(t, Options{Memory: 1})
	connections, _ := within(1, false)
	var last *peer
	for i := range connections {
		last = dial(t, n, fmt.Sprintf("a%d@127.0.0.1", i))
		last.get()
	}
	one := func() error {
		c := dialRaw(t, n)
		_, err := handshake.Start(c, n.Name(), handshake.Options{Node: "more@127.0.0.1", Creation: 77, Cookie: cookie})
		if err == nil {
			p := &peer{t, c, "", n}
			p.ended()
		}
		return err
	}
	if err := one(); err != nil {
		t.Error(err)
	}
	if got := n.Traffic().HandshakeFailures["too_many_connections"]; got != 1 {
		t.Errorf("%d callers are refused, want 1", got)
	}
	last.conn.Close()
	await(t, "a node has disconnected", func() bool { return n.Connections() < connections })
	dial(t, n, "more@127.0.0.1").get()
}
