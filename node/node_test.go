package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flake-go/flake/node/epmd"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
	"github.com/flake-go/flake/node/rpc"
)

var ref = etf.NewRef("a@127.0.0.1", 77, 1, 2, 3, 4, 5)

// net_kernel answers the requests of connecting nodes.
func TestNetKernel(t *testing.T) {
	p := dial(t, start(t, Options{NetTicktime: 30 * time.Second}), "a@127.0.0.1")
	for request, want := range map[etf.Atom]string{
		"nodename": "{1,'flake@127.0.0.1'}", "longnames": "{1,true}", "ticktime": "{1,30000}",
	} {
		if got := p.call("net_kernel", request); got != want {
			t.Errorf("%s: %s, want %s", request, got, want)
		}
	}
	if got := p.call("net_kernel", etf.Tuple{etf.Atom("is_auth"), etf.Atom("a@127.0.0.1")}); got != "{1,yes}" {
		t.Errorf("is_auth: %s", got)
	}
	// net_kernel ignores unknown requests, and answers later ones.
	for _, request := range []etf.Term{etf.Atom("x"), etf.Tuple{etf.Atom("x"), int64(1)}, etf.Tuple{}, int64(1)} {
		p.send(regSend(p.pid, "net_kernel"), etf.Tuple{etf.Atom("$gen_call"), etf.Tuple{p.pid, int64(2)}, request})
	}
	if got := p.call("net_kernel", etf.Atom("longnames")); got != "{1,true}" {
		t.Errorf("after unknown requests: %s", got)
	}
}

// The node grants no lock of module global, and registers no name.
func TestGlobalNameServer(t *testing.T) {
	p := dial(t, start(t, Options{}), "a@127.0.0.1")
	for _, request := range []etf.Term{
		etf.Tuple{etf.Atom("set_lock"), etf.Tuple{etf.Atom("resource"), p.pid}},
		etf.Tuple{etf.Atom("register"), etf.Atom("name"), p.pid, etf.Atom("undefined")},
		etf.Atom("get_known"),
	} {
		if got := p.call("global_name_server", request); got != "{1,false}" {
			t.Errorf("%s: %s", etf.Format(nil, request), got)
		}
	}
}

// erlang:apply calls the functions of the table, which include erlang:apply itself.
func TestApply(t *testing.T) {
	n := start(t, Options{})
	external := func(module, function string, arity byte) etf.Export {
		atom := func(s string) string { return "w" + string(rune(len(s))) + s }
		return etf.Export("q" + atom(module) + atom(function) + "a" + string(rune(arity)))
	}
	self, none := external("erlang", "node", 0), etf.List{}
	for _, test := range []struct {
		args etf.List
		want string
	}{
		{etf.List{self, none}, "'flake@127.0.0.1'"},
		{etf.List{etf.Atom("erlang"), etf.Atom("node"), none}, "'flake@127.0.0.1'"},
		{etf.List{external("erlang", "apply", 2), etf.List{self, none}}, "'flake@127.0.0.1'"},
		{etf.List{self, etf.List{int64(7)}}, "error {badarity,{fun erlang:node/0,[7]}}"},
		{etf.List{external("os", "cmd", 1), etf.List{int64(7)}}, "error undef"},
		{etf.List{etf.Fun(""), none}, "error undef"},
		{etf.List{int64(7), none}, "error {badfun,7}"},
		{etf.List{self, int64(7)}, "error badarg"},
		{etf.List{int64(7), etf.Atom("node"), none}, "error badarg"},
		{etf.List{etf.Atom("erlang"), int64(7), none}, "error badarg"},
		{etf.List{etf.Atom("erlang"), etf.Atom("node"), int64(7)}, "error badarg"},
	} {
		result, exception := n.functions.Apply("erlang", "apply", test.args)
		got := string(etf.Format(nil, result))
		if exception != nil {
			got = string(etf.Format([]byte(exception.Class+" "), exception.Reason))
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", etf.Format(nil, test.args), got, test.want)
		}
	}
}

