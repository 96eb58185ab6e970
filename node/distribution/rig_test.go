package distribution

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
	"github.com/flake-go/flake/node/wire"
)

// Tests of connections run in bubbles of testing/synctest: time is virtual, and a test
// fails if a goroutine is left in its bubble.

const (
	here     = "flake@127.0.0.1"
	there    = "peer@127.0.0.1"
	creation = 0x6b00b5f2
	ticktime = time.Minute
	ourID    = 1001
	boxID    = 1 << 40

	// flags are the flags of a current peer, and scalang those of an old one.
	flags   = handshake.Offered
	scalang = 0x4dbc & handshake.Offered
)

var (
	ours      = etf.NewPid(here, 1001, 0, creation)
	oursOld   = oldPid(here, 1001, creation&3)
	gone      = etf.NewPid(here, 1002, 0, creation) // a pid of ours that no longer exists
	theirs    = etf.NewPid(there, 9, 1, 0x53a3c972)
	theirsToo = etf.NewPid(there, 10, 0, 0x53a3c972)
	ref3      = etf.NewRef(there, 0x53a3c972, 1, 2, 3)
	ref4      = etf.NewRef(there, 0x53a3c972, 1, 2, 3, 4)
	ref5      = etf.NewRef(there, 0x53a3c972, 1, 2, 3, 4, 0)
)

// oldPid returns a PID_EXT with an ATOM_EXT inside, as Scalang sends.
func oldPid(node string, id uint32, creation byte) etf.Pid {
	b := append([]byte{byte(etf.PidExt), byte(etf.AtomExt), 0, byte(len(node))}, node...)
	b = binary.BigEndian.AppendUint32(b, id)
	b = append(b, 0, 0, 0, 0)
	return etf.Pid(append(b, creation))
}

// oldRef returns a NEW_REFERENCE_EXT of three words.
func oldRef(node string, creation byte) etf.Ref {
	b := append([]byte{byte(etf.NewReferenceExt), 0, 3, byte(etf.AtomExt), 0, byte(len(node))}, node...)
	b = append(b, creation)
	return etf.Ref(append(b, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3))
}

// refOf returns reference i.
func refOf(i int) etf.Ref { return etf.NewRef(there, 0x53a3c972, uint32(i), 2, 3, 4, 5) }

// rig is a connection and the peer at its other end.
type rig struct {
	t      *testing.T
	conn   *Conn
	proto  *Proto
	peer   net.Conn
	local  *locals
	log    *journal
	stream func(net.Conn) net.Conn // wraps the stream, unless nil
	blame  string                  // why the connection ended, if the peer is to blame
	downs  int                     // how often its end was reported
	up     func(*Conn)             // called with a connection before it is served, or nil

	mu sync.Mutex
	in []byte // read by the peer, but not by the test
}

// connect returns a rig with a peer that reads.
func connect(t *testing.T, flags handshake.Flags) *rig {
	r := connectDeaf(t, flags)
	go r.listen()
	return r
}

// connectDeaf returns a rig with a peer that does not read.
func connectDeaf(t *testing.T, flags handshake.Flags) *rig {
	return connectWith(t, flags, ticktime)
}

func connectWith(t *testing.T, flags handshake.Flags, ticktime time.Duration) *rig {
	r := newRig(t, ticktime)
	r.connectTo(there, flags)
	synctest.Wait() // until the connection is served and all output written
	return r
}

func newRig(t *testing.T, ticktime time.Duration) *rig {
	r := &rig{t: t, local: newLocals(), log: new(journal)}
	r.proto = newProto(r.local, slog.NewTextHandler(r.log, nil))
	r.proto.NetTicktime = ticktime
	r.proto.Down = func(c *Conn, blame string) {
		if c.Context().Err() == nil {
			t.Error("the end of a connection was reported while it was served")
		}
		if c == r.conn {
			r.blame = blame
			r.downs++
		}
	}
	return r
}

// newProto returns a Proto that knows no other nodes and refuses no spawn.
func newProto(local *locals, log slog.Handler) *Proto {
	return &Proto{
		Node: here, Creation: creation, Processes: local, Log: slog.New(log),
		Refuse:     func(_, _ etf.Atom, _ []etf.Term) etf.Atom { return "" },
		Connection: func(string) *Conn { return nil },
		Connect:    func(string) error { return errors.New("no such node") },
		Down:       func(*Conn, string) {},
	}
}

// another returns a rig for another connection to the same node.
func (r *rig) another() *rig {
	return &rig{t: r.t, local: r.local, log: r.log, proto: r.proto, up: func(c *Conn) {
		if r.up != nil {
			r.up(c)
		}
	}}
}

// connectTo connects a peer with this name.
func (r *rig) connectTo(name string, flags handshake.Flags) {
	var ourEnd net.Conn
	ourEnd, r.peer = net.Pipe()
	stream := ourEnd
	if r.stream != nil {
		stream = r.stream(ourEnd)
	}
	r.conn = r.proto.New(r.t.Context(), stream, handshake.Peer{Name: name, Creation: 5, Version: 6, Flags: flags})
	go func() {
		if r.up != nil {
			r.up(r.conn)
		}
		r.proto.Serve(r.conn)
	}()
}

