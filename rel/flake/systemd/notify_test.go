package systemd

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Without a service manager, or if its socket is missing, the notifier does nothing. A watchdog for another process is
// ignored.
func TestOpenNotifier(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	for _, test := range []struct {
		socket, usec, pid string
		connected         bool
		watchdog          time.Duration
	}{
		{"", "", "", false, 0},
		{"", "1000", "", false, 0},
		{path + ".none", "1000", "", false, 0},
		{path, "", "", true, 0},
		{path, "x", "", true, 0},
		{path, "30000000", "", true, 30 * time.Second},
		{path, "30000000", fmt.Sprint(os.Getpid()), true, 30 * time.Second},
		{path, "30000000", "1", true, 0},
	} {
		t.Setenv("NOTIFY_SOCKET", test.socket)
		t.Setenv("WATCHDOG_USEC", test.usec)
		t.Setenv("WATCHDOG_PID", test.pid)
		n := Open(slog.New(slog.DiscardHandler))
		if (n.conn != nil) != test.connected || n.Watchdog != test.watchdog {
			t.Errorf("%+v: %+v", test, n)
		}
		n.Starting()()
		n.Ready("")
		n.Close()
		if _, is := os.LookupEnv("NOTIFY_SOCKET"); is {
			t.Error("NOTIFY_SOCKET is still set")
		}
	}
}
