// Package systemd reports the node's state to a service manager, as sd_notify(3) describes.
//
// Start at [Open].
package systemd

import (
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Notifier reports to a service manager, using the assignments of sd_notify(3). If there is no
// service manager, its methods do nothing.
type Notifier struct {
	conn     net.Conn
	Watchdog time.Duration // how often the service manager expects WATCHDOG=1; 0: never
}

// Open reads the service manager's variables in the environment and removes them, so that
// programs started by the node do not see them. The socket that they name may be abstract.
func Open(log *slog.Logger) *Notifier {
	take := func(name string) string { defer os.Unsetenv(name); return os.Getenv(name) }
	path, usec, pid := take("NOTIFY_SOCKET"), take("WATCHDOG_USEC"), take("WATCHDOG_PID")
	n := &Notifier{}
	if path == "" {
		return n
	}
	conn, err := net.Dial("unixgram", path) // a leading @ means an abstract socket, as in Go
	if err != nil {
		log.Warn("the node cannot report its state to the service manager", "err", err)
		return n
	}
	n.conn = conn
	if us, err := strconv.ParseInt(usec, 10, 64); err == nil && (pid == "" || pid == strconv.Itoa(os.Getpid())) {
		n.Watchdog = time.Duration(us) * time.Microsecond
	}
	return n
}

// Say sends lines such as READY=1 in one message. It ignores errors: the service manager either
// manages without the lines or ends the node.
func (n *Notifier) Say(lines ...string) {
	if n.conn != nil {
		n.conn.SetWriteDeadline(time.Now().Add(time.Second))
		n.conn.Write([]byte(strings.Join(lines, "\n")))
	}
}

// extend returns the line that asks for more time to start or stop.
func extend(d time.Duration) string {
	return "EXTEND_TIMEOUT_USEC=" + strconv.FormatInt(d.Microseconds(), 10)
}

const (
	// startBeat is the interval at which the node reports that it is still starting, while it
	// waits for the clock or for the store. With each report it asks for startPatience more time.
	startBeat     = 5 * time.Second
	startPatience = 4 * startBeat

	// stopTime is longer than the node needs to stop.
	stopTime = 30 * time.Second
)

// Starting asks for more time to start, repeatedly, until started is called.
func (n *Notifier) Starting() (started func()) {
	done := make(chan struct{})
	var reports sync.WaitGroup
	reports.Go(func() {
		for beat := time.Tick(startBeat); ; {
			n.Say(extend(startPatience), "STATUS=starting")
			select {
			case <-beat:
			case <-done:
				return
			}
		}
	})
	return func() { close(done); reports.Wait() }
}

// Reloading reports that a reload begins, with the current time.
func (n *Notifier) Reloading() {
	n.Say("RELOADING=1", "MONOTONIC_USEC="+strconv.FormatInt(monotonic().Microseconds(), 10),
		"STATUS=reloading the configuration")
}

// Ready reports that the node is serving, with a description of its state.
func (n *Notifier) Ready(text string) { n.Say("READY=1", "STATUS="+text) }

// Stopping reports that the node will stop, after a delay.
func (n *Notifier) Stopping(after time.Duration) {
	n.Say("STOPPING=1", "STATUS=stopping", extend(after+stopTime))
}

// Close ends the connection to the service manager.
func (n *Notifier) Close() {
	if n.conn != nil {
		n.conn.Close()
	}
}
