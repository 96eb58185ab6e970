package socket

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/flake-go/flake/node/reserve"
)

// conn is a TCP connection outside Go's poller.
type conn struct {
	file          *os.File // holds the descriptor while somebody uses it
	raw           syscall.RawConn
	readable      *event
	writable      *event
	local, remote net.Addr
	closed        atomic.Bool

	in        transfer
	thread    thread
	dedicated bool // the reading goroutine may have a thread
	quick     int  // consecutive waits shorter than idle

	writing sync.Mutex
	out     transfer
}

// Adopt takes over a TCP connection. If c is not one, or resources are missing, it
// returns c. Only one goroutine at a time may read.
func Adopt(c net.Conn) net.Conn {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return c
	}
	adopted, err := adopt(tcp)
	if err != nil {
		return c
	}
	tcp.Close() // only this descriptor, and with it the poller's
	return adopted
}

func adopt(tcp *net.TCPConn) (adopted *conn, err error) {
	c := &conn{local: tcp.LocalAddr(), remote: tcp.RemoteAddr()}
	if c.file, err = duplicate(tcp); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.readable.close()
			c.writable.close()
			c.file.Close()
		}
	}()
	if c.raw, err = c.file.SyscallConn(); err != nil {
		return nil, err
	}
	e := c.raw.Control(func(fd uintptr) {
		if c.readable, err = newEvent(int(fd), unix.EPOLLIN|unix.EPOLLRDHUP); err == nil {
			c.writable, err = newEvent(int(fd), unix.EPOLLOUT)
		}
	})
	if err = errors.Join(e, err); err != nil {
		return nil, err
	}
	c.thread.wait = c.thread.sleep
	c.in.init(c.raw.Read, syscall.Read)
	c.out.init(c.raw.Write, syscall.Write)
	return c, nil
}

// duplicate returns another descriptor of the connection, which Go's poller does not
// watch.
func duplicate(tcp *net.TCPConn) (file *os.File, err error) {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil, err
	}
	e := raw.Control(func(from uintptr) {
		var fd int
		if fd, err = unix.FcntlInt(from, unix.F_DUPFD_CLOEXEC, 0); err != nil {
			return
		}
		if err = reserve.CheckNumber(fd); err != nil {
			unix.Close(fd)
			return
		}
		unix.SetNonblock(fd, false) // else os has the poller watch it
		file = os.NewFile(uintptr(fd), "tcp")
		unix.SetNonblock(fd, true)
	})
	return file, errors.Join(e, err)
}

// Dedicate gives the calling goroutine a thread for reading c, which was adopted or is
// a layer, with a method NetConn, above an adopted one. Nobody else may read until the
// goroutine calls release.
func Dedicate(c net.Conn) (release func()) {
	for {
		switch layer := c.(type) {
		case *conn:
			layer.dedicated = true
			return func() {
				layer.dedicated = false
				layer.thread.leave()
			}
		case interface{ NetConn() net.Conn }:
			c = layer.NetConn()
		default:
			return func() {}
		}
	}
}

// Read checks the deadline when there is nothing to read; a thread does up to idle
// later.
func (c *conn) Read(b []byte) (int, error) {
	for {
		if c.thread.entered {
			if err := c.raw.Read(c.thread.wait); err != nil {
				return 0, c.failed("read", err)
			}
		}
		n, err := c.in.move(b)
		switch {
		case err == unix.EAGAIN:
			c.thread.leave()
			begin := time.Now()
			if err := c.readable.wait(); err != nil {
				return 0, c.failed("read", err)
			}
			if c.quick++; time.Since(begin) >= idle {
				c.quick = 0
			}
			if c.dedicated && c.quick >= busy {
				c.thread.enter()
			}
		case err != nil:
			return 0, c.failed("read", os.NewSyscallError("read", err))
		case n == 0 && c.closed.Load():
			return 0, c.failed("read", nil)
		case n == 0 && len(b) > 0:
			return 0, io.EOF
		default:
			c.thread.octets += n
			return n, nil
		}
	}
}

func (c *conn) Write(b []byte) (written int, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	for written < len(b) {
		n, err := c.out.move(b[written:])
		switch {
		case err == unix.EAGAIN:
			if err := c.writable.wait(); err != nil {
				return written, c.failed("write", err)
			}
		case err != nil:
			return written, c.failed("write", os.NewSyscallError("write", err))
		default:
			written += n
		}
	}
	return written, nil
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
	if c.closed.Swap(true) {
		return c.failed("close", nil)
	}
	err := c.raw.Control(func(fd uintptr) { unix.Shutdown(int(fd), unix.SHUT_RDWR) })
	return errors.Join(err, c.readable.close(), c.writable.close(), c.file.Close())
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}
func (c *conn) SetReadDeadline(t time.Time) error  { return c.setDeadline(c.readable, t) }
func (c *conn) SetWriteDeadline(t time.Time) error { return c.setDeadline(c.writable, t) }

func (c *conn) setDeadline(e *event, t time.Time) error {
	if err := e.setDeadline(t); err != nil {
		return c.failed("set", err)
	}
	return nil
}

// transfer is a system call that moves bytes.
type transfer struct {
	hold func(func(fd uintptr) bool) error // holds the descriptor during the call
	call func(fd int, b []byte) (int, error)
	do   func(fd uintptr) bool // attempt, allocated once

	b   []byte
	n   int
	err error
}

func (t *transfer) init(hold func(func(uintptr) bool) error, call func(int, []byte) (int, error)) {
	t.hold, t.call, t.do = hold, call, t.attempt
}

func (t *transfer) move(b []byte) (int, error) {
	t.b = b
	err := t.hold(t.do)
	t.b = nil
	if err == nil {
		err = t.err
	}
	if err != nil {
		return 0, err
	}
	return t.n, nil
}

func (t *transfer) attempt(fd uintptr) bool {
	t.err = unix.EINTR
	for t.err == unix.EINTR {
		t.n, t.err = t.call(int(fd), t.b)
	}
	return true
}
