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

// held is a descriptor of a socket outside Go's poller, and the thread that reads it.
type held struct {
	file *os.File // holds the descriptor while somebody uses it
	raw  syscall.RawConn
	thread
	member   *member // while the poller reads it
	in, out  transfer
	writable func(fd uintptr) bool // awaitWritable, allocated once
}

// hold returns another descriptor of the connection for the calling goroutine, which
// has a thread once it reads; nil if there is none.
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

// duplicate sets the file to another descriptor, which Go's poller does not watch.
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
		unix.SetNonblock(fd, false) // else os has the poller watch it
		h.file = os.NewFile(uintptr(fd), "tcp")
		unix.SetNonblock(fd, true)
		h.raw, err = h.file.SyscallConn()
	})
	return errors.Join(e, err)
}

// read waits for bytes for at most idle; then it fails with EAGAIN. The poller does
// not wait.
func (h *held) read(b []byte) (int, error) {
	if h.member == nil {
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

// write writes what there is room for. Without any it fails with EAGAIN.
func (h *held) write(b []byte) (int, error) {
	n, err := h.out.move(b)
	if err == unix.EAGAIN {
		return 0, err
	}
	return n, os.NewSyscallError("write", err)
}

// awaitWritable waits for at most idle.
func awaitWritable(fd uintptr) bool {
	poll := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
	unix.Poll(poll[:], int(idle/time.Millisecond))
	return true
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
