package distribution

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
	"github.com/flake-go/flake/node/latency"
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
	leaving  atomic.Bool   // set by Shutdown
	since    time.Time
	passedOn atomic.Bool  // set once an answer to a call that the peer forwarded was sent to another node
	asked    atomic.Int64 // nanoseconds from since to the last frame that was not a tick
	self     []byte       // one of our pids, for sender fields that the protocol ignores

	ticker ticker
	calls  calls

	in      frames
	control wire.Message // of the current frame; a field to avoid an allocation
	message Message      // of the current frame; a field for the same reason

	memory    memory
	out       output
	scratch   []byte  // reused by Message.Buffer
	kept      account // counts cap(scratch)
	watches   watches
	functions chan struct{} // holds one element for each of the peer's running functions
	queues    queues
	large     chan struct{} // holds an element while a large answer is sent
}

// New returns a connection over a stream on which the handshake has finished. The connection is
// not served until Serve is called. It ends when ctx ends, or earlier.
func (p *Proto) New(ctx context.Context, stream net.Conn, peer handshake.Peer) *Conn {
	c := &Conn{
		proto: p,
		peer:  peer,
		caps:  capsOf(peer.Flags),
		conn:  stream,
		done:  make(chan struct{}),
		since: time.Now(),
	}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	c.calls.took = &p.took[p.made.Add(1)%histograms]
	c.memory = memory{pool: &p.pool, end: func() {
		c.cancel(errShared)
		go p.disown(c)
	}}
	c.in = newFrames(stream, &c.memory)
	c.out.init(stream, p.Go, c.cancel, func() { c.extend(true, true) }, &c.memory)
	c.kept = account{memory: &c.memory, own: ownSpare, spare: true}
	c.watches.init(&c.memory)
	c.queues.account = account{memory: &c.memory, own: ownQueues}
	c.functions = make(chan struct{}, maxSpawned)
	c.large = make(chan struct{}, 1)
	c.self = c.encode(1)
	return c
}

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

// Addr returns the peer's address.
func (c *Conn) Addr() net.Addr { return c.conn.RemoteAddr() }

// Context returns a context that is canceled when the connection ends.
func (c *Conn) Context() context.Context { return c.ctx }

// Done returns a channel that is closed once the connection has ended and the node has
// forgotten it.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Close ends the connection immediately. Unwritten output is lost.
func (c *Conn) Close() { c.cancel(errClosed) }

// Since returns the time at which the handshake finished.
func (c *Conn) Since() time.Time { return c.since }

// Asked returns the time at which the peer last sent a frame other than a tick. If there was
// no such frame, Asked returns the same time as Since.
func (c *Conn) Asked() time.Time { return c.since.Add(time.Duration(c.asked.Load())) }

// Octets returns how many bytes were received from the peer and how many were written to it.
func (c *Conn) Octets() (in, out uint64) { return c.in.octets.Load(), c.out.octets.Load() }

// Shutdown waits briefly for pending output to be written and for the peer to close its end, and
// closes the connection. It drops what the peer sends in that time: closing with unread bytes would
// reset the connection, and the peer would lose output that it has not read.
func (c *Conn) Shutdown() {
	time.AfterFunc(shutdownTime, c.Close) // the peer can delay the end of flush by reading slowly
	c.leaving.Store(true)
	c.out.flush()
	c.out.close()
	if half, ok := c.conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		<-c.ctx.Done()
	}
	c.Close()
}

const shutdownTime = time.Second

// Serve serves a connection until it ends.
func (p *Proto) Serve(c *Conn) {
	p.served.Store(c, nil)
	p.deliver(c.peer.Name, c)
	// Before the first call, only setOut needs a stack of more than 2 KiB. It runs on another
	// goroutine, because a stack that has grown never shrinks to 2 KiB again.
	var set sync.WaitGroup
	set.Go(c.setOut)
	set.Wait()
	err := socket.Serve(c.conn, c.step)
	if c.leaving.Load() {
		err = errClosed
	}
	c.cancel(err)
	blame := c.finish()
	p.served.Delete(c)
	p.Down(c, blame)
	close(c.done)
}

func (c *Conn) setOut() {
	context.AfterFunc(c.ctx, func() { c.conn.Close() })
	// The timer must not fire before Reset, because tickNow uses the field.
	c.ticker.Timer = time.AfterFunc(math.MaxInt64, c.tickNow)
	c.ticker.Reset(c.pause())
	if err := c.extend(true, true); err != nil {
		c.cancel(err)
	}
	c.proto.Log.Info("connected", "peer", c.peer.Name, "version", c.peer.Version, "hidden", c.peer.Hidden)
}

