package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flake-go/flake/internal/certstest"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/rel/flake/cli"
)

func TestStop(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			port := freePort(t)
			epmd := startEPMD(t, port)
			n := startNode(t, port)
			caller := spawnErl(t, port, nil, "stop")
			caller.await("READY")

			n.signal(s)
			if status := n.wait(); status != 0 {
				t.Errorf("exit status %d", status)
			}
			wantChecks(t, caller, "stop")
			mustBeClosed(t, n.addr)
			await(t, "EPMD forgets the node", func() bool { return len(epmd.names()) == 0 })
		})
	}
}

func TestStopTLS(t *testing.T) {
	t.Parallel()
	ca := certstest.NewCA(t, "ca")
	n, _ := startTLSNode(t, tlsTable(ca, "none"))
	caller := spawnErl(t, n.port, distConf{trusts: ca}.flags(t, "caller"), "stop")
	caller.await("READY")
	n.signal(syscall.SIGTERM)
	if status := n.wait(); status != 0 {
		t.Errorf("exit status %d", status)
	}
	wantChecks(t, caller, "stop")
}

// A second signal ends the process immediately, however soon it follows the first.
func TestSecondSignal(t *testing.T) {
	signals := make(chan os.Signal, 2)
	signals <- syscall.SIGTERM
	signals <- syscall.SIGTERM
	code := make(chan int)
	ctx := cli.UntilSignal(signals, func(c int) { code <- c })
	if c := <-code; c != 128+int(syscall.SIGTERM) {
		t.Errorf("exit status %d", c)
	}
	if want := "terminated signal received"; ctx.Err() == nil || context.Cause(ctx).Error() != want {
		t.Errorf("%v, want %s", context.Cause(ctx), want)
	}
}

// Under nohup, SIGHUP stays ignored: it neither ends the node nor reloads the configuration.
func TestNohup(t *testing.T) {
	t.Parallel()
	n := startCommand(t, script(t, "trap '' HUP\nexec %q \"$@\"", command), "", fmt.Sprintf("cookie = %q", cookie))
	n.signal(syscall.SIGHUP)
	n.erl(nil, "ping", "get")
	n.signal(syscall.SIGTERM)
	if status := n.wait(); status != 0 || strings.Contains(n.output(), "reloaded") {
		t.Errorf("exit status %d\n%s", status, n.output())
	}
}

// However slowly a peer reads, the node stops and lowers its mark, so the next start need
// not wait.
func TestStopWithSlowPeers(t *testing.T) {
	for name, parts := range map[string]int{"deaf": 0, "slow, then deaf": 24} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := configFile(t, "net_ticktime = 3600")
			n := spawn(t, freePort(t), command, "-noinput", "-config", config)
			addr := n.await("  address ")
			peer := &attacker{Conn: dialAs(t, addr, "slow@127.0.0.1"), self: etf.NewPid("slow@127.0.0.1", 9, 0, 1)}
			peer.Conn.(*net.TCPConn).SetReadBuffer(128 << 10) // so that its answer does not fit
			peer.bulk()(1)
			part := make([]byte, 128<<10)
			if _, err := io.ReadFull(peer, part); err != nil {
				t.Fatal(err)
			}
			n.signal(syscall.SIGTERM)
			for range parts {
				time.Sleep(20 * time.Millisecond) // the peer is slow
				io.ReadFull(peer, part)
			}
			if status := n.wait(); status != 0 {
				t.Errorf("exit status %d", status)
			}
			var mark int64
			text := readFile(t, filepath.Join(filepath.Dir(config), "timestamp"))
			_, slot, _ := strings.Cut(text, `"milli":`)
			if _, err := fmt.Sscan(strings.TrimRight(strings.SplitN(slot, "}", 2)[0], ",}"), &mark); err != nil {
				t.Fatal(err)
			}
			if now := time.Now().UnixMilli(); mark > now {
				t.Errorf("the mark is %d ms ahead", mark-now)
			}
		})
	}
}
