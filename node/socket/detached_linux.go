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

// detached is a descriptor of a socket that Go's poller does not watch, and the thread that reads it.
type detached struct {
	fd   int
	file *os.File        // opened on fd; its Read and Write do not wait, but fail with EAGAIN
	raw  syscall.RawConn // keeps fd open during a call
	thread
	polled *pollConn // not nil while the shared poller reads it
}

// detach duplicates the connection's descriptor for the calling goroutine, which gets its thread
// at the first read. It returns nil if no thread or descriptor is available, or tcp is closed.
func detach(tcp *net.TCPConn) *detached {
	h := &detached{}
	if !h.enter() {
		return nil
	}
	if h.duplicate(tcp) != nil {
		h.leave()
		return nil
	}
	h.wait = h.sleep
	return h
}

// duplicate sets file to a duplicate descriptor that Go's poller does not watch.
func (h *detached) duplicate(tcp *net.TCPConn) error {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	e := raw.Control(func(from uintptr) {
		if h.fd, err = unix.FcntlInt(from, unix.F_DUPFD_CLOEXEC, 0); err != nil {
			return
		}
		if err = reserve.CheckNumber(h.fd); err != nil {
			unix.Close(h.fd)
			return
		}
		unix.SetNonblock(h.fd, false) // otherwise os adds it to the poller
		h.file = os.NewFile(uintptr(h.fd), "tcp")
		unix.SetNonblock(h.fd, true)
		h.raw, err = h.file.SyscallConn()
	})
	return errors.Join(e, err)
}

// read waits for data for at most idle and then fails with EAGAIN. In the shared poller it does
// not wait.
func (h *detached) read(b []byte) (int, error) {
	if h.polled == nil {
		h.pin()
		h.raw.Read(h.wait) // if it fails, so does Read below
	}
	n, err := h.file.Read(b)
	h.octets += n
	return n, err
}

// awaitWritable waits for room to write, for at most idle.
func awaitWritable(fd uintptr) bool {
	poll := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
	unix.Poll(poll[:], int(idle/time.Millisecond))
	return true
}
