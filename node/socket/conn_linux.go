package socket

import (
	"errors"
	"io"
	"math"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/flake-go/flake/node/reserve"
)

// conn is a TCP connection, the only owner of its descriptor. A runner watches it.
type conn struct {
	local, remote net.Addr
	fd            int
	writing       sync.Mutex // held in Write

	// Used by the reading goroutine, which is the runner's while it calls step.
	stepping bool // Read does not wait
	octets   int  // bytes read, until the runner adds them to its own

	mu              sync.RWMutex // held for reading while fd is used, for writing to change what follows
	changed         sync.Cond    // want has become less
	runner          *runner
	want            uint32 // the events that the runner waits for
	ended           error
	readBy, writeBy *time.Timer
	step            func() error // unless nil, the runner calls it
	layered         bool         // step may leave data in a buffer
	why             error        // why step became nil during a call
	stepDone        chan error   // receives once step is nil and not being called
}

var conns = struct {
	sync.RWMutex
	byFD map[int32]*conn
}{byFD: make(map[int32]*conn)}

// Adopt returns a connection to be used instead of c, or c if it is not a TCP connection or
// resources are missing. Only one goroutine at a time may read.
func Adopt(c net.Conn) net.Conn {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return c
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return c
	}
	fd := -1 // a descriptor that Go's poller does not watch
	raw.Control(func(from uintptr) { fd, _ = unix.FcntlInt(from, unix.F_DUPFD_CLOEXEC, 0) })
	if fd < 0 {
		return c
	}
	a := &conn{local: tcp.LocalAddr(), remote: tcp.RemoteAddr(), fd: fd, stepDone: make(chan error, 1)}
	a.changed.L = &a.mu
	conns.Lock()
	defer conns.Unlock()
	a.runner = runnerAt(incomingCPU(fd))
	if reserve.CheckNumber(fd) != nil || a.runner == nil || a.control(unix.EPOLL_CTL_ADD) != nil {
		unix.Close(fd)
		return c
	}
	late := func() { a.end("read", os.ErrDeadlineExceeded) }
	a.readBy, a.writeBy = time.AfterFunc(never, late), time.AfterFunc(never, late)
	conns.byFD[int32(fd)] = a
	tcp.Close() // closes its descriptor, not the connection
	return a
}

const never = math.MaxInt64

// incomingCPU returns the processor that received the last segment.
func incomingCPU(fd int) int {
	cpu, _ := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_INCOMING_CPU)
	return max(cpu, 0)
}

// Serve calls step whenever data has arrived, until step fails, and returns its error. It must
// be called with a connection of Adopt, or a layer above one with a method NetConn; on any
// other one step waits for data. A step must read once, handle the data, and return an error
// of Read. It must not panic.
func Serve(c net.Conn, step func() error) (err error) {
	adopted, layered := below(c)
	for err == nil {
		if adopted != nil {
			err = adopted.share(step, layered)
		}
		for i := 0; i < separateSteps && err == nil; i++ {
			err = step()
		}
	}
	return err
}

// below returns the adopted connection that c is, or is a layer of, or nil.
func below(c net.Conn) (adopted *conn, layered bool) {
	for {
		switch layer := c.(type) {
		case *conn:
			return layer, layered
		case interface{ NetConn() net.Conn }:
			c, layered = layer.NetConn(), true
		default:
			return nil, false
		}
	}
}

// share lets the runner call step. It returns the error of step, or nil if a step took long.
func (c *conn) share(step func() error, layered bool) error {
	for c.stepping = layered; c.stepping; { // the layer may have read more than it returned
		if err := step(); err != nil {
			if c.stepping = false; !errors.Is(err, unix.EAGAIN) {
				return err
			}
		}
	}
	c.mu.Lock()
	c.step, c.layered, c.why = step, layered, nil
	if c.ended != nil {
		c.drop(c.failed("read"))
	}
	c.watch(c.want | unix.EPOLLIN)
	c.mu.Unlock()
	return <-c.stepDone
}

// drop ends the calls of step. The caller must hold mu.
func (c *conn) drop(why error) {
	if c.step == nil {
		return
	}
	c.step, c.why = nil, why
	c.watch(c.want &^ unix.EPOLLIN)
	if c.runner.current.Load() != c {
		c.stepDone <- why
	} // else stepped sends it
}

// watch changes want. The caller must hold mu.
func (c *conn) watch(want uint32) {
	if want != c.want && c.ended == nil {
		c.want = want
		c.control(unix.EPOLL_CTL_MOD)
	}
}

func (c *conn) control(op int) error {
	events := c.want
	if events == 0 {
		events = unix.EPOLLONESHOT // else a broken connection would be reported again and again
	}
	return unix.EpollCtl(c.runner.epoll, op, c.fd, &unix.EpollEvent{Events: events, Fd: int32(c.fd)})
}

