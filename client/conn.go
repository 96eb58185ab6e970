package client

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/wire"
)

const (
	defaultTicktime = 60 * time.Second

	// maxTick bounds the time between the ticks that a Conn sends, because some nodes disconnect
	// after 30 s of silence, whatever their net_ticktime.
	maxTick = 15 * time.Second

	// maxUnsent limits the bytes of calls that wait to be written. The program reaches this limit
	// by making tens of thousands of calls while the node does not read.
	maxUnsent = 16 << 20

	readBuffer = 64 << 10

	// maxShared limits the callers that share a call. A node makes as many ids without a pause, and
	// never refuses them for lack of room.
	maxShared = 256
)

// caps lists the external forms of terms that a caller sends. OTP 23 and later support them.
var caps = etf.AllCaps

// tick is an empty frame.
var tick = make([]byte, wire.HeaderSize)

var (
	// ErrNoProcess means that no process on the node is registered under the name.
	ErrNoProcess = errors.New("noproc: no process is registered under that name")

	// ErrLost means that the connection or the called process ended after a call was sent and
	// before it was answered, so the call may have been performed. If a call fails because there is
	// no connection, and the error is not ErrLost, the call was not performed.
	ErrLost = errors.New("no answer, and the call may have been performed")

	// errEnded means that a call was not sent, because the connection had ended.
	errEnded = errors.New("not connected")

	// errAlone means that a call was not performed, because the process can only be asked for one id.
	errAlone = errors.New("unknown call")

	errUnsent = fmt.Errorf("the node is not reading: %d bytes of calls are waiting", maxUnsent)
)

// Conn is one connection to a node. It does not reconnect. It is safe for concurrent use:
// calls share writes and do not wait for each other's answers.
type Conn struct {
	conn   net.Conn
	self   etf.Pid
	silent time.Duration // if the node sends no frame for this long, the connection is closed

	ctx      context.Context // done when the connection ends; its cause is the reason
	cancel   context.CancelCauseFunc
	wake     chan struct{} // signals that out is not empty
	received atomic.Bool   // whether a frame has been received since write last checked
	serving  sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	out     []byte     // frames to write
	open    []*process // processes whose open call is not in out yet
	last    uint64     // the latest tag
	calls   map[uint64]*call
	watched map[etf.Atom]*process // the called processes
}

// process is a called process.
type process struct {
	name    etf.Atom
	monitor etf.Ref
	open    *call // the call that further callers of nextID join, until it is written; may be nil
	alone   bool  // whether callers of nextID cannot share calls, because the process only knows get
}

// call is an unanswered call.
type call struct {
	process *process
	tag     uint64
	shared  bool          // whether it is for nextID
	ids     int           // the number of callers that it was made for, each with an equal part of the answer
	callers int           // the number of those that still wait
	done    chan struct{} // closed when answer or err is set

	answer []byte // a term, or the ids for nextID
	err    error
}

// nextID is a request for one id. Concurrent callers share a call for several.
type nextID struct{}

func newConn(conn net.Conn, self etf.Pid, ticktime time.Duration) *Conn {
	c := &Conn{
		conn: conn, self: self, silent: cmp.Or(ticktime, defaultTicktime),
		wake: make(chan struct{}, 1), calls: make(map[uint64]*call), watched: make(map[etf.Atom]*process),
	}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.serving.Go(func() { c.end(c.read()) })
	c.serving.Go(func() { c.end(c.write()) })
	return c
}

// Close closes the connection. Calls waiting for an answer fail.
func (c *Conn) Close() error {
	c.end(net.ErrClosed)
	c.serving.Wait()
	return nil
}

// Name returns the caller's node name, name@host.
func (c *Conn) Name() string { return string(c.self.Node()) }

// Call performs gen_server:call({Name, Node}, Request). When ctx is done, the call ends, but the
// connection stays open; the node may have performed the call by then.
func (c *Conn) Call(ctx context.Context, name etf.Atom, request etf.Term) (reply etf.Term, err error) {
	return decoded(c.call(ctx, name, request))
}

// Apply calls a function on the node, as rpc:call does. For an exception it returns
// {badrpc, Reason}.
func (c *Conn) Apply(ctx context.Context, module, function etf.Atom, args []etf.Term) (etf.Term, error) {
	return c.Call(ctx, "rex", applyRequest(module, function, args))
}

