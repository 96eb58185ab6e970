package main

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/reserve"
)

// However many connections are opened, on any port, the time is saved and connected callers get
// ids. Other callers are admitted once these connections are closed. Connections to HTTP or EPMD
// do not keep other callers out even while they are open.
func TestFewFiles(t *testing.T) {
	t.Parallel()
	n := startCommand(t, script(t, "ulimit -n %d; exec %q \"$@\"", reserve.Needed, command), "",
		fmt.Sprintf("cookie = %q\n[http]\nlisten = \"127.0.0.1:0\"", cookie))
	config := n.cmd.Args[slices.Index(n.cmd.Args, "-config")+1]
	timestamp := func() string { return readFile(t, filepath.Join(filepath.Dir(config), "timestamp")) }
	caller, err := n.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer caller.Close()
	http := strings.Trim(n.await("  HTTP "), "htp:/")
	var idle []net.Conn
	flood := func(addr string) {
		for range 2 * reserve.Needed {
			idle = append(idle, dial(t, addr))
		}
	}
	flood(http)
	flood("127.0.0.1:" + n.port)
	n.erl(nil, "ping", "get", "concurrent")
	flood(n.addr)
	for range 5 { // for a second each; the time is saved 3 s ahead
		before := timestamp()
		await(t, "the time is saved", func() bool { return timestamp() != before })
		reply, err := caller.Call(t.Context(), "flake", etf.Atom("get"))
		if answer, ok := reply.(etf.Tuple); !ok || len(answer) != 2 || answer[0] != etf.Atom("ok") {
			t.Errorf("a call failed: %v, %v", reply, err)
		}
	}
	if strings.Contains(n.output(), "cannot be saved") {
		t.Error("there was a moment when the time could not be saved")
	}
	if !strings.Contains(n.output(), "fewer nodes can be connected than the limit allows") {
		t.Error("startup does not report that few files can be open")
	}
	for _, c := range idle {
		c.Close()
	}
	awaitNode(t, n.port, "flake")
	n.erl(nil, "ping", "get", "concurrent")
}

// A node that might later be unable to save the time refuses to start.
func TestTooFewFiles(t *testing.T) {
	t.Parallel()
	p := spawn(t, freePort(t), script(t, "ulimit -n 64; exec %q \"$@\"", command), "-noinput", "-config",
		configFile(t, ""))
	if code := p.wait(); code != exitFailure {
		t.Errorf("exit status %d, want %d", code, exitFailure)
	}
	const want = "flake: the limit of 64 open files is below the 256 that the node needs; "
	if !strings.HasPrefix(p.output(), want) {
		t.Errorf("got  %swant %s", p.output(), want)
	}
}
