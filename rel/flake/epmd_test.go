package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestOwnEPMD(t *testing.T) {
	t.Parallel()
	n := startNode(t, "")
	if want := "registered with the EPMD of its own at 127.0.0.1:" + n.port; n.epmd != want {
		t.Errorf("announced %q, want %q", n.epmd, want)
	}
	wantNames(t, n)
	n.erl(nil, "ping")
}

func TestRunningEPMD(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	startDaemon(t, port)
	n := startNode(t, port)
	if want := "registered with the EPMD at 127.0.0.1:" + port; n.epmd != want {
		t.Errorf("announced %q, want %q", n.epmd, want)
	}
	wantNames(t, n)
	n.erl(nil, "ping")
}

func TestNameTaken(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	startDaemon(t, port)
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

// daemon is the real EPMD on a port of its own.
type daemon struct {
	*process
	port string
}

func startDaemon(t *testing.T, port string) daemon {
	t.Helper()
	d := daemon{spawn(t, port, "epmd", "-address", "127.0.0.1"), port}
	await(t, "EPMD listens", func() bool {
		c, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return d
}

func (d daemon) names() []string { return epmdNames(d.t, d.port) }

var named = regexp.MustCompile(`(?m)^name .*$`)

// epmdNames is what the real program shows of the EPMD at a port.
func epmdNames(t *testing.T, port string) []string {
	t.Helper()
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
