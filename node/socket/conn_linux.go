package socket

import (
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/flake-go/flake/node/reserve"
)

// conn is a TCP connection that either Go's poller watches or a thread reads. Both use
// descriptors of one socket, so no data is lost when one replaces the other.
type conn struct {
	local, remote net.Addr
	closed        atomic.Bool

	dedicated  bool      // the reading goroutine may have a thread
	quick      int       // number of consecutive reads shorter than idle
	evictions  int       // number of times that the shared poller has evicted it
	aloneUntil time.Time // the shared poller does not read it before this time

	writing sync.Mutex // lets one goroutine at a time write; guards tcp and detached as mu does

	// mu guards the fields below. Only the reader changes tcp and detached, and it holds both locks
	// while it does so, so that no writer is using them.
	mu              sync.Mutex
	tcp             *net.TCPConn
	detached        *detached // if not nil, tcp is closed
	readBy, writeBy time.Time
}

// Adopt returns a connection that wraps c and that a thread can read. If c is not a TCP
// connection, Adopt returns c. Only one goroutine at a time may read.
func Adopt(c net.Conn) net.Conn {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return c
	}
	return &conn{tcp: tcp, local: tcp.LocalAddr(), remote: tcp.RemoteAddr()}
}

// Serve calls step until it fails, and returns its error. Only step may read c. If c is an adopted
// connection, or wraps one and has a NetConn method, it gets a thread while it is busy.
//
// A step must read once and handle the data. If c is one of several busy connections, the shared
// poller calls step; then Read does not wait: it returns 0 and no error if there is no data. A step
// must not panic.
func Serve(c net.Conn, step func() error) (err error) {
	defer dedicate(c)()
	adopted, _ := c.(*conn)
	for err == nil {
		if adopted != nil && adopted.detached != nil && threads.Load() > 1 {
			err = adopted.share(step)
		}
		if err == nil {
			err = step()
		}
	}
	return err
}

// dedicate allows the calling goroutine a thread for reading c until it calls release.
func dedicate(c net.Conn) (release func()) {
	for {
		switch layer := c.(type) {
		case *conn:
			layer.dedicated = true
			return layer.release
		case interface{ NetConn() net.Conn }:
			c = layer.NetConn()
		default:
			return func() {}
		}
	}
}

func (c *conn) release() {
	c.dedicated = false
	if h := c.detached; h != nil {
		c.giveBack()
		h.leave()
	}
}

// share lets the shared poller call step. It returns the error from step, or nil once the poller
// has stopped reading c. If the poller does not take c, share returns nil immediately.
func (c *conn) share(step func() error) error {
	if time.Now().Before(c.aloneUntil) || !c.join(step) {
		return nil
	}
	c.detached.unpin()
	m := c.detached.polled
	err := <-m.back
	c.mu.Lock()
	c.detached.polled = nil
	c.mu.Unlock()
	if m.out {
		c.aloneUntil = time.Now().Add(firstAlone << c.evictions)
		c.evictions = min(c.evictions+1, maxEvictions)
	}
	if m.quiet {
		c.giveBack()
	}
	return err
}

func (c *conn) join(step func() error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Load() {
		return false
	}
	h := c.detached
	h.polled = &pollConn{detached: h, step: step, back: make(chan error, 1)}
	if sharedPoller.join(h.polled) {
		return true
	}
	h.polled = nil
	return false
}

// takeOver moves the connection from Go's poller to the calling goroutine's thread, unless
// resources are lacking or another goroutine is writing, which may take a long time.
func (c *conn) takeOver() {
	c.quick = 0
	if !c.writing.TryLock() {
		return
	}
	defer c.writing.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := detach(c.tcp); h != nil {
		c.tcp.Close() // closes this descriptor, not the connection
		c.detached = h
	}
}

// giveBack returns the connection to Go's poller, unless it is closed, another goroutine is writing,
// or no descriptor is available.
func (c *conn) giveBack() {
	if !c.writing.TryLock() {
		return
	}
	defer c.writing.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Load() {
		return
	}
	c.detached.runQueue.Close() // frees a descriptor for the poller
	back, err := net.FileConn(c.detached.file)
	if err != nil {
		return
	}
	if reserve.Check(back) != nil || back.RemoteAddr() == nil { // the address is gone after a reset
		back.Close()
		return
	}
	back.SetReadDeadline(c.readBy)
	back.SetWriteDeadline(c.writeBy)
	c.detached.file.Close()
	c.detached.leave()
	c.tcp, c.detached = back.(*net.TCPConn), nil
}

