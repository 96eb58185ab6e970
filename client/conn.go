package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
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

	// maxTick is the longest time between two of our ticks: some nodes hang up after 30
	// s of silence, whatever their net_ticktime.
	maxTick = 15 * time.Second

	// maxUnsent bounds the bytes of calls waiting to be written. It is reached if the
	// node reads none while tens of thousands of calls are made.
	maxUnsent = 16 << 20
)

var (
	// ErrNoProcess is returned if no process has the name.
	ErrNoProcess = errors.New("noproc: no process is registered by that name")

	// ErrLost is returned if the connection or the called process ends after a call was
	// sent and before it was answered: the call may have been carried out. A call that
	// fails for lack of a connection without ErrLost was not.
	ErrLost = errors.New("no answer came, and the call may have been carried out")

	errUnsent = fmt.Errorf("the node takes no more calls: %d bytes of them wait", maxUnsent)
)

// Conn is one connection to a node, until it is lost. Any number of goroutines may
// call at once: their calls share writes, and none waits for another's answer.
type Conn struct {
	conn   net.Conn
	self   etf.Pid
	silent time.Duration // after this silence the node is down

	wake    chan struct{} // signals something to write
	ended   chan struct{}
	heard   atomic.Bool // since the last tick
	serving sync.WaitGroup

	mu      sync.Mutex
	err     error  // why the connection has ended, or nil
	out     []byte // frames to write
	last    uint64 // tag
	calls   map[uint64]*call
	watches map[etf.Ref]etf.Atom // the monitor on each called name
	watched map[etf.Atom]bool
}

// call is a call that waits for its answer.
type call struct {
	name etf.Atom
	done chan struct{} // closed when one of the others is set

	answer []byte
	err    error
}

func newConn(conn net.Conn, self etf.Pid, ticktime time.Duration) *Conn {
	if ticktime == 0 {
		ticktime = defaultTicktime
	}
	c := &Conn{
		conn: conn, self: self, silent: ticktime,
		wake: make(chan struct{}, 1), ended: make(chan struct{}),
		calls: make(map[uint64]*call), watches: make(map[etf.Ref]etf.Atom), watched: make(map[etf.Atom]bool),
	}
	c.serving.Go(func() { c.end(c.read()) })
	c.serving.Go(func() { c.end(c.write()) })
	return c
}

// Close ends the connection and the waiting calls.
func (c *Conn) Close() error {
	c.end(net.ErrClosed)
	c.serving.Wait()
	return nil
}

// Name returns the name, name@host, by which the node knows the caller.
func (c *Conn) Name() string { return string(c.self.Node()) }

// Call is gen_server:call({Name, Node}, Request). The end of ctx ends only the call,
// which may have been carried out by then.
func (c *Conn) Call(ctx context.Context, name etf.Atom, request etf.Term) (reply etf.Term, err error) {
	return decoded(c.call(ctx, name, request))
}

// Apply calls a function of the node, as rpc:call does. An exception comes back as
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

// call returns the answer as an external term.
func (c *Conn) call(ctx context.Context, name etf.Atom, request etf.Term) (answer []byte, err error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("call %s: %w", name, context.Cause(ctx))
	}
	tag, waiting, err := c.send(name, request)
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", name, err)
	}
	select {
	case <-waiting.done:
		answer, err = waiting.answer, waiting.err
	case <-ctx.Done():
		err = context.Cause(ctx)
		c.mu.Lock()
		delete(c.calls, tag)
		c.mu.Unlock()
	}
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", name, err)
	}
	return answer, nil
}

// endedError is the error of a call not sent because the connection had ended.
type endedError struct{ error }

func (e endedError) Error() string { return "not connected: " + e.error.Error() }
func (e endedError) Unwrap() error { return e.error }

// send queues a call. The first to a name sets a monitor, which reports the end of the
// process to all of them.
func (c *Conn) send(name etf.Atom, request etf.Term) (tag uint64, waiting *call, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, nil, endedError{c.err}
	}
	if len(c.out) > maxUnsent {
		return 0, nil, errUnsent
	}
	c.last++
	tag = c.last
	out := c.out
	ref := etf.NewRef(c.self.Node(), c.self.Creation(), uint32(tag), uint32(tag>>32), 0)
	if !c.watched[name] {
		if out, err = appendMonitor(out, c.self, name, ref); err != nil {
			return 0, nil, err
		}
	}
	if out, err = appendCall(out, c.self, name, tag, request); err != nil {
		return 0, nil, err
	}
	if !c.watched[name] {
		c.watched[name], c.watches[ref] = true, name
	}
	c.out = out
	waiting = &call{name: name, done: make(chan struct{})}
	c.calls[tag] = waiting
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return tag, waiting, nil
}

// read handles what the node sends.
func (c *Conn) read() error {
	r := bufio.NewReaderSize(c.conn, readBuffer)
	for {
		frame, err := wire.Read(r, maxFrame)
		if err != nil {
			return err
		}
		c.heard.Store(true)
		s, err := decode(frame)
		if err != nil {
			return err
		}
		switch {
		case s.answer != nil:
			c.answered(s.tag, s.answer)
		case s.ref != nil:
			c.down(etf.Ref(s.ref), s.reason)
		}
	}
}

func (c *Conn) answered(tag uint64, answer []byte) {
	c.mu.Lock()
	waiting := c.calls[tag] // nil if the caller has given up
	delete(c.calls, tag)
	c.mu.Unlock()
	if waiting != nil {
		waiting.answer = bytes.Clone(answer)
		close(waiting.done)
	}
}

// down fails the calls to a process that has ended or never existed.
func (c *Conn) down(ref etf.Ref, reason []byte) {
	err := ErrNoProcess
	if text := string(etf.FormatRaw(nil, reason, 200)); text != "noproc" {
		err = fmt.Errorf("the process ended (%s): %w", text, ErrLost)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	name, ok := c.watches[ref]
	if !ok {
		return
	}
	delete(c.watches, ref)
	delete(c.watched, name)
	c.fail(err, func(waiting *call) bool { return waiting.name == name })
}

// fail fails the calls that which selects.
func (c *Conn) fail(err error, which func(*call) bool) {
	for tag, waiting := range c.calls {
		if which(waiting) {
			delete(c.calls, tag)
			waiting.err = err
			close(waiting.done)
		}
	}
}

// end ends the connection; the first reason counts.
func (c *Conn) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err, c.out = err, nil
	close(c.ended)
	c.conn.Close()
	c.fail(fmt.Errorf("%w: %w", ErrLost, err), func(*call) bool { return true })
}

// write writes the gathered frames at once, and ticks.
func (c *Conn) write() error {
	var spare []byte
	quarter := time.Tick(min(c.silent/4, maxTick))
	heard := time.Now()
	for {
		frames := tick
		select {
		case <-c.ended:
			return nil
		case <-c.wake:
			runtime.Gosched() // so that all who are about to call share a write
			c.mu.Lock()
			frames, c.out = c.out, spare
			c.mu.Unlock()
			if spare = frames[:0]; cap(spare) > readBuffer {
				spare = nil
			}
		case now := <-quarter:
			if c.heard.Swap(false) {
				heard = now
			}
			if now.Sub(heard) >= c.silent {
				return fmt.Errorf("silent for %v (net_tick_timeout)", c.silent)
			}
		}
		c.conn.SetWriteDeadline(time.Now().Add(c.silent)) // fails only if the connection is closed
		if _, err := c.conn.Write(frames); err != nil {
			return err
		}
	}
}
