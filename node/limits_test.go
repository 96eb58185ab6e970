package node

import (
	"fmt"
	"testing"

	"github.com/flake-go/flake/node/handshake"
	"github.com/flake-go/flake/node/reserve"
)

func TestWithin(t *testing.T) {
	const mb = 1 << 20
	for memory, want := range map[int64][3]int{ // connections, with TLS, percent
		1 * mb:    {42, 11, 2},
		28 * mb:   {298, 81, 15},
		57 * mb:   {917, 250, 48},
		115 * mb:  {2432, 663, 100},
		1000 * mb: {40192, 10961, 100},
	} {
		connections, percent := within(memory, false)
		secured, same := within(memory, true)
		if got := [3]int{connections, secured, percent}; got != want || same != percent {
			t.Errorf("%d MB: %v, want %v", memory/mb, got, want)
		}
	}
}

func TestRoom(t *testing.T) {
	const little = 28 << 20
	for _, tt := range []struct {
		o           Options
		connections int
		lacks       string
	}{
		{Options{Connections: 10}, 10, ""},
		{Options{Connections: 10, Memory: little}, 10, ""},
		{Options{Memory: little}, 298, "memory"},
		{Options{Memory: 1 << 50, Connections: 1 << 31}, reserve.Rest(filesOfOthers), "file descriptors (ulimit -n)"},
	} {
		connections, _, lacks := tt.o.room()
		if connections != tt.connections || lacks != tt.lacks {
			t.Errorf("%d of %d connections in %d bytes: %q, want %d, %q", connections, tt.o.Connections, tt.o.Memory, lacks, tt.connections, tt.lacks)
		}
	}
}

// The limits of connections hold for one host and for all.
func TestConnections(t *testing.T) {
	n := start(t, Options{Connections: 2, ConnectionsPerHost: 1})
	elsewhere := hostAt("192.0.2.1")
	n.gate.up(elsewhere)
	if err := n.gate.full(elsewhere); err != errHostFull {
		t.Errorf("one more of a host: %v, want %v", err, errHostFull)
	}
	dial(t, n, "a@127.0.0.1").get()
	dial(t, n, "b@127.0.0.1").ended()
	n.gate.down(elsewhere)
	dial(t, n, "c@127.0.0.1").get()
}

// When memory is used up, no node can connect until another leaves.
func TestLittleMemory(t *testing.T) {
	n := start(t, Options{Memory: 1})
	connections, _ := within(1, false)
	var last *peer
	for i := range connections {
		last = dial(t, n, fmt.Sprintf("a%d@127.0.0.1", i))
		last.get()
	}
	one := func() error {
		c := dialRaw(t, n)
		_, err := handshake.Start(c, n.Name(), handshake.Options{Node: "more@127.0.0.1", Creation: 77, Cookie: cookie})
		if err == nil {
			p := &peer{t, c, "", n}
			p.ended()
		}
		return err
	}
	if err := one(); err != nil {
		t.Error(err)
	}
	if got := n.Traffic().HandshakeFailures[failedFull]; got != 1 {
		t.Errorf("%d are refused, want 1", got)
	}
	last.conn.Close()
	await(t, "it has gone", func() bool { return n.Connections() < connections })
	dial(t, n, "more@127.0.0.1").get()
}
