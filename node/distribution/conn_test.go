package distribution

import (
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
	"github.com/flake-go/flake/node/latency"
	"github.com/flake-go/flake/node/wire"
)

// failing is a stream that fails once, in a given operation.
type failing struct {
	net.Conn
	mu   sync.Mutex
	next string        // the operation that fails next
	hold chan struct{} // unless nil, Write waits for it even if the stream is closed
	slow time.Duration // how long SetReadDeadline takes
}

func (f *failing) fail(operation string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next = operation
}

func (f *failing) fails(operation string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next != operation {
		return nil
	}
	f.next = ""
	return errors.New(operation + " fails")
}

func (f *failing) Write(b []byte) (int, error) {
	if f.hold != nil {
		<-f.hold
	}
	if err := f.fails("write"); err != nil {
		return 0, err
	}
	return f.Conn.Write(b)
}

func (f *failing) SetReadDeadline(d time.Time) error {
	time.Sleep(f.slow) // virtual time
	return errors.Join(f.fails("read deadline"), f.Conn.SetReadDeadline(d))
}

func (f *failing) SetWriteDeadline(d time.Time) error {
	return errors.Join(f.fails("write deadline"), f.Conn.SetWriteDeadline(d))
}

// connectFailing returns a rig whose stream is f.
func connectFailing(t *testing.T, f *failing) *rig {
	r := newRig(t, ticktime)
	r.stream = func(c net.Conn) net.Conn {
		f.Conn = c
		return f
	}
	r.connectTo(there, flags)
	go r.listen()
	synctest.Wait()
	return r
}

// Any failure of a stream ends the connection, because a part of a write may have arrived.
func TestStreamFails(t *testing.T) {
	call := frame(etf.Tuple{number(wire.OpSend), etf.Atom(""), ours}, old)
	for name, test := range map[string]struct {
		operation string
		do        func(r *rig)
	}{
		"when a signal is answered":     {"write", func(r *rig) { r.send(monitorP(gone, ref3)) }},
		"when much is answered":         {"write", func(r *rig) { r.send(call, monitorP(gone, ref3)) }},
		"when another goroutine sends":  {"write", func(r *rig) { r.conn.say(old) }},
		"when we tick":                  {"write", func(*rig) { time.Sleep(ticktime / 4) }},
		"when we set a read deadline":   {"read deadline", func(r *rig) { r.send(tick); time.Sleep(ticktime / 4) }},
		"when we set a tick's deadline": {"write deadline", func(*rig) { time.Sleep(ticktime / 4) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var f failing
				r := connectFailing(t, &f)
				r.local.flake.receive = func(c *Message) error {
					c.Send([]byte(theirs), nil, make([]byte, fullOutput))
					return nil
				}
				f.fail(test.operation)
				test.do(r)
				if r.alive() {
					t.Error("the connection is not closed")
					r.close()
				}
				r.logged(test.operation + " fails")
				if r.blame != "" {
					t.Errorf("the peer is blamed for %q", r.blame)
				}
			})
		})
	}
}

// A stream whose first deadline cannot be set is not served.
func TestFirstDeadlineFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := failing{next: "read deadline", slow: time.Second}
		r := connectFailing(t, &f)
		r.send(frame(etf.Tuple{number(wire.OpSend), etf.Atom(""), ours}, old)) // blocks until the connection is closed
		if r.alive() {
			t.Error("the connection is not closed")
			r.close()
		}
		r.logged("read deadline fails")
		if got := r.local.flake.take(); got != "" {
			t.Errorf("flake received %s, want nothing", got)
		}
	})
}

// A connection does not end while another goroutine writes to its stream.
func TestEndsAfterWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := failing{hold: make(chan struct{})}
		r := connectFailing(t, &f)
		r.conn.say(old)
		synctest.Wait()
		r.peer.Close()
		if !r.alive() {
			t.Error("the connection is closed during a write")
		}
		close(f.hold)
		if r.alive() {
			t.Error("the connection is not closed")
		}
		if r.logged("closed by peer"); r.blame != "" {
			t.Errorf("the peer is blamed for %q", r.blame)
		}
	})
}

// An ended connection holds no memory, and takes none for later messages or signals.
func TestEndHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := connectDeaf(t, flags)
		c := r.conn
		large := make([]byte, 2*ownOutput)
		for i := range 2 * ownWatches / watchSize {
			r.send(monitorP(etf.Atom("flake"), refOf(i)))
		}
		r.send(frame(etf.Tuple{number(wire.OpSend), etf.Atom(""), ours}, external(make([]byte, 8*ownInput)))[:6*ownInput])
		for range 2 { // the first is being written, and the second waits
			synctest.Wait()
			r.tell(large)
		}
		synctest.Wait()
		if in, out, watches := c.in.account.taken, c.out.account.taken, c.watches.account.taken; in == 0 || out == 0 ||
			watches == 0 {
			t.Errorf("%d, %d and %d bytes are held for input, output and watches, want some for each", in, out, watches)
		}
		r.close()
		if c.ticker.Stop() {
			t.Error("ticks continue after the end")
		}
		if c.tickNow(); c.ticker.Stop() { // a late tick
			t.Error("ticks continue after a late one")
		}
		for range 2 {
			if held := r.proto.pool.held.Load(); held != 0 || c.out.waits() != 0 || c.in.buf != nil {
				t.Errorf("%d bytes are held, with %d of output and %d of input", held, c.out.waits(), len(c.in.buf))
			}
			r.tell(large)
			r.end(ourID, "killed")
		}
	})
}

