package socket

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/flake-go/flake/node/reserve"
)

// conn is a TCP connection that Go's poller watches, or that a thread holds. Both have
// descriptors of one socket, so changing from one to the other loses nothing.
type conn struct {
	local, remote net.Addr
	closed        atomic.Bool

	dedicated bool      // the reading goroutine may have a thread
	quick     int       // consecutive reads shorter than idle
	outs      int       // how often the poller has put it out
	apart     time.Time // until when it is not read by the poller again

	writing sync.Mutex

	// Only the reader changes tcp and held, with both locks: so no writer is in its way.
	mu              sync.Mutex
	tcp             *net.TCPConn
	held            *held // by a thread; then tcp is closed
	readBy, writeBy time.Time
}

// Adopt returns a connection that a thread may read, above c. If c is not a TCP
// connection, it returns c. Only one goroutine at a time may read.
func Adopt(c net.Conn) net.Conn {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return c
	}
	return &conn{tcp: tcp, local: tcp.LocalAddr(), remote: tcp.RemoteAddr()}
}

// Dedicate lets the calling goroutine have a thread for reading c, which was adopted or
// is a layer, with a method NetConn, above an adopted one. Nobody else may read until
// the goroutine calls release.
func Dedicate(c net.Conn) (release func()) {
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
	if h := c.held; h != nil {
		c.giveBack()
		h.leave()
	}
}

// Share has another goroutine call step, again and again, while that reads several busy
// connections, of which c is one. It returns the error of a step, or nil once c is no
// longer among them, at once if it never was. Only the goroutine that called Dedicate
// calls it.
//
// A step reads once, and handles that. In it Read does not wait: it returns 0 and no
// error if there is nothing. A step must not panic.
func Share(c net.Conn, step func() error) error {
	if c, ok := c.(*conn); ok && c.held != nil && threads.Load() > 1 {
		return c.share(step)
	}
	return nil
}

func (c *conn) share(step func() error) error {
	if c.outs > 0 && time.Now().Before(c.apart) || !c.join(step) {
		return nil
	}
	c.held.unpin()
	m := c.held.member
	err := <-m.back
	c.mu.Lock()
	c.held.member = nil
	c.mu.Unlock()
	if m.out {
		c.apart = time.Now().Add(firstApart << c.outs)
		c.outs = min(c.outs+1, mostApart)
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
	h, joined := c.held, false
	h.raw.Control(func(fd uintptr) {
		h.member = &member{held: h, fd: int32(fd), step: step, back: make(chan error, 1)}
		joined = busyOnes.join(h.member)
	})
	if !joined {
		h.member = nil
	}
	return joined
}

// takeOver gives the connection to the calling goroutine's thread. It does not, if
// resources are missing, or somebody is writing, perhaps for long.
func (c *conn) takeOver() {
	c.quick = 0
	if !c.writing.TryLock() {
		return
	}
	defer c.writing.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Load() {
		return
	}
	if h := hold(c.tcp); h != nil {
		c.tcp.Close() // only this descriptor, and with it the poller's
		c.held = h
	}
}

// giveBack gives it back to Go's poller, and reports whether it could.
func (c *conn) giveBack() bool {
	if !c.writing.TryLock() {
		return false
	}
	defer c.writing.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Load() {
		return false
	}
	c.held.queue.Close() // so there is a descriptor
	back, err := net.FileConn(c.held.file)
	if err != nil {
		return false
	}
	if reserve.Check(back) != nil {
		back.Close()
		return false
	}
	back.SetReadDeadline(c.readBy)
	back.SetWriteDeadline(c.writeBy)
	c.held.file.Close()
	c.held.leave()
	c.tcp, c.held = back.(*net.TCPConn), nil
	return true
}

// Read checks the deadline when there is nothing to read; a thread does up to idle
// later.
func (c *conn) Read(b []byte) (int, error) {
	for c.held != nil {
		n, err := c.held.read(b)
		switch {
		case err == unix.EAGAIN && c.held.member != nil:
			return 0, nil
		case err == unix.EAGAIN:
			if !c.giveBack() && c.late(&c.readBy) {
				return 0, c.failed("read", os.ErrDeadlineExceeded)
			}
		case err != nil, n == 0 && c.closed.Load():
			return 0, c.failed("read", err)
		case n == 0 && len(b) > 0:
			return 0, io.EOF
		default:
			return n, nil
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
	}
	return n, err
}

func (c *conn) Write(b []byte) (written int, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.held == nil {
		return c.tcp.Write(b)
	}
	for written < len(b) {
		n, err := c.held.write(b[written:])
		switch {
		case err == unix.EAGAIN:
			c.wait()
			if err := c.held.raw.Write(c.held.writable); err != nil {
				return written, c.failed("write", err)
			}
			if c.late(&c.writeBy) {
				return written, c.failed("write", os.ErrDeadlineExceeded)
			}
		case err != nil:
			return written, c.failed("write", err)
		default:
			written += n
		}
	}
	return written, nil
}

// wait lets the poller, if it writes, go on without c.
func (c *conn) wait() {
	c.mu.Lock()
	m := c.held.member
	c.mu.Unlock()
	if m != nil {
		busyOnes.hold(m)
	}
}

// failed returns the error that package net would return.
func (c *conn) failed(op string, err error) error {
	if c.closed.Load() {
		err = net.ErrClosed
	}
	return &net.OpError{Op: op, Net: c.local.Network(), Source: c.local, Addr: c.remote, Err: err}
}

// Close ends the connection. It does not wait for a thread in poll, which wakes up.
func (c *conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Swap(true) {
		return c.failed("close", nil)
	}
	if c.held == nil {
		return c.tcp.Close()
	}
	if m := c.held.member; m != nil {
		busyOnes.leave(m)
	}
	err := c.held.raw.Control(func(fd uintptr) { unix.Shutdown(int(fd), unix.SHUT_RDWR) })
	return errors.Join(err, c.held.file.Close())
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
	case c.held == nil:
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
