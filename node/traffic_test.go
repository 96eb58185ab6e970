package node

import (
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/flake-go/flake/node/distribution"
	"github.com/flake-go/flake/node/handshake"
	"github.com/flake-go/flake/node/traffic"
)

// Traffic is counted, and the counts are kept when peers have left.
func TestTraffic(t *testing.T) {
	n := start(t, Options{})
	p := dial(t, n, "b@127.0.0.1")
	dial(t, n, "a@127.0.0.1").get()
	p.get()
	peers := n.Peers()
	slices.SortFunc(peers, func(a, b traffic.Peer) int { return strings.Compare(a.Name, b.Name) })
	if len(peers) != 2 || peers[0].Name != "a@127.0.0.1" || peers[0].Since.IsZero() || peers[0].IDs != 1 ||
		!strings.HasPrefix(peers[0].Address.String(), "127.0.0.1:") {
		t.Errorf("peers %+v", peers)
	}
	before := n.Traffic()
	await(t, "both calls are timed", func() bool { return n.Traffic().Latency.Total() == 2 })
	if before.Connections != 2 || before.Connected != 2 || before.Received == 0 || before.Sent == 0 {
		t.Errorf("traffic %+v", before)
	}

	p.conn.Write(binary.BigEndian.AppendUint32(nil, distribution.MaxFrame+1))
	p.ended()
	await(t, "one connection has ended", func() bool { return n.Traffic().Connections == 1 })
	after := n.Traffic()
	if after.Connected != 2 || after.Received < before.Received || after.Sent < before.Sent {
		t.Errorf("traffic %+v, and before the end %+v", after, before)
	}
	if want := map[string]uint64{"frame_too_long": 1}; !maps.Equal(after.Closes, want) {
		t.Errorf("closes: %v, want %v", after.Closes, want)
	}
}

func TestHandshakeFailures(t *testing.T) {
	n := start(t, Options{})
	dialRaw(t, n).Close()
	c := dialRaw(t, n)
	c.Write([]byte("\x00\x01?"))
	io.ReadAll(c)
	c = dialRaw(t, n)
	handshake.Start(c, n.Name(), handshake.Options{Node: "x@127.0.0.1", Creation: 1, Cookie: "wrong"})
	c = dialRaw(t, n)
	handshake.Start(c, n.Name(), handshake.Options{Node: n.Name(), Creation: 1, Cookie: "any"})
	want := map[string]uint64{"hung_up": 1, "malformed": 1, "wrong_cookie": 1, "refused": 1}
	await(t, "all failures are counted", func() bool { return maps.Equal(n.Traffic().HandshakeFailures, want) })
}

func TestFailureOf(t *testing.T) {
	for err, want := range map[error]string{
		errors.Join(errTLS, os.ErrDeadlineExceeded): "timeout",
		errors.Join(errTLS, errors.New("bad")):      "tls",
		errors.Join(errFault, io.EOF):               "fault",
		errHostFull:                                 "too_many_connections",
		errFull:                                     "too_many_connections",
		io.ErrUnexpectedEOF:                         "hung_up",
		errors.New("another"):                       "malformed",
	} {
		if got := failureOf(err); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
}

// No code allocates while it holds the lock of history.
func TestNoAllocationUnderLock(t *testing.T) {
	n := start(t, Options{})
	p := dial(t, n, "a@127.0.0.1")
	p.get()
	c := n.connection("a@127.0.0.1")
	p.conn.Write([]byte{0x7f, 0xff, 0xff, 0xff}) // a length beyond MaxFrame
	<-c.Done()
	for i := range reasons {
		n.history.HandshakeFailures[string(rune('a'+i))] = 1
		n.history.Closes[string(rune('a'+i))] = 1
	}
	for what, do := range map[string]func(){
		"adding up":               func() { n.Traffic() },
		"a failed handshake":      func() { p := newHistory(); p.failed("wrong_cookie"); p.failed("refused") },
		"the end of a connection": func() { p := newHistory(); p.down(c, "frame_too_long", func() {}) },
	} {
		empty := testing.AllocsPerRun(100, func() { kept = newHistory() })
		if got := testing.AllocsPerRun(100, do); got > empty {
			t.Errorf("%s: %v allocations, want the %v of newHistory", what, got, empty)
		}
	}
}

var kept *history
