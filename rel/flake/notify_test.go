package main

import (
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// manager is a service manager's socket.
type manager struct {
	*net.UnixConn
	t *testing.T
}

func startManager(t *testing.T, path string) manager {
	t.Helper()
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return manager{c, t}
}

// want reads messages until one matches, and returns it and the messages before it.
func (m manager) want(pattern string) (message string, before []string) {
	m.t.Helper()
	m.SetReadDeadline(time.Now().Add(patience))
	b := make([]byte, 4096)
	for {
		n, err := m.Read(b)
		if err != nil {
			m.t.Fatalf("%v, want %s after %q", err, pattern, before)
		}
		if message = string(b[:n]); regexp.MustCompile(`(?s)^` + pattern + `$`).MatchString(message) {
			return message, before
		}
		before = append(before, message)
	}
}

// The node reports startup, ids, a reload and shutdown to the service manager, even if nothing but
// the watchdog takes ids.
func TestNotify(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{"a path": filepath.Join(t.TempDir(), "notify"),
		"an abstract socket": "@flake-notify-" + freePort(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := startManager(t, path)
			p := startEnv(t, "NOTIFY_SOCKET="+path+"\nWATCHDOG_USEC=1000000") // messages are rare enough to be read in time
			_, before := m.want("READY=1\nSTATUS=hands out ids")
			if len(before) == 0 || before[0] != "EXTEND_TIMEOUT_USEC=20000000\nSTATUS=starting" {
				t.Errorf("before READY: %q", before)
			}
			m.want("WATCHDOG=1")
			m.want("WATCHDOG=1")
			begun := nanotime()
			p.signal(syscall.SIGHUP)
			message, _ := m.want("RELOADING=1\nMONOTONIC_USEC=[0-9]+\nSTATUS=reloading the configuration")
			var at int64
			fmt.Sscanf(message, "RELOADING=1\nMONOTONIC_USEC=%d", &at)
			if at < begun.Microseconds() || at > nanotime().Microseconds() {
				t.Errorf("MONOTONIC_USEC is %d, want at least %d, when SIGHUP was sent, and at most the current time", at,
					begun.Microseconds())
			}
			m.want("READY=1\nSTATUS=the configuration was reloaded")
			p.signal(syscall.SIGTERM)
			m.want("STOPPING=1\nSTATUS=stopping\nEXTEND_TIMEOUT_USEC=30000000")
			if status := p.wait(); status != 0 {
				t.Errorf("exit status %d", status)
			}
		})
	}
}

// startEnv starts the command with these variables, one per line.
func startEnv(t *testing.T, env string, node ...string) *process {
	t.Helper()
	return spawn(t, freePort(t), "env",
		append(strings.Split(env, "\n"), "PATH=", command, "-noinput", "-config", configFile(t, strings.Join(node, "\n")))...)
}

// A node that waits during startup, here for etcd, asks for more time. A node that fails to start never reports READY.
func TestNotifyStart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "notify")
	m := startManager(t, path)
	p := startEnv(t, "NOTIFY_SOCKET="+path, "[[generator]]", "name = 'a'", "format = 'snowflake'", "id = 'assigned'",
		"[etcd]", fmt.Sprintf("endpoints = [%q]", "127.0.0.1:"+freePort(t)),
		"[numbers]", "store = 'etcd'", "start_timeout = 6")
	const starting = "EXTEND_TIMEOUT_USEC=20000000\nSTATUS=starting"
	for range 2 {
		m.want(starting)
	}
	if status := p.wait(); status == 0 {
		t.Error("exit status 0, want a failure")
	}
	c, err := net.Dial("unixgram", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "END")
	_, before := m.want("END")
	for _, said := range before { // there are several if startup took a long time
		if said != starting {
			t.Errorf("got the message %q, want only %q", said, starting)
		}
	}
}

// After SIGTERM, a node first reports that it is not ready, and continues. After a second SIGTERM it stops
// immediately, however long the drain.
func TestDrain(t *testing.T) {
	t.Parallel()
	p := spawn(t, freePort(t), command, "-noinput", "-config",
		configFile(t, fmt.Sprintf("cookie = %q\ndrain_time = 3600\n[http]\nlisten = \"127.0.0.1:0\"", cookie)))
	addr, url := p.await("  address "), p.await("  HTTP ")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if status, _ := fetch(t, client, url+"readyz", ""); status != http.StatusOK {
		t.Errorf("/readyz before SIGTERM: status %d", status)
	}
	p.signal(syscall.SIGTERM)
	await(t, "/readyz reports that the node is stopping", func() bool {
		status, body := fetch(t, client, url+"readyz", "")
		return status == http.StatusServiceUnavailable && strings.Contains(body, "stopping")
	})
	if status, _ := fetch(t, client, url+"v1/ids", ""); status != http.StatusOK {
		t.Errorf("/v1/ids during the drain: status %d", status)
	}
	dialAs(t, addr, "caller@127.0.0.1").Close()
	p.signal(syscall.SIGTERM)
	if status := p.wait(); status != 128+int(syscall.SIGTERM) {
		t.Errorf("exit status %d", status)
	}
}

// Signals other than SIGTERM come from people who are waiting, so the node stops without a drain.
func TestInterruptDoesNotDrain(t *testing.T) {
	t.Parallel()
	n := startCommand(t, command, "", fmt.Sprintf("cookie = %q\ndrain_time = 3600", cookie))
	n.signal(syscall.SIGINT)
	if status := n.wait(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// nanotime returns the time of CLOCK_MONOTONIC.
func nanotime() time.Duration {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return time.Duration(t.Nano())
}