func applyRequest(module, function etf.Atom, args []etf.Term) etf.Term {
	return etf.Tuple{etf.Atom("call"), module, function, etf.List(args), etf.Atom("user")}
}

func decoded(answer []byte, err error) (etf.Term, error) {
	if err != nil {
		return nil, err
	}
	return etf.Decode(answer)
}

// call makes a call and returns the answer, an external term, or for nextID, the bytes of an id.
func (c *Conn) call(ctx context.Context, name etf.Atom, request etf.Term) (answer []byte, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("call %s: %w", name, err)
		}
	}()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	at, waiting, err := c.send(name, request)
	if err != nil {
		return nil, err
	}
	select {
	case <-waiting.done:
		size := len(waiting.answer) / waiting.ids
		return waiting.answer[at*size:][:size], waiting.err
	case <-ctx.Done():
		c.mu.Lock()
		defer c.mu.Unlock()
		if waiting.callers--; waiting.callers == 0 {
			delete(c.calls, waiting.tag)
			if waiting.process.open == waiting {
				waiting.process.open = nil
			}
		}
		return nil, context.Cause(ctx)
	}
}

// send queues a call, or joins the open call for ids, and returns the caller's index among its callers.
// The first call to a name also monitors the process, so that all calls to it fail when it ends.
func (c *Conn) send(name etf.Atom, request etf.Term) (at int, waiting *call, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, shared := request.(nextID)
	p := c.watched[name]
	if shared && p != nil && p.open != nil {
		at, waiting = p.open.ids, p.open
		waiting.callers++
		if waiting.ids++; waiting.ids == maxShared {
			c.seal(p)
		}
		return at, waiting, nil
	}
	if c.ctx.Err() != nil {
		return 0, nil, fmt.Errorf("%w: %w", errEnded, context.Cause(c.ctx))
	}
	if len(c.out) > maxUnsent {
		return 0, nil, errUnsent
	}
	c.last++
	out, tag := c.out, c.last
	if p == nil {
		p = &process{name: name, monitor: etf.NewRef(c.self.Node(), c.self.Creation(), uint32(tag), uint32(tag>>32), 0)}
		if out, err = wire.Append(out, caps, etf.Tuple{int64(wire.OpMonitorP), c.self, name, p.monitor}); err != nil {
			return 0, nil, err
		}
	}
	waiting = &call{process: p, tag: tag, shared: shared, ids: 1, callers: 1, done: make(chan struct{})}
	if shared {
		p.open = waiting
		c.open = append(c.open, p)
	} else if out, err = appendCall(out, c.self, name, tag, request); err != nil {
		return 0, nil, err
	}
	c.out, c.watched[name], c.calls[tag] = out, p, waiting
	if p.alone {
		c.seal(p)
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return 0, waiting, nil
}

// seal queues the frame of a process's open call, if there is one. No more callers can join it.
func (c *Conn) seal(p *process) {
	if p.open == nil {
		return
	}
	var request etf.Term = etf.Atom(askOne)
	if n := p.open.ids; n > 1 {
		request = etf.Tuple{etf.Atom("get_binary"), int64(n)}
	}
	c.out, _ = appendCall(c.out, c.self, p.name, p.open.tag, request) // cannot fail for these terms
	p.open = nil
}

// appendCall appends a frame that sends {'$gen_call', {Self, Tag}, Request} to the process
// registered as name, which must be an atom that etf accepts. OTP uses a reference as Tag, but any
// term is allowed.
func appendCall(dst []byte, self etf.Pid, name etf.Atom, tag uint64, request etf.Term) ([]byte, error) {
	b := etf.AppendInt(etf.AppendTupleHeader(wire.Open(dst), 4), int64(wire.OpRegSend))
	b = etf.MustAppendAtom(append(b, self...), "", caps)
	b = etf.MustAppendAtom(b, name, caps)
	b = etf.AppendTupleHeader(append(b, etf.VersionMagic), 3)
	b = etf.MustAppendAtom(b, "$gen_call", caps)
	b = append(etf.AppendTupleHeader(b, 2), self...)
	b, err := etf.Append(etf.AppendUint64(b, tag), request, caps)
	if err != nil {
		return dst, err
	}
	wire.Close(b, len(dst))
	return b, nil
}

// read handles frames until one cannot be read.
func (c *Conn) read() error {
	r := bufio.NewReaderSize(c.conn, readBuffer)
	for {
		frame, err := wire.Read(r, maxAnswer)
		if err != nil {
			return err
		}
		c.received.Store(true)
		if len(frame) == 0 {
			continue
		}
		if frame[0] != wire.PassThrough {
			return fmt.Errorf("frame begins with %d, not %d: distribution headers are not supported",
				frame[0], wire.PassThrough)
		}
		var m wire.Message
		if err := m.Decode(frame[1:]); err != nil {
			return err
		}
		switch { // callers need no other messages
		case m.Op == wire.OpSend && m.N == 2:
			if m.Payload == nil {
				return errors.New("send without a message")
			}
			r := etf.NewReader(m.Payload)
			r.Tuple()
			if tag, answer := r.Uint64(), r.Raw(); r.Finish() == nil { // {Tag, Answer}
				c.answered(tag, bytes.Clone(answer))
			}
		case m.Op == wire.OpMonitorPExit:
			c.down(etf.Ref(m.Args[2]), m.Args[3])
		}
	}
}

// answered ends a call, unless its callers have given up. An answer to a call that is still open is dropped.
func (c *Conn) answered(tag uint64, answer []byte) {
	c.mu.Lock()
	waiting := c.calls[tag]
	if waiting == nil || waiting.process.open == waiting {
		c.mu.Unlock()
		return
	}
	delete(c.calls, tag)
	if waiting.answer = answer; waiting.shared {
		waiting.answer, waiting.err = readIDs(answer, waiting.ids)
	}
	if waiting.ids > 1 && errors.Is(waiting.err, ErrUnknown) {
		waiting.process.alone, waiting.err = true, errAlone
	}
	c.mu.Unlock()
	close(waiting.done) // after Unlock, because callers lock mu in their next calls
}

// down fails the calls to a process that has ended or never existed.
func (c *Conn) down(ref etf.Ref, reason []byte) {
	err := ErrNoProcess
	if text := string(etf.FormatRaw(nil, reason, 200)); text != "noproc" {
		err = fmt.Errorf("the process ended (%s): %w", text, ErrLost)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.watched, func(_ etf.Atom, p *process) bool { return p.monitor == ref })
	c.fail(err, func(waiting *call) bool { return waiting.process.monitor == ref })
}

// fail ends each call for which match returns true, with the error err.
func (c *Conn) fail(err error, match func(*call) bool) {
	for tag, waiting := range c.calls {
		if match(waiting) {
			delete(c.calls, tag)
			waiting.err = err
			close(waiting.done)
		}
	}
}

// end ends the connection. Only the first call has an effect.
func (c *Conn) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancel(err)
	c.conn.Close()
	c.out, c.open, c.watched = nil, nil, nil // the queued frames are never written, and no caller joins them
	c.fail(fmt.Errorf("%w: %w", ErrLost, err), func(*call) bool { return true })
}

// write writes queued frames and ticks.
func (c *Conn) write() error {
	var spare []byte
	quarter := time.Tick(min(c.silent/4, maxTick))
	received := time.Now()
	for {
		frames := tick
		select {
		case <-c.ctx.Done():
			return context.Cause(c.ctx)
		case <-c.wake:
			runtime.Gosched() // so that concurrent calls share a write
			c.mu.Lock()
			for _, p := range c.open {
				c.seal(p)
			}
			c.open = c.open[:0]
			frames, c.out = c.out, spare
			c.mu.Unlock()
			if spare = frames[:0]; cap(spare) > readBuffer {
				spare = nil
			}
		case now := <-quarter:
			if c.received.Swap(false) {
				received = now
			}
			if now.Sub(received) >= c.silent {
				return fmt.Errorf("no frame received for %v (net_tick_timeout)", c.silent)
			}
		}
		c.conn.SetWriteDeadline(time.Now().Add(c.silent)) // fails only if the connection is closed
		if _, err := c.conn.Write(frames); err != nil {
			return err
		}
	}
}