func TestLongNames(t *testing.T) {
	for name, want := range map[string]string{
		"flake@127.0.0.1": "{1,true}", "flake@::1": "{1,true}", "flake@localhost": "{1,false}",
	} {
		p := dial(t, start(t, Options{Name: name}), "a@127.0.0.1")
		if got := p.call("net_kernel", etf.Atom("longnames")); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestUnregisteredName(t *testing.T) {
	p := dial(t, start(t, Options{}), "a@127.0.0.1")
	p.send(monitor(p.pid, etf.Atom("nosuch"), ref))
	p.send(regSend(p.pid, "nosuch"), etf.Tuple{etf.Atom("$gen_call"), etf.Tuple{p.pid, int64(1)}, etf.Atom("get")})
	p.want("{21,nosuch,<0.9.0>,#Ref<0.5.4.3.2.1>,noproc}", none)
	p.get() // no frame in between
}

// When a server is killed, its end is reported, and it is restarted as another process.
func TestKill(t *testing.T) {
	n := start(t, Options{})
	p := dial(t, n, "a@127.0.0.1")
	for range 5 {
		var pid etf.Pid
		await(t, "flake is registered", func() bool { pid = pidOf(n, "flake"); return pid != "" })
		p.send(monitor(p.pid, etf.Atom("flake"), ref))
		p.send(etf.Tuple{int64(8), p.pid, pid, etf.Atom("ignored")})
		p.get()
		p.send(etf.Tuple{int64(8), p.pid, pid, etf.Atom("kill")})
		p.want("{21,flake,<0.9.0>,#Ref<0.5.4.3.2.1>,killed}", none)
		await(t, "flake is another process", func() bool { now := pidOf(n, "flake"); return now != "" && now != pid })
		p.get()
		p.send(monitor(p.pid, pid, ref))
		p.want("{21,"+pid.String()+",<0.9.0>,#Ref<0.5.4.3.2.1>,noproc}", none)
	}
}

// Frequent kills by one peer delay others, but do not prevent them from being served.
func TestManyKills(t *testing.T) {
	n := start(t, Options{})
	killers := []*peer{dial(t, n, "a@127.0.0.1"), dial(t, n, "b@127.0.0.1")}
	for range 100 {
		for _, p := range killers {
			if pid := pidOf(n, "flake"); pid != "" {
				p.send(etf.Tuple{int64(8), p.pid, pid, etf.Atom("kill")})
				p.send(etf.Tuple{int64(8), p.pid, pid, etf.Atom("kill")})
			}
		}
	}
	for _, p := range killers {
		p.call("net_kernel", etf.Atom("nodename")) // all kills have arrived
	}
	p, calls := dial(t, n, "c@127.0.0.1"), int64(0)
	await(t, "flake answers", func() bool { // a late kill may still end flake once
		calls++
		run, err := p.honestCall(calls)
		if err != nil {
			t.Fatal(err)
		}
		return run.from != 0
	})
}

// A node can stop while its servers end.
func TestKillAndStop(t *testing.T) {
	for range 10 {
		n := start(t, Options{})
		p := dial(t, n, "a@127.0.0.1")
		for _, name := range []string{"flake", "rex"} {
			p.send(etf.Tuple{int64(8), p.pid, pidOf(n, name), etf.Atom("kill")})
		}
		p.call("net_kernel", etf.Atom("nodename")) // the kills have arrived
		n.Stop()
	}
}

// A peer that connects again replaces its old connection, but only with the cookie.
func TestSecondSession(t *testing.T) {
	n := start(t, Options{})
	first := dial(t, n, "a@127.0.0.1")
	first.get()

	_, err := handshake.Start(dialRaw(t, n), n.Name(), handshake.Options{Node: "a@127.0.0.1", Cookie: "guess"})
	if err == nil {
		t.Error("a peer with a wrong cookie connected")
	}
	first.get()

	// A BEAM is asked whether to replace the connection, and may decline.
	c := dialRaw(t, n)
	hello := handshake.Name{Version: 6, Flags: handshake.Offered | handshake.DistHdrAtomCache,
		Node: "a@127.0.0.1"}.Append(nil)
	c.Write(append([]byte{0, byte(len(hello))}, hello...))
	if got, want := string(readFrame(t, c, 2)), "\x00\x06salive"; got != want {
		t.Errorf("status %q, want %q", got, want)
	}
	c.Write([]byte("\x00\x06sfalse"))
	first.get()

	for range 20 {
		second := dial(t, n, "a@127.0.0.1")
		second.get()
		first.ended()
		second.get()
		first = second
	}
}

// A wrong cookie is refused and logged once, and the node keeps running.
func TestWrongCookie(t *testing.T) {
	log := new(logged)
	n := start(t, Options{Log: log.logger()})
	_, err := handshake.Start(dialRaw(t, n), n.Name(), handshake.Options{Node: "a@127.0.0.1", Cookie: "guess"})
	if err == nil {
		t.Error("a peer with a wrong cookie connected")
	}
	dial(t, n, "b@127.0.0.1").get()
	await(t, "the wrong cookie is logged", func() bool { return strings.Contains(log.String(), "wrong cookie") })
	if got := strings.Count(log.String(), "a@127.0.0.1"); got != 1 {
		t.Errorf("logged %d times: %s", got, log)
	}
}

// A peer with our own name is refused.
func TestOwnName(t *testing.T) {
	n := start(t, Options{})
	_, err := handshake.Start(dialRaw(t, n), n.Name(), handshake.Options{Node: n.Name(), Cookie: cookie})
	if !errors.Is(err, handshake.ErrRefused) || !strings.Contains(err.Error(), "not_allowed") {
		t.Errorf("Start returned %v", err)
	}
}

// Callers can connect at the same time.
func TestManyPeers(t *testing.T) {
	n := start(t, Options{})
	const peers = 50
	done := make(chan bool, peers)
	for i := range peers {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			defer func() { done <- true }()
			p := dial(t, n, fmt.Sprintf("p%d@127.0.0.1", i))
			for range 10 {
				p.get()
			}
		})
	}
}

