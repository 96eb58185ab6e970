package main

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
)

// How a connection with an OTP node is set up depends on that node's flags.

func TestConnect(t *testing.T) {
	const long, short, six = nodeName, "flake@localhost", "flake@::1"
	v6 := func(flags ...string) []string {
		return append(flags, "-proto_dist", "inet6_tcp", "-kernel", "inet_dist_use_interface", "{0,0,0,0,0,0,0,1}")
	}
	for _, test := range []struct {
		what  string
		node  string
		flags []string
	}{
		{"long names", long, []string{"-name", "caller@127.0.0.1"}},
		{"short names", short, []string{"-sname", "caller@localhost"}},
		{"hidden", long, []string{"-name", "caller@127.0.0.1", "-hidden"}},
		{"hidden short", short, []string{"-sname", "caller@localhost", "-hidden"}},
		{"not listening", long, []string{"-name", "caller@127.0.0.1", "-dist_listen", "false"}},
		{"not listening, short", short, []string{"-sname", "caller@localhost", "-dist_listen", "false"}},
		{"IPv6", six, v6("-name", "caller@::1")},
		{"IPv6, hidden", six, v6("-name", "caller@::1", "-hidden")},
		{"IPv6, not listening", six, v6("-name", "caller@::1", "-dist_listen", "false")},
	} {
		t.Run(test.what, func(t *testing.T) {
			t.Parallel()
			n := startNode(t, "", "-name", test.node)
			n.erl(test.flags, "ping", "get", "functions")
		})
	}
}

// Neither side uses EPMD, because both know the port.
func TestNoEPMD(t *testing.T) {
	t.Parallel()
	none, port := freePort(t), freePort(t)
	n := startCommand(t, command, none, fmt.Sprintf("epmd = \"off\"\nlisten = \"127.0.0.1:%s\"", port))
	if want := "not registered: EPMD is off"; n.epmd != want {
		t.Errorf("announced %q, want %q", n.epmd, want)
	}
	n.erl([]string{"-name", "caller@127.0.0.1", "-dist_listen", "false", "-erl_epmd_port", port}, "ping",
		"get", "functions")
	mustBeClosed(t, "127.0.0.1:"+none)
}

// A caller that was killed, or cut off silently, can reconnect under its name immediately.
func TestReturn(t *testing.T) {
	t.Parallel()
	n := startNode(t, "")
	flags := []string{"-name", "caller@127.0.0.1", "-dist_listen", "false"}
	for _, end := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		caller := spawnErl(t, n.port, flags, "silent")
		caller.await("READY")
		caller.signal(end)
		n.erl(flags, "ping", "get")
	}
}

// Both sides dial at the same time.
func TestCollide(t *testing.T) {
	s, port := startHere(t)
	defer s.Stop()
	const times = 30
	for _, prefix := range []string{"a", "z"} { // sorted before and after our name
		dir := t.TempDir()
		check := fmt.Sprintf("collide=%s,%d,%s", prefix, times, dir)
		caller := spawnErl(t, port, []string{}, check)
		for i := range times {
			name := fmt.Sprintf("%s%d@127.0.0.1", prefix, i+1)
			caller.await("READY " + name)
			if err := s.Node.Connect(name); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			writeFile(t, filepath.Join(dir, name), "")
		}
		wantChecks(t, caller, check)
	}
}
