package distribution

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/genserver"
	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/idserver/iderl"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
	"github.com/flake-go/flake/node/socket"
	"github.com/flake-go/flake/node/wire"
)

// This file measures the cost of calls as counts that are the same on every machine. A change
// that makes calls more or less expensive must change the counts.

type cost struct {
	allocs int // allocations per call
	reply  int // bytes per answer
}

var costs = map[string]struct {
	calls [][]byte // frames of one call
	want  cost
}{
	"get of OTP":      {otpCall(etf.Atom("get")), cost{allocs: 0, reply: 160}},
	"{get,62} of OTP": {otpCall(etf.Tuple{etf.Atom("get"), int64(62)}), cost{allocs: 0, reply: 160}},
	"get by pid of OTP": {[][]byte{
		monitorP(ours, ref4),
		frame(etf.Tuple{number(wire.OpSend), etf.Atom(""), ours}, external(callTerm(aliasOf(ref4), etf.Atom("get")))),
		frame(etf.Tuple{number(wire.OpDemonitorP), theirs, ours, ref4}),
	}, cost{allocs: 0, reply: 160}},
	"get of a C node": {[][]byte{regSend(ref3, etf.Atom("get"))}, cost{allocs: 0, reply: 106}},
}

// otpCall returns the frames that gen_server:call has sent since OTP 24.
func otpCall(request etf.Term) [][]byte {
	return [][]byte{
		monitorP(etf.Atom("flake"), ref4),
		regSend(aliasOf(ref4), request),
		frame(etf.Tuple{number(wire.OpDemonitorP), theirs, etf.Atom("flake"), ref4}),
	}
}

func regSend(tag, request etf.Term) []byte {
	return frame(etf.Tuple{number(wire.OpRegSend), theirs, etf.Atom(""), etf.Atom("flake")},
		external(callTerm(tag, request)))
}

func callTerm(tag, request etf.Term) etf.Term {
	return etf.Tuple{etf.Atom("$gen_call"), etf.Tuple{theirs, tag}, request}
}

func aliasOf(ref etf.Ref) etf.Term {
	return etf.ImproperList{Elements: []etf.Term{etf.Atom("alias")}, Tail: ref}
}

func TestCost(t *testing.T) {
	const (
		segments = 100 // segments in sequence
		calls    = 20  // calls in each segment
	)
	for name, c := range costs {
		t.Run(name, func(t *testing.T) {
			w := newStream(bytes.Repeat(bytes.Join(c.calls, nil), calls))
			conn := serving(t, w)
			w.arrive(t, conn, 10) // lets buffers grow to their final size
			before, given := conn.proto.Latency(), conn.Given()
			allocs := testing.AllocsPerRun(1, func() { w.arrive(t, conn, segments) })

			if got := int(allocs) / (segments * calls); got != c.want.allocs {
				t.Errorf("allocations per call: got %d, want %d", got, c.want.allocs)
			}
			if w.reads != segments || w.writes != segments {
				t.Errorf("%d segments took %d reads and %d writes, want one of each per segment", segments, w.reads, w.writes)
			}
			if got, want := w.answered, segments*calls; got != want {
				t.Errorf("answers: got %d, want %d", got, want)
			}
			latency := conn.proto.Latency().Since(before)
			if got := latency.Total(); got != 2*segments*calls || conn.Given()-given != got { // AllocsPerRun runs twice
				t.Errorf("%d calls are timed, %d ids counted, want %d", got, conn.Given()-given, 2*segments*calls)
			}
			if got, want := w.octets, segments*calls*c.want.reply; got != want {
				t.Errorf("octets per answer: got %v, want %d", float64(got)/(segments*calls), c.want.reply)
			}
		})
	}
}

// BenchmarkCall measures a call without system calls, for 1 and 64 calls in a segment.
func BenchmarkCall(b *testing.B) {
	for name, c := range costs {
		for _, calls := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/%d", name, calls), func(b *testing.B) {
				w := newStream(bytes.Repeat(bytes.Join(c.calls, nil), calls))
				conn := serving(b, w)
				b.ReportAllocs()
				b.ResetTimer()
				w.arrive(b, conn, b.N/calls+1)
			})
		}
	}
}

// serving returns a connection to an id server.
func serving(t testing.TB, w *stream) *Conn {
	ids, err := flake.NewGenerator(0x020000000001, flake.Options{})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	server := &genserver.Server{
		Name: "flake", Module: "flake_server", Pid: ours,
		Handler: &iderl.Handler{Server: &idserver.Server{IDs: formats.Flake(ids)}, Log: log},
	}
	local := newLocals()
	local.names["flake"].Receive = func(m *Message) error { return server.Receive(m.Term(), sender{m}) }
	p := newProto(local, slog.DiscardHandler)
	return p.New(context.Background(), w, handshake.Peer{Name: there, Flags: flags})
}

// sender is a genserver.Caller.
type sender struct{ *Message }

func (s sender) Later(f func(genserver.Caller)) { s.Message.Later(func(m *Message) { f(sender{m}) }) }

// stream is a net.Conn that delivers a segment repeatedly, and counts reads and writes.
type stream struct {
	net.Conn
	segment []byte
	rest    []byte // unread bytes of the segment
	left    int    // number of further segments

	reads, writes    int
	answered, octets int
}

func newStream(segment []byte) *stream { return &stream{segment: segment} }

// arrive delivers segments and waits until they are answered.
func (w *stream) arrive(t testing.TB, c *Conn, segments int) {
	w.left, w.reads, w.writes, w.answered, w.octets = segments, 0, 0, 0, 0
	if err := socket.Serve(c.conn, c.step); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
}

func (w *stream) Read(b []byte) (int, error) {
	if len(w.rest) == 0 {
		if w.left == 0 {
			return 0, io.EOF
		}
		w.left--
		w.rest = w.segment
	}
	w.reads++
	n := copy(b, w.rest)
	w.rest = w.rest[n:]
	return n, nil
}

func (w *stream) Write(b []byte) (int, error) {
	w.writes++
	w.octets += len(b)
	for rest := b; len(rest) >= wire.HeaderSize; w.answered++ {
		rest = rest[wire.HeaderSize+binary.BigEndian.Uint32(rest):]
	}
	return len(b), nil
}

func (w *stream) SetDeadline(time.Time) error      { return nil }
func (w *stream) SetReadDeadline(time.Time) error  { return nil }
func (w *stream) SetWriteDeadline(time.Time) error { return nil }