// finish releases the connection's memory. If the peer is to blame for the end, finish returns the
// reason, otherwise "".
func (c *Conn) finish() string {
	blame, why := endingOf(context.Cause(c.ctx)) // the first cause
	c.proto.Log.Info("disconnected", "peer", c.peer.Name, "why", why)

	c.in.close()
	c.forget()
	c.rest()
	c.ticker.Stop()
	c.out.close()
	c.watches.clear()
	c.queues.clear()
	c.memory.freed()
	return blame
}

// step reads once and handles the frames that have arrived.
func (c *Conn) step() error {
	return c.guard(func() error {
		if err := c.in.fill(); err != nil {
			return err
		}
		if c.leaving.Load() {
			c.in.r = c.in.w
			return nil
		}
		return c.handleAll()
	})
}

func (c *Conn) handleAll() error {
	for c.ctx.Err() == nil {
		frame, ok, err := c.in.next()
		switch {
		case err != nil:
			return err
		case ok:
			if err := c.handle(frame); err != nil {
				return err
			}
			if c.out.full.Load() {
				c.out.flush() // ends c.ctx if it fails
			}
		default:
			c.forget()
			err := c.out.flush()
			c.written()
			return err
		}
	}
	return context.Cause(c.ctx)
}

// forget drops the references to the handled frame, because its buffer may be large and the next
// frame may arrive much later.
func (c *Conn) forget() {
	c.message, c.control = Message{}, wire.Message{}
}

// rest releases the memory kept for later calls. It is called on a tick from an idle peer and when
// the connection ends.
func (c *Conn) rest() {
	c.scratch = nil
	c.kept.resize(0)
	c.watches.rest()
}

// guard calls f. It logs a panic and returns an error for it, so that no peer can stop the node by
// causing a fault.
func (c *Conn) guard(f func() error) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			c.proto.Log.Error("fault in the node; please report it", "peer", c.peer.Name,
				"err", fault, "stack", string(debug.Stack()))
			err = errors.New("fault in the node")
		}
	}()
	return f()
}

// histograms is the number of histograms that the connections share. There are several so that
// fewer connections write to the same one.
const histograms = 8

// calls measures how long a connection's calls take, from their arrival until their answers are
// written. It reads the clock only twice for all calls that arrive in one read from the stream.
type calls struct {
	took  *latency.Histogram
	given atomic.Uint64 // total of Message.Count

	// Used only by the reader, and reset at each of its writes.
	began    time.Duration // when the first frame arrived, counted from Conn.since; 0 if none has
	answered uint64
}

// written records the durations of the calls whose answers the reader has just written.
func (c *Conn) written() {
	if c.calls.answered > 0 {
		c.answered(c.calls.began, c.calls.answered)
		c.calls.answered = 0
	}
	c.calls.began = 0
}

func (c *Conn) answered(began time.Duration, calls uint64) {
	c.calls.took.Add(time.Since(c.since)-began, calls)
}

// Given returns the total of the numbers passed to [Message.Count].
func (c *Conn) Given() uint64 { return c.calls.given.Load() }

// Latency returns how long the calls of all connections took.
func (p *Proto) Latency() (all latency.Counts) {
	for i := range p.took {
		all.Collect(&p.took[i])
	}
	return all
}

var (
	errClosed = errors.New("closed by us")
	errUnread = errors.New("the peer does not read its answers")
)

// endingOf describes the error that ended a connection. blame is the reason in one word, or "" if
// the peer is not to blame. text is for the log.
func endingOf(err error) (blame, text string) {
	for _, known := range []struct {
		err         error
		blame, text string // "" as text means the error's text
	}{
		{context.Canceled, "", errClosed.Error()}, // the node has stopped
		{io.EOF, "", "closed by peer"},
		{os.ErrDeadlineExceeded, "net_tick_timeout", "net_tick_timeout"},
		{errLong, "frame_too_long", ""},
		{errPassThrough, "distribution_header", ""},
		{errUnread, "answers_not_read", ""},
		{errShared, "shared_memory", ""},
	} {
		if errors.Is(err, known.err) {
			return known.blame, cmp.Or(known.text, err.Error())
		}
	}
	return "", err.Error()
}