// A connection uses one goroutine.
func TestGoroutines(t *testing.T) {
	n := start(t, Options{})
	const peers = 50
	before := runtime.NumGoroutine()
	for i := range peers {
		dial(t, n, fmt.Sprintf("a%d@127.0.0.1", i)).get()
	}
	awaitGoroutines(t, before+peers)
	if n.Connections() != peers {
		t.Errorf("%d nodes are connected", n.Connections())
	}
}

// When a node stops, the end of its processes is reported, and no goroutine or listener is left.
func TestStop(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Setenv("ERL_EPMD_PORT", freePort(t))
	t.Setenv("PATH", "") // without epmd
	epmdAddr := "127.0.0.1:" + os.Getenv("ERL_EPMD_PORT")

	n, err := Start(context.Background(), filled(t, Options{Keeper: auto()}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := epmd.Lookup(t.Context(), epmdAddr, "flake"); err != nil {
		t.Error(err)
	}
	p := dial(t, n, "a@127.0.0.1")
	names := []etf.Atom{"flake", "flake_sup", "kernel_sup"}
	for i, name := range names {
		p.send(monitor(p.pid, name, etf.NewRef("a@127.0.0.1", 77, uint32(i))))
	}
	p.get()
	silent := dialRaw(t, n)

	n.Stop()
	received := make(map[string]bool)
	for range names {
		control, _ := p.recv()
		received[control] = true
	}
	for i, name := range names {
		if want := fmt.Sprintf("{21,%s,<0.9.0>,#Ref<0.%d>,shutdown}", name, i); !received[want] {
			t.Errorf("the peer received %v, want %s", received, want)
		}
	}
	p.ended()
	silent.Close()
	awaitGoroutines(t, before)
	for what, addr := range map[string]string{"node": n.Addr().String(), "EPMD": epmdAddr} {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			t.Errorf("%s: the port is open", what)
		}
	}
	n.Stop() // again
}

// When a connection ends, a running node keeps no goroutines for it.
func TestDisconnect(t *testing.T) {
	n := start(t, Options{})
	dial(t, n, "warm@127.0.0.1").conn.Close()
	await(t, "no node is connected", func() bool { return len(n.connections()) == 0 })
	before := runtime.NumGoroutine()
	for i := range 20 {
		p := dial(t, n, fmt.Sprintf("p%d@127.0.0.1", i))
		p.send(monitor(p.pid, etf.Atom("flake"), ref))
		p.get()
		p.conn.Close()
	}
	await(t, "no node is connected", func() bool { return len(n.connections()) == 0 })
	awaitGoroutines(t, before)
}

// Starting a node with a taken name fails, and does not disturb the other node.
func TestNameTaken(t *testing.T) {
	t.Setenv("ERL_EPMD_PORT", freePort(t))
	t.Setenv("PATH", "") // without epmd
	first := start(t, Options{Keeper: auto()})
	before := runtime.NumGoroutine()
	n, err := Start(context.Background(), filled(t, Options{Keeper: auto()}))
	if err == nil || !strings.Contains(err.Error(), `"flake"`) ||
		!strings.Contains(err.Error(), epmd.ErrNameTaken.Error()) {
		t.Errorf("Start returned %v, %v", n, err)
	}
	awaitGoroutines(t, before)

	second := start(t, Options{Name: "other@127.0.0.1", Keeper: auto()})
	if s := second.EPMD(); !s.Registered || s.Serving {
		t.Errorf("the second: %s", s)
	}
	dial(t, first, "a@127.0.0.1").get()
	second.Stop()
	await(t, "EPMD has unregistered the second node", func() bool {
		_, err := epmd.Lookup(t.Context(), first.EPMD().Addr, "other")
		return errors.Is(err, epmd.ErrNotFound)
	})
}

func TestStartRefused(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	before := runtime.NumGoroutine()
	for name, test := range map[string]struct {
		options Options
		message string
	}{
		"no host":         {Options{Name: "flake"}, "must be name@host"},
		"port taken":      {Options{Listen: taken.Addr().String()}, "address already in use"},
		"two of one name": {Options{Supervisors: append(flakeSup(nil), flakeSup(nil)...)}, "flake_sup"},
	} {
		n, err := Start(context.Background(), filled(t, test.options))
		if err == nil {
			n.Stop()
		}
		if err == nil || !strings.Contains(err.Error(), test.message) {
			t.Errorf("%s: %v, want %s", name, err, test.message)
		}
	}
	awaitGoroutines(t, before)
}

// When its context ends, the node ends immediately.
func TestContext(t *testing.T) {
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(context.Background())
	n, err := Start(ctx, filled(t, Options{}))
	if err != nil {
		t.Fatal(err)
	}
	p := dial(t, n, "a@127.0.0.1")
	p.get()
	cancel()
	p.ended()
	n.Stop()
	awaitGoroutines(t, before)
}

// freePort returns a port that is not open. The port is below the range from which the system
// chooses ports, so that no other test gets it.
func freePort(t *testing.T) string {
	t.Helper()
	for {
		port := strconv.Itoa(20_000 + rand.IntN(10_000))
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
		switch {
		case err == nil:
			l.Close()
			return port
		case !errors.Is(err, syscall.EADDRINUSE):
			t.Fatal(err)
		}
	}
}

// The answer to a forwarded call is sent to the caller.
func TestForwardedCall(t *testing.T) {
	n := start(t, Options{})
	relay, caller := dial(t, n, "relay@127.0.0.1"), dial(t, n, "caller@127.0.0.1")
	caller.get() // the caller is connected
	forwarded := func(from etf.Pid) etf.Tuple {
		return etf.Tuple{etf.Atom("$gen_call"), etf.Tuple{from, etf.Atom("tag")}, etf.Tuple{etf.Atom("get"), int64(1)}}
	}
	relay.send(regSend(relay.pid, "flake"), forwarded(caller.pid))
	if _, message := caller.recv(); message != "{tag,{error,badarg}}" {
		t.Errorf("the caller received %s", message)
	}
	relay.send(regSend(relay.pid, "flake"), forwarded(etf.NewPid("nobody@127.0.0.1", 1, 0, 1)))
	if _, message := relay.recv(); message != "{tag,{error,badarg}}" {
		t.Errorf("the forwarding peer received %s", message)
	}
}

// Function calls cannot be nested through rex, because each level would copy the arguments of all
// inner levels. Servers of other nodes cannot be called, even if those nodes are connected.
func TestCallsAreNotNested(t *testing.T) {
	n := start(t, Options{})
	call := func(server etf.Atom, request etf.Term) (etf.Term, error) {
		return n.fnCall([]etf.Term{server, request})
	}
	if reply, err := call("net_kernel", etf.Atom("nodename")); err != nil || reply != etf.Term(etf.Atom(name)) {
		t.Errorf("nodename: %v, %v", reply, err)
	}
	inner := etf.Tuple{etf.Atom("call"), etf.Atom("erlang"), etf.Atom("node"), etf.List{}, etf.Atom("user")}
	dial(t, n, "a@127.0.0.1").get()
	for what, refused := range map[string]struct{ server, request, reason etf.Term }{
		"nested":              {etf.Atom("rex"), inner, etf.Atom("notsup")},
		"of a connected node": {etf.Tuple{etf.Atom("x"), etf.Atom("a@127.0.0.1")}, inner, etf.Atom("notsup")},
	} {
		var exception *rpc.Exception
		_, err := n.fnCall([]etf.Term{refused.server, refused.request})
		if !errors.As(err, &exception) || exception.Reason != refused.reason {
			t.Errorf("%s: %v", what, err)
		}
	}
}
