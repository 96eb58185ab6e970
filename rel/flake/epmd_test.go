package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/flake-go/flake/internal/testenv"
	"github.com/flake-go/flake/node/epmd"
)

// Silent connections to our EPMD do not keep other nodes from finding this one.
func TestOwnEPMD(t *testing.T) {
	t.Parallel()
	n := startNode(t, "")
	if want := "registered with its own EPMD at 127.0.0.1:" + n.port; n.epmd != want {
		t.Errorf("announced %q, want %q", n.epmd, want)
	}
	for range 1200 { // more than may wait to be accepted
		c, err := net.Dial("tcp", "127.0.0.1:"+n.port)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	wantNames(t, n)
	n.erl(nil, "ping")
}

func TestNameTaken(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	startEPMD(t, port)
	first := startNode(t, port)
	for _, n := range []*flakeNode{first, startNode(t, "")} {
		second := spawn(t, n.port, command, "-noinput", "-config", configFile(t, ""))
		if status := second.wait(); status != exitFailure {
			t.Errorf("exit status %d, want %d", status, exitFailure)
		}
		want := fmt.Sprintf("register %q at 127.0.0.1:%s: a node of that name is already registered\n", "flake", n.port)
		if got := second.output(); !strings.Contains(got, "\nflake: node "+nodeName+": ") || !strings.HasSuffix(got, want) {
			t.Errorf("got  %swant %s", got, want)
		}
		n.erl(nil, "get")
	}
}

// When the EPMD ends, the node leaves the EPMD's port free for a while. When the EPMD starts again,
// the node registers again.
func TestEPMDRestarted(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	d := startEPMD(t, port)
	n := startNode(t, port)
	d.kill()
	await(t, "the node finds no EPMD", func() bool { return strings.Contains(n.output(), "connection refused") })
	startEPMD(t, port)
	awaitNode(t, port, "flake")
	wantNames(t, n)
	if strings.Contains(n.output(), "EPMD of its own") {
		t.Error("the EPMD was replaced")
	}
	n.erl(nil, "ping", "get")
}

// If OTP's EPMD is installed, the node starts it, as erl does, and leaves it running.
func TestEPMDStarted(t *testing.T) {
	t.Parallel()
	testenv.Need(t, "epmd")
	port := freePort(t)
	p := spawn(t, port, "env", "PATH="+os.Getenv("PATH"), command, "-noinput", "-config", configFile(t, ""))
	defer func() {
		kill := spawn(t, port, "epmd", "-kill")
		if kill.wait(); kill.output() != "Killed\n" {
			t.Errorf("epmd -kill: %s", kill.output())
		}
	}()
	if epmd, want := p.await("  EPMD "), "registered with the EPMD at 127.0.0.1:"+port; epmd != want {
		t.Errorf("announced %q, want %q", epmd, want)
	}
	p.signal(syscall.SIGTERM)
	p.wait()
	await(t, "the node is unregistered", func() bool { return len(epmdNames(t, port)) == 0 })
}

// A node whose name has the address of another machine says so.
func TestHostOfAnotherMachine(t *testing.T) {
	t.Parallel()
	n := spawn(t, freePort(t), command, "-noinput", "-config",
		configFile(t, "name = 'flake@192.0.2.1'\ncookie = 'own'\nlisten = '127.0.0.1:0'"))
	n.awaitText("no address of this machine")
}

// While startup waits, here for etcd, other nodes can use its EPMD.
func TestEPMDBeforeStart(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	n := spawn(t, port, command, "-noinput", "-config", etcdConfig(t, []string{"127.0.0.1:" + freePort(t)}, etcdHold, ""))
	n.awaitText("waiting for a worker id")
	if names := epmdNames(t, port); len(names) > 0 {
		t.Errorf("names registered before the node started: %q", names)
	}
}

// Erlang nodes start Erlang's own EPMD, which exits while our EPMD has the port. Once ours has
// ended, Erlang's is used.
func TestEPMDLater(t *testing.T) {
	t.Parallel()
	first := startNode(t, "")
	caller := spawnErl(t, first.port, []string{"-name", "friend@127.0.0.1", "-start_epmd", "true"}, "silent")
	caller.await("READY")
	awaitNode(t, first.port, "friend")
	if status := spawn(t, first.port, "epmd", "-address", "127.0.0.1").wait(); status != 0 {
		t.Errorf("the second EPMD: exit status %d", status)
	}
	first.signal(syscall.SIGTERM)
	first.wait()
	d := startEPMD(t, first.port)
	second := startNode(t, first.port)
	if want := "registered with the EPMD at 127.0.0.1:" + d.port; second.epmd != want {
		t.Errorf("announced %q, want %q", second.epmd, want)
	}
	second.erl(nil, "ping", "get")
}

// An IPv6 node registers with our EPMD, even though our node has an IPv4 address.
func TestEPMDOverIPv6(t *testing.T) {
	t.Parallel()
	n := startNode(t, "")
	caller := spawnErl(t, n.port, []string{"-name", "six@::1", "-proto_dist", "inet6_tcp",
		"-kernel", "inet_dist_use_interface", "{0,0,0,0,0,0,0,1}"}, "up")
	caller.await("READY")
	awaitNode(t, n.port, "six")
}

// realEPMD is OTP's EPMD on its own port.
type realEPMD struct {
	*process
	port string
}

func startEPMD(t *testing.T, port string) realEPMD {
	t.Helper()
	d := realEPMD{spawn(t, port, "epmd", "-address", "127.0.0.1"), port}
	await(t, "EPMD listens", func() bool {
		c, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return d
}

func (d realEPMD) names() []string { return epmdNames(d.t, d.port) }

func (d realEPMD) kill() {
	d.t.Helper()
	d.signal(syscall.SIGKILL)
	d.wait()
}

// awaitNode waits until a name is registered with any EPMD at the port.
func awaitNode(t *testing.T, port, name string) {
	t.Helper()
	await(t, name+" is registered", func() bool {
		_, err := epmd.Lookup(t.Context(), "127.0.0.1:"+port, name)
		return err == nil
	})
}

var named = regexp.MustCompile(`(?m)^name .*$`)

// epmdNames returns what epmd -names prints for the EPMD at a port.
func epmdNames(t *testing.T, port string) []string {
	t.Helper()
	testenv.Need(t, "epmd")
	cmd := exec.Command("epmd", "-names")
	cmd.Env = append(os.Environ(), "ERL_EPMD_PORT="+port)
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("epmd -names: %v\n%s", err, out)
	}
	return named.FindAllString(string(out), -1)
}

func wantNames(t *testing.T, n *flakeNode) {
	t.Helper()
	_, port, _ := net.SplitHostPort(n.addr)
	want := []string{"name flake at port " + port}
	if got := epmdNames(t, n.port); !slices.Equal(got, want) {
		t.Errorf("epmd -names: got %q, want %q", got, want)
	}
}