// A panic while an answer is built on another goroutine is only logged.
func TestFaultAside(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		r.conn.aside(func(*Message) {})
		synctest.Wait()
		if log := r.log.take(); strings.Contains(log, "fault") {
			t.Error(log)
		}
		r.conn.aside(func(*Message) { panic("fault") })
		r.logged("fault in the node")
		r.send(monitorP(gone, ref3))
		r.want(down(gone, ref3, "noproc"))
	})
}

// A call is timed until its answer is sent, whether the reader or another goroutine built it.
func TestLatency(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		gate := make(chan struct{})
		r.answersLate(gate)
		r.send(
			ask("$gen_call", theirs, "flake", 1, "soon"), ask("$gen_call", theirs, "flake", 2, "late"),
			ask("$gen_call", theirs, "flake", 3, "soon"), ask("$gen_call", theirsToo, "flake", 4, "late"),
			ask("$gen_call", theirs, "flake", 5, "wrong"),
		)
		time.Sleep(30 * time.Millisecond) // virtual time
		close(gate)
		if got := len(r.received()); got != 4 {
			t.Errorf("%d answers, want 4", got)
		}
		r.logged("message dropped")
		r.send(ask("$gen_call", theirs, "flake", 6, "soon"))
		r.received()
		got, want := r.proto.Latency(), map[time.Duration]uint64{latency.Bounds[0]: 2, 50 * time.Millisecond: 3}
		for i, bound := range latency.Bounds {
			if got.Calls[i] != want[bound] {
				t.Errorf("%d calls within %v, want %d", got.Calls[i], bound, want[bound])
			}
		}
		if got.Sum != 0.09 {
			t.Errorf("the total is %v s, want 0.09 s", got.Sum)
		}
	})
}

// A call is timed from the arrival of the first call in the same read, not in an earlier read.
func TestLatencyOfRead(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		r.local.flake.receive = func(m *Message) error {
			m.Send([]byte(theirs), nil, m.Term())
			time.Sleep(10 * time.Millisecond) // virtual time
			return nil
		}
		for range 2 {
			time.Sleep(time.Second)
			r.send(ask("$gen_call", theirs, "flake", 1, "x"), ask("$gen_call", theirs, "flake", 2, "x"))
			time.Sleep(time.Second)
		}
		r.received()
		if got := r.proto.Latency().Sum; got != 0.08 {
			t.Errorf("4 calls take %v s, want 20 ms each", got)
		}
	})
}

// The buffer of an answer is kept for the next answer until a tick arrives, unless it is large or
// there is no room.
func TestScratch(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		answer := func(size int) (kept int) {
			t.Helper()
			r.local.flake.receive = func(m *Message) error {
				m.Send([]byte(theirs), nil, append(m.Buffer(), external(make([]byte, size))...))
				return nil
			}
			r.send(ask("$gen_call", theirs, "flake", 1, "x"))
			r.received()
			return cap(r.conn.scratch)
		}
		spare := &r.proto.pool.spare
		others := int64(MaxSpare) - spare.Load()
		spare.Add(others)
		if kept := answer(4 * ownSpare); kept != 0 {
			t.Errorf("without room, %d bytes are kept", kept)
		}
		spare.Add(-others)
		if kept := answer(4 * ownSpare); kept < 4*ownSpare || r.conn.kept.taken == 0 {
			t.Errorf("%d bytes are kept, %d counted", kept, r.conn.kept.taken)
		}
		if kept := answer(2 * fullOutput); kept > fullOutput {
			t.Errorf("%d bytes are kept", kept)
		}
		r.send(tick)
		if synctest.Wait(); r.conn.scratch != nil || r.conn.kept.taken != 0 {
			t.Errorf("%d bytes are kept after a tick, %d counted", cap(r.conn.scratch), r.conn.kept.taken)
		}
		before := r.proto.Held()
		r.proto.pool.take(3)
		spare.Add(5)
		if got := r.proto.Held(); got != before+8 {
			t.Errorf("%d bytes are held, want %d", got, before+8)
		}
		r.proto.pool.give(3)
		spare.Add(-5)
		answer(4 * ownSpare) // is released when the connection ends
	})
}

// Consecutive connections use different histograms.
func TestHistograms(t *testing.T) {
	p, seen := quiet().proto, map[*latency.Histogram]bool{}
	for range 2 * histograms {
		seen[p.New(t.Context(), nil, handshake.Peer{Name: there}).calls.took] = true
	}
	if len(seen) != histograms {
		t.Errorf("%d histograms are used, want %d", len(seen), histograms)
	}
}
