package dist

import (
	"context"
	"errors"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
	"github.com/flake-go/flake/node/socket"
	"github.com/flake-go/flake/node/wire"
)

// Conn is a connection to one other node.
type Conn struct {
	proto *Proto
	peer  handshake.Peer
	caps  etf.Caps
	conn  net.Conn

	ctx      context.Context
	cancel   context.CancelCauseFunc
	done     chan struct{} // closed when the node has forgotten the connection
	ending   Ending        // set once done is closed
	since    time.Time
	passedOn atomic.Bool  // its peer has passed on calls whose answers go to others
	asks     atomic.Bool  // something other than a tick has arrived since our last tick
	asked    atomic.Int64 // when one of our ticks last saw that, in nanoseconds after since
	self     []byte       // a pid of ours where the protocol wants a sender but ignores it

	background background
	ticker     ticker
	calls      calls

	in      frames
	control wire.Message // of the frame being handled; kept here to avoid an allocation
	message Message      // in that frame; likewise

	share   share
	out     output
	scratch []byte  // where an answer is built
	kept    account // cap(scratch)
	watches watches
	places  chan struct{} // of the peer's functions that run
	lines   lines
	turn    chan struct{} // of a large answer
}

func newConn(ctx context.Context, p *Proto, s Session) *Conn {
	c := &Conn{
		proto: p,
		peer:  s.Peer,
		caps:  capsOf(s.Peer.Flags),
		conn:  s.Conn,
		done:  make(chan struct{}),
		since: time.Now(),
	}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	c.calls.took = p.histogram()
	c.share = share{pool: &p.shared, end: func() {
		c.cancel(errShared)
		go p.disown(c)
	}}
	c.in = newFrames(s.Conn, &c.share)
	c.out.init(s.Conn, c.writeAside, func() { c.cancel(errUnread) }, func() { c.extend(true, true) }, &c.share)
	c.kept = account{share: &c.share, own: ownSpare, spare: true}
	c.watches.init(&c.share)
	c.lines.init(&c.share)
	c.places = make(chan struct{}, MaxSpawned)
	c.turn = make(chan struct{}, 1)
	c.self = c.encode(p.pid(1))
	return c
}

// capsOf returns which terms a peer with these flags can read.
func capsOf(f handshake.Flags) etf.Caps {
	return etf.Caps{
		UTF8Atoms:     f.Has(handshake.UTF8Atoms),
		SmallAtomTags: f.Has(handshake.SmallAtomTags),
		BigCreation:   f.Has(handshake.BigCreation),
		V4NC:          f.Has(handshake.V4NC),
		NewFloats:     f.Has(handshake.NewFloats),
		MapTag:        f.Has(handshake.MapTag),
		BitBinaries:   f.Has(handshake.BitBinaries),
		ExportPtrTag:  f.Has(handshake.ExportPtrTag),
	}
}

// Peer returns the node at the other end.
func (c *Conn) Peer() handshake.Peer { return c.peer }

// Addr returns the address of that end.
func (c *Conn) Addr() net.Addr { return c.conn.RemoteAddr() }

// Context ends with the connection.
func (c *Conn) Context() context.Context { return c.ctx }

// Done is closed when the connection has ended and the node has forgotten it.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Close ends the connection at once. Unwritten output is lost.
func (c *Conn) Close() { c.cancel(errClosed) }

// Since returns when the handshake finished.
func (c *Conn) Since() time.Time { return c.since }

// Asked returns when the peer was last seen to have sent anything but a tick. Each
// tick of ours checks.
func (c *Conn) Asked() time.Time {
	if c.asks.Load() {
		return time.Now()
	}
	return c.since.Add(time.Duration(c.asked.Load()))
}

// Ending returns why the connection has ended, once Done is closed.
func (c *Conn) Ending() Ending { return c.ending }

// Octets returns the bytes received from the peer and written to it.
func (c *Conn) Octets() (in, out uint64) { return c.in.octets.Load(), c.out.octets.Load() }

// Shutdown tells the peer that our processes have ended, gives pending output a moment
// to be written, and ends the connection.
func (c *Conn) Shutdown() {
	c.endedAll("shutdown")
	time.AfterFunc(shutdownTime, c.Close) // deadlines move as the peer reads
	c.out.flush()
	c.Close()
}

const shutdownTime = time.Second

func (c *Conn) serve() {
	// Only this needs a large stack before the first call. It has one of its own, because
	// a stack that has grown from 2 KiB does not shrink to that again.
	var set sync.WaitGroup
	set.Go(c.setOut)
	set.Wait()
	release := socket.Dedicate(c.conn)
	c.cancel(c.read())
	release()
	c.finish()
}

func (c *Conn) setOut() {
	context.AfterFunc(c.ctx, func() { c.conn.Close() })
	if err := c.startTicks(); err != nil {
		c.cancel(err)
	}
	c.proto.Log.Info("connected", "peer", c.peer.Name, "version", c.peer.Version, "hidden", c.peer.Hidden)
}

func (c *Conn) finish() {
	reason := context.Cause(c.ctx) // the first one
	c.ending = endingOf(reason)
	c.proto.Log.Info("disconnected", "peer", c.peer.Name, "why", reasonOf(reason))

	c.in.close()
	c.rest()
	c.out.close()
	c.stopTicks()
	c.unwatchAll()
}

func (c *Conn) read() (err error) {
	step := c.step // allocated once
	for err == nil {
		if err = socket.Share(c.conn, step); err == nil {
			err = c.step()
		}
	}
	return err
}

// step handles the frames that come with one read.
func (c *Conn) step() (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = c.survive(fault)
		}
	}()
	if err = c.in.fill(); err == nil {
		err = c.handleAll()
	}
	return err
}

// handleAll handles the frames that have arrived, and writes the answers.
func (c *Conn) handleAll() error {
	for {
		frame, ok, err := c.in.next()
		switch {
		case err != nil:
			return err
		case ok:
			if err := c.handle(frame); err != nil {
				return err
			}
			if err := c.out.flushFull(); err != nil {
				return err
			}
		default:
			c.forget()
			err := c.out.flush()
			c.written()
			return err
		}
	}
}

// forget releases the handled frame, whose buffer may be large: only ticks may follow
// for a long time.
func (c *Conn) forget() {
	c.message, c.control = Message{}, wire.Message{}
}

// rest releases what is kept for later calls, after a long time without any.
func (c *Conn) rest() {
	c.scratch = nil
	c.kept.hold(0)
	c.watches.mu.Lock()
	c.watches.shrink()
	c.watches.mu.Unlock()
}

// survive turns a fault of ours into the end of this connection, so that no peer can
// stop the node with it.
func (c *Conn) survive(fault any) error {
	c.proto.Log.Error("fault in the node, please report it", "peer", c.peer.Name,
		"err", fault, "stack", string(debug.Stack()))
	return errFault
}

var errFault = errors.New("fault in the node")