// arrived handles events, and reports whether step must be called.
func (c *conn) arrived(r *runner, events uint32) (step func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.runner != r {
		return nil
	}
	if events&(unix.EPOLLERR|unix.EPOLLHUP) != 0 {
		events = unix.EPOLLIN | unix.EPOLLOUT
	}
	events &= c.want
	if events&unix.EPOLLIN != 0 && c.step != nil {
		events &^= unix.EPOLLIN
		if stuck.Load() < maxStuck() {
			step, c.stepping = c.step, true
			r.begin(c)
		} else {
			c.drop(nil)
		}
	}
	if events != 0 {
		c.watch(c.want &^ events)
		c.changed.Broadcast()
	}
	return step
}

// stepped ends a call of step, and reports whether the runner's goroutine has not been replaced.
func (c *conn) stepped(r *runner, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stepping = false
	stays := r.current.CompareAndSwap(c, nil)
	if !stays {
		stuck.Add(-1)
	}
	if err != nil && !errors.Is(err, unix.EAGAIN) {
		c.step, c.why = nil, err
		c.watch(c.want &^ unix.EPOLLIN)
	}
	if c.step == nil {
		c.stepDone <- c.why
	}
	return stays
}

// follow moves the connection to the runner of the processor where its peer runs, and returns
// that processor and whether r still reads the connection.
func (c *conn) follow(r *runner) (cpu int, here bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended != nil {
		return 0, false
	}
	cpu = incomingCPU(c.fd)
	if next := runnerAt(cpu); next != r {
		c.control(unix.EPOLL_CTL_DEL)
		c.runner = next
		c.control(unix.EPOLL_CTL_ADD) // there was room for it before
	}
	return cpu, c.runner == r
}

// Read fails with EAGAIN if it would wait in a step that the runner calls.
func (c *conn) Read(b []byte) (n int, err error) {
	n, err = c.transfer(syscall.Read, b, unix.EPOLLIN, c.stepping)
	c.octets += n
	switch {
	case err == nil && n == 0 && len(b) > 0:
		err = io.EOF
	case err != nil && err != unix.EAGAIN:
		err = c.opError("read", err)
	}
	return n, err
}

func (c *conn) Write(b []byte) (written int, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	for written < len(b) {
		n, err := c.transfer(syscall.Write, b[written:], unix.EPOLLOUT, false)
		if err != nil {
			return written, c.opError("write", err)
		}
		written += n
	}
	return written, nil
}

// transfer makes a system call that moves bytes. If that would wait, transfer waits for the
// event first, or fails with EAGAIN in a step.
func (c *conn) transfer(call func(int, []byte) (int, error), b []byte, event uint32, stepping bool) (int, error) {
	for {
		c.mu.RLock()
		n, err := 0, c.ended
		if err == nil {
			n, err = call(c.fd, b)
		}
		c.mu.RUnlock()
		if err != unix.EINTR && (err != unix.EAGAIN || stepping) {
			return max(n, 0), err
		}
		if err == unix.EAGAIN {
			c.wait(event)
		}
	}
}

// wait waits for an event. A runner that is in the connection's step continues without it.
func (c *conn) wait(event uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runner.replace(c)
	for c.watch(c.want | event); c.want&event != 0; c.changed.Wait() {
	}
}

func (c *conn) Close() error { return c.end("close", net.ErrClosed) }

// end closes the connection. Then all methods fail with why.
func (c *conn) end(op string, why error) error {
	conns.Lock()
	defer conns.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended != nil {
		return c.failed(op)
	}
	c.ended = why
	delete(conns.byFD, int32(c.fd))
	c.readBy.Stop()
	c.writeBy.Stop()
	c.drop(c.failed("read"))
	c.want = 0
	c.changed.Broadcast()
	return unix.Close(c.fd)
}

// failed returns the error of package net after the end. The caller must hold mu.
func (c *conn) failed(op string) error { return c.opError(op, c.ended) }

func (c *conn) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: c.local.Network(), Source: c.local, Addr: c.remote, Err: err}
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline sets a time at which the connection ends. There are no calls after it.
func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

func (c *conn) SetReadDeadline(t time.Time) error  { return c.setDeadline(c.readBy, t) }
func (c *conn) SetWriteDeadline(t time.Time) error { return c.setDeadline(c.writeBy, t) }

func (c *conn) setDeadline(timer *time.Timer, t time.Time) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.ended != nil {
		return c.failed("set")
	}
	if timer.Stop(); !t.IsZero() {
		timer.Reset(time.Until(t))
	}
	return nil
}