func (r *rig) listen() {
	b := make([]byte, 64<<10)
	for {
		n, err := r.peer.Read(b)
		r.mu.Lock()
		r.in = append(r.in, b[:n]...)
		r.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// send sends frames in one write. It ignores errors: tests check whether the connection
// has ended.
func (r *rig) send(frames ...[]byte) { r.peer.Write(bytes.Join(frames, nil)) }

// received waits until all goroutines are blocked, and returns the frames sent to the peer.
func (r *rig) received() [][]byte {
	r.t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	var frames [][]byte
	for len(r.in) > 0 {
		end := 4 + int(binary.BigEndian.Uint32(r.in))
		if end > len(r.in) {
			r.t.Fatalf("received an incomplete frame: %x", r.in)
		}
		frames = append(frames, r.in[:end:end])
		r.in = r.in[end:]
	}
	return frames
}

// want checks that exactly these frames were received.
func (r *rig) want(frames ...[]byte) {
	r.t.Helper()
	if got := r.received(); !slices.EqualFunc(got, frames, bytes.Equal) {
		r.t.Errorf("received %s\nwant %s", show(got), show(frames))
	}
}

// alive reports whether the connection has not ended.
func (r *rig) alive() bool {
	synctest.Wait()
	select {
	case <-r.conn.Done():
		return false
	default:
		return true
	}
}

// close ends the connection from the peer's side, and checks that it ends.
func (r *rig) close() {
	r.t.Helper()
	r.peer.Close()
	if r.alive() {
		r.t.Fatal("the connection did not end with its stream")
	}
}

// logged checks that a line of the log contains the text.
func (r *rig) logged(text string) {
	r.t.Helper()
	synctest.Wait()
	if log := r.log.String(); !bytes.Contains([]byte(log), []byte(text)) {
		r.t.Errorf("not logged: %s\nlogged: %s", text, log)
	}
}

// frame returns a whole frame. The message, if any, is an external term.
func frame(control etf.Term, message ...[]byte) []byte {
	b := append([]byte{0, 0, 0, 0, wire.PassThrough, etf.VersionMagic}, external(control)...)
	for _, m := range message {
		b = append(append(b, etf.VersionMagic), m...)
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

var tick = []byte{0, 0, 0, 0}

func external(t etf.Term) []byte {
	b, err := etf.Append(nil, t, etf.AllCaps)
	if err != nil {
		panic(err)
	}
	return b
}

// number returns an operation as a term.
func number(o wire.Op) etf.Term { return int64(o) }

func show(frames [][]byte) string {
	var b bytes.Buffer
	for _, f := range frames {
		fmt.Fprintf(&b, "\n%x", f)
		if len(f) > 5 {
			r := etf.NewReader(f[6:])
			b.Write(etf.FormatRaw([]byte{' '}, r.Raw(), 200))
			if rest := r.Rest(); len(rest) > 0 {
				b.Write(etf.FormatRaw([]byte{' '}, rest, 200))
			}
		}
	}
	return b.String()
}

// monitorP and down return the control messages that tests use most.
func monitorP(item etf.Term, ref etf.Ref) []byte {
	return frame(etf.Tuple{number(wire.OpMonitorP), theirs, item, ref})
}

func down(item etf.Term, ref etf.Ref, reason etf.Atom) []byte {
	return frame(etf.Tuple{number(wire.OpMonitorPExit), item, theirs, ref, reason})
}

// end ends the process with the given id.
func (r *rig) end(id uint64, reason etf.Atom) {
	synctest.Wait()
	r.proto.Ended(id, reason)
}

// tell sends a term to a process of the peer, from outside the reader.
func (r *rig) tell(message etf.Term) { r.conn.say(external(message)) }

func (c *Conn) say(message []byte) {
	(&Message{conn: c, later: true}).Send([]byte(theirs), nil, message)
}

// aside calls f on another goroutine, and reports whether there was room.
func (c *Conn) aside(f func(*Message)) bool {
	m := &Message{conn: c}
	m.Later(func(m *Message) {
		if !m.refuse {
			f(m)
		}
	})
	return !m.refuse
}

// quiet returns a connection that reads, writes and ticks only when the test makes it do so.
func quiet() *Conn {
	p := newProto(newLocals(), slog.DiscardHandler)
	c := p.New(context.Background(), nil, handshake.Peer{Name: there, Flags: flags})
	c.out.reminded.Store(true) // so that no goroutine writes
	return c
}

// everything is the size of the pool.
const everything = MaxShared + MaxSmall

// take takes n bytes from the pool, as a connection that cannot be ended.
func (p *pool) take(n int) { p.held.Add(int64(n)) }
func (p *pool) give(n int) { p.held.Add(-int64(n)) }

// nothing checks that no bytes are held.
func (p *pool) nothing(t *testing.T) {
	t.Helper()
	if held, spare := p.held.Load(), p.spare.Load(); held != 0 || spare != 0 || p.unfreed != 0 || len(p.holders) != 0 {
		t.Errorf("%d bytes are still held, %d of MaxSpare and %d unfreed, by %d connections",
			held, spare, p.unfreed, len(p.holders))
	}
}

func newMemory(p *pool) *memory { return &memory{pool: p, end: func() {}} }

// bubble runs a test in a bubble, with a connection to a peer with these flags. When the
// connection has ended, no bytes may be held.
func bubble(t *testing.T, flags handshake.Flags, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := connect(t, flags)
		test(t, r)
		r.close()
		r.proto.pool.nothing(t)
		if r.downs != 1 {
			t.Errorf("the end of the connection was reported %d times, want once", r.downs)
		}
		if left := len(r.proto.deliveries.all); left != 0 {
			t.Errorf("%d deliveries are left", left)
		}
		if _, served := r.proto.served.Load(r.conn); served {
			t.Error("the ends of processes are still reported to an ended connection")
		}
		if r.conn.message.conn != nil || r.conn.control.N != 0 {
			t.Error("an ended connection keeps the last frame")
		}
		w := &r.conn.watches
		if !w.mu.TryLock() || w.held != 0 || len(w.monitors.all) != 0 || len(w.links.all) != 0 || !r.conn.out.closed {
			t.Errorf("the connection ended with %d bytes of watches, %d links; output closed: %t",
				w.held, len(w.links.all), r.conn.out.closed)
		}
	})
}
