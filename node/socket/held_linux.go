package socket

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/flake-go/flake/node/reserve"
)

// held is a descriptor of a socket that Go's poller does not watch, and the thread that reads it.
type held struct {
	file *os.File // keeps the descriptor open while it is used
	raw  syscall.RawConn
	thread
	polled   *pollConn // not nil while the shared poller reads it
	in, out  transfer
	writable func(fd uintptr) bool // awaitWritable, allocated once
}

// hold duplicates the connection's descriptor for the calling goroutine, which gets its thread
// at the first read. It returns nil if no thread or descriptor is available.
func hold(tcp *net.TCPConn) *held {
	h := &held{}
	if !h.enter() {
		return nil
	}
	if h.duplicate(tcp) != nil {
		h.leave()
		return nil
	}
	h.wait, h.writable = h.sleep, awaitWritable
	h.in.init(h.raw.Read, syscall.Read)
	h.out.init(h.raw.Write, syscall.Write)
	return h
}

// duplicate sets file to a duplicate descriptor that Go's poller does not watch.
func (h *held) duplicate(tcp *net.TCPConn) error {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
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
		unix.SetNonblock(fd, false) // otherwise os adds it to the poller
		h.file = os.NewFile(uintptr(fd), "tcp")
		unix.SetNonblock(fd, true)
		h.raw, err = h.file.SyscallConn()
	})
	return errors.Join(e, err)
}

// read waits for data for at most idle and then fails with EAGAIN. In the shared poller it does
// not wait.
func (h *held) read(b []byte) (int, error) {
	if h.polled == nil {
		h.pin()
		if err := h.raw.Read(h.wait); err != nil {
			return 0, err
		}
	}
	n, err := h.in.move(b)
	h.octets += n
	if err != nil && err != unix.EAGAIN {
		err = os.NewSyscallError("read", err)
	}
	return n, err
}

// write writes as much as there is room for. If there is no room, it fails with EAGAIN.
func (h *held) write(b []byte) (int, error) {
	n, err := h.out.move(b)
	if err == unix.EAGAIN {
		return 0, err
	}
	return n, os.NewSyscallError("write", err)
}

// awaitWritable waits for room to write, for at most idle.
func awaitWritable(fd uintptr) bool {
	poll := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
	unix.Poll(poll[:], int(idle/time.Millisecond))
	return true
}

// transfer is a system call that moves bytes.
type transfer struct {
	hold func(func(fd uintptr) bool) error // keeps the descriptor open during the call
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
