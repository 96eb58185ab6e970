package epmd

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/flake-go/flake/internal/testenv"
)

// otpCommand returns a command of Erlang/OTP that uses the EPMD at port.
func otpCommand(t *testing.T, port uint16, name string, args ...string) *exec.Cmd {
	t.Helper()
	testenv.Need(t, name)
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("ERL_EPMD_PORT=%d", port), "HOME="+t.TempDir())
	return cmd
}

func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return string(out)
}

// startDaemon runs the real EPMD until stop is called or the test ends.
func startDaemon(t *testing.T, port uint16) (stop func()) {
	t.Helper()
	cmd := otpCommand(t, port, "epmd")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = func() { cmd.Process.Kill(); cmd.Wait() }
	t.Cleanup(stop)
	await(t, "epmd listens", func() bool {
		conn, err := net.Dial("tcp", JoinPort(loopback, port))
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return stop
}

// erlNode starts an Erlang node that runs eval and then waits for the end of its input.
func erlNode(t *testing.T, port uint16, name, eval string) (out *lineReader, stop func()) {
	t.Helper()
	cmd := otpCommand(t, port, "erl", "-name", name, "-setcookie", "c", "-noshell", "-eval",
		eval+`, io:get_line(""), halt().`)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = func() { stdin.Close(); io.Copy(io.Discard, stdout); cmd.Wait() }
	t.Cleanup(stop)
	return &lineReader{stdout}, stop
}

type lineReader struct{ r io.Reader }

func (l *lineReader) line(t *testing.T) string {
	t.Helper()
	var line strings.Builder
	for b := make([]byte, 1); ; {
		if _, err := l.r.Read(b); err != nil {
			t.Fatalf("after %q: %v", line.String(), err)
		}
		if b[0] == '\n' {
			return line.String()
		}
		line.Write(b)
	}
}

const printNames = `io:format("~p~n", [net_adm:names("127.0.0.1")])`

func TestOTPUsesOurServer(t *testing.T) {
	noLeak(t)
	ctx := testContext(t)
	port := freePort(t)
	k, _ := newKeeper(t, "flake", port)
	if err := startKeeper(ctx, k); err != nil {
		t.Fatal(err)
	}
	names := func() string { return output(t, otpCommand(t, port, "epmd", "-names")) }
	want := fmt.Sprintf("epmd: up and running on port %d with data:\nname flake at port 4711\n", port)
	if got := names(); got != want {
		t.Errorf("epmd -names: %q, want %q", got, want)
	}
	out, stop := erlNode(t, port, "peer@127.0.0.1", printNames)
	line := out.line(t)
	n, err := Lookup(ctx, k.State().Addr, "peer")
	if err != nil || n.Type != Normal || n.Highest != version6 {
		t.Errorf("Lookup = %+v, %v", n, err)
	}
	if want := fmt.Sprintf(`{ok,[{"flake",4711},{"peer",%d}]}`, n.Port); line != want {
		t.Errorf("net_adm:names: %s, want %s", line, want)
	}
	if got, want := names(), fmt.Sprintf("name peer at port %d\n", n.Port); !strings.Contains(got, want) {
		t.Errorf("epmd -names: %q", got)
	}
	cmd := otpCommand(t, port, "erl", "-name", "flake@127.0.0.1", "-setcookie", "c", "-noshell", "-eval", "halt().")
	if got, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(got), "in use") {
		t.Errorf("a second flake: %v, %s", err, got)
	}
	// None of these affects our server. The last one is a second daemon, whose port is in use.
	for _, args := range [][]string{{"-kill"}, {"-stop", "flake"}, nil} {
		got, _ := otpCommand(t, port, "epmd", args...).CombinedOutput()
		if _, err := Lookup(ctx, k.State().Addr, "flake"); err != nil {
			t.Errorf("after epmd %s, which printed %q: %v", args, got, err)
		}
	}
	stop()
	await(t, "peer is unregistered", func() bool {
		_, err := Lookup(ctx, k.State().Addr, "peer")
		return errors.Is(err, ErrNotFound)
	})
}

func TestOurNodeUsesTheDaemon(t *testing.T) {
	noLeak(t)
	ctx := testContext(t)
	port := freePort(t)
	stop := startDaemon(t, port)
	k, states := newKeeper(t, "flake", port)
	if err := startKeeper(ctx, k); err != nil {
		t.Fatal(err)
	}
	if s := k.State(); s.Serving {
		t.Errorf("state %+v, want Serving false", s)
	}
	rival, _ := newKeeper(t, "flake", port)
	if err := startKeeper(ctx, rival); !errors.Is(err, ErrNameTaken) {
		t.Errorf("the same name: %v", err)
	}
	out, _ := erlNode(t, port, "peer@127.0.0.1", printNames)
	line := out.line(t)
	n, err := Lookup(ctx, k.State().Addr, "peer")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf(`{ok,[{"flake",4711},{"peer",%d}]}`, n.Port); line != want {
		t.Errorf("net_adm:names: %s, want %s", line, want)
	}
	names, err := Names(ctx, k.State().Addr)
	if err != nil || len(names) != 2 {
		t.Errorf("Names = %v, %v", names, err)
	}
	stop()
	awaitState(t, states, "lost", func(s State) bool { return !s.Registered })
	awaitState(t, states, "registered with its own", func(s State) bool { return s.Registered && s.Serving })
	await(t, "the Erlang node has registered with our server", func() bool {
		_, err := Lookup(ctx, k.State().Addr, "peer")
		return err == nil
	})
}

// OTP's daemon is started if it is installed, and keeps running when the keeper ends. If it
// does not start, the keeper serves its own EPMD.
func TestDaemonIsStarted(t *testing.T) {
	testenv.Need(t, "epmd")
	noLeak(t)
	ctx := testContext(t)
	k, _ := newKeeper(t, "flake", freePort(t))
	k.program = "epmd"
	if err := k.Prepare(ctx); err != nil {
		t.Fatal(err)
	}
	defer func(port uint16) {
		if out := output(t, otpCommand(t, port, "epmd", "-kill")); out != "Killed\n" {
			t.Errorf("epmd -kill: %s", out)
		}
	}(k.Port)
	if err := startKeeper(ctx, k); err != nil || k.State().Serving {
		t.Errorf("state %v, error %v", k.State(), err)
	}
	k.Close()
	await(t, "flake is unregistered", func() bool {
		names, err := Names(ctx, JoinPort(loopback, k.Port))
		return err == nil && len(names) == 0
	})
	k, _ = newKeeper(t, "flake", freePort(t))
	k.program = "false"
	if err := startKeeper(ctx, k); err != nil || !k.State().Serving {
		t.Errorf("without a daemon: %v, %v", k.State(), err)
	}
}
