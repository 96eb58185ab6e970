package main

import (
	"fmt"
	"io"
	"net"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/flake-go/flake/internal/testenv"
)

// A machine has its own network, disk and clock. Its network reaches the store through a link only.
type machine struct {
	t    *testing.T
	pid  string         // of the process that keeps the namespaces
	hold io.WriteCloser // the machine lasts until this is closed
	cmd  *exec.Cmd
	ns   int      // descriptor of the network namespace
	env  []string // of the commands of flake
}

// newMachine starts a machine with an empty file system at each of the given folders, or, if of is not nil, with those
// of another machine, as if over a network.
func newMachine(t *testing.T, of *machine, folders ...string) *machine {
	t.Helper()
	m := &machine{t: t}
	args := []string{"unshare", "-n", "-m", "--propagation", "private", "sh", "-c"}
	script := "ip link set lo up && "
	if of != nil {
		args = append([]string{"nsenter", "-t", of.pid, "-m"}, args...)
	} else {
		for _, folder := range folders {
			script += fmt.Sprintf("mount -t tmpfs -o size=16m,mode=700 none %s && ", folder)
		}
	}
	m.cmd = exec.Command(args[0], append(args[1:], script+"echo ready && exec cat")...)
	var errs strings.Builder
	m.cmd.Stderr = &errs
	m.hold, _ = m.cmd.StdinPipe()
	out, _ := m.cmd.StdoutPipe()
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	m.pid = fmt.Sprint(m.cmd.Process.Pid)
	var err error
	if _, err = out.Read(make([]byte, 8)); err == nil {
		m.ns, err = unix.Open("/proc/"+m.pid+"/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		testenv.Missing(t, fmt.Errorf("no namespaces for networks and mounts: %w: %s", err, &errs))
	}
	return m
}

func (m *machine) stop() {
	m.hold.Close()
	m.cmd.Wait()
	unix.Close(m.ns)
}

// within calls do on a thread in the machine's network.
func (m *machine) within(do func() error) error {
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		err := unix.Setns(m.ns, unix.CLONE_NEWNET)
		if err == nil {
			err = do()
		}
		failed <- err
	}()
	return <-failed
}

func (m *machine) listen(addr string) (l net.Listener) {
	m.t.Helper()
	if err := m.within(func() (err error) { l, err = net.Listen("tcp", addr); return err }); err != nil {
		m.t.Fatal(err)
	}
	return l
}

func (m *machine) dial(addr string) (c net.Conn, err error) {
	err = m.within(func() error { c, err = net.DialTimeout("tcp", addr, time.Second); return err })
	return c, err
}

// command returns a command that runs on the machine.
func (m *machine) command(args ...string) *exec.Cmd {
	return exec.Command("nsenter", append([]string{"-t", m.pid, "-n", "-m", "--"}, args...)...)
}

func (m *machine) sh(script string, args ...any) {
	m.t.Helper()
	if out, err := m.command("sh", "-c", fmt.Sprintf(script, args...)).CombinedOutput(); err != nil {
		m.t.Errorf("%s: %v, %s", fmt.Sprintf(script, args...), err, out)
	}
}

// path returns the path of one of the machine's files in this process's view.
func (m *machine) path(file string) string { return "/proc/" + m.pid + "/root" + file }