// Read may overrun the deadline by up to the constant idle if a thread reads the connection.
func (c *conn) Read(b []byte) (int, error) {
	for c.detached != nil {
		n, err := c.detached.read(b)
		switch {
		case err == nil:
			return n, nil
		case errors.Is(err, unix.EAGAIN) && c.detached.polled != nil:
			return 0, nil
		case errors.Is(err, unix.EAGAIN):
			if c.giveBack(); c.late(&c.readBy) {
				return 0, c.failed("read", os.ErrDeadlineExceeded)
			}
		case err == io.EOF && !c.closed.Load():
			return 0, io.EOF
		default:
			return 0, c.failed("read", err)
		}
	}
	if !c.dedicated {
		return c.tcp.Read(b)
	}
	begin := time.Now()
	n, err := c.tcp.Read(b)
	if c.quick++; time.Since(begin) >= idle {
		c.quick = 0
	}
	if c.quick >= busy {
		c.takeOver()
	} else if n == len(b) { // more data is likely waiting: serve other connections first
		runtime.Gosched()
	}
	return n, err
}

func (c *conn) Write(b []byte) (written int, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.detached == nil {
		return c.tcp.Write(b)
	}
	for {
		n, err := c.detached.file.Write(b[written:])
		written += n
		if err == nil {
			return written, nil
		}
		if !errors.Is(err, unix.EAGAIN) {
			return written, c.failed("write", err)
		}
		c.wait()
		c.detached.raw.Write(awaitWritable) // fails as Write does
		if c.late(&c.writeBy) {
			return written, c.failed("write", os.ErrDeadlineExceeded)
		}
	}
}

// wait lets the shared poller continue without c, if the poller is in a step of c.
func (c *conn) wait() {
	c.mu.Lock()
	m := c.detached.polled
	c.mu.Unlock()
	if m != nil {
		sharedPoller.goOnWithout(m)
	}
}

// failed returns the error that package net would return.
func (c *conn) failed(op string, err error) error {
	if c.closed.Load() {
		err = net.ErrClosed
	} else if ofFile, ok := errors.AsType[*os.PathError](err); ok {
		err = os.NewSyscallError(op, ofFile.Err)
	}
	return &net.OpError{Op: op, Net: c.local.Network(), Source: c.local, Addr: c.remote, Err: err}
}

// Close closes the connection and wakes a thread blocked in poll, without waiting for it.
func (c *conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Swap(true) {
		return c.failed("close", nil)
	}
	if c.detached == nil {
		return c.tcp.Close()
	}
	if m := c.detached.polled; m != nil {
		sharedPoller.leave(m)
	}
	unix.Shutdown(c.detached.fd, unix.SHUT_RDWR) // a blocked thread keeps the descriptor
	return c.detached.file.Close()
}

// CloseWrite ends the stream to the peer. The peer receives what was written before.
func (c *conn) CloseWrite() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.detached == nil:
		return c.tcp.CloseWrite()
	case c.closed.Load():
		return c.failed("close", nil)
	}
	return os.NewSyscallError("shutdown", unix.Shutdown(c.detached.fd, unix.SHUT_WR))
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

func (c *conn) SetReadDeadline(t time.Time) error {
	return c.setDeadline(&c.readBy, t, (*net.TCPConn).SetReadDeadline)
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	return c.setDeadline(&c.writeBy, t, (*net.TCPConn).SetWriteDeadline)
}

func (c *conn) setDeadline(deadline *time.Time, t time.Time, set func(*net.TCPConn, time.Time) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	*deadline = t
	switch {
	case c.detached == nil:
		return set(c.tcp, t)
	case c.closed.Load():
		return c.failed("set", nil)
	}
	return nil
}

func (c *conn) late(deadline *time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !deadline.IsZero() && !time.Now().Before(*deadline)
}
