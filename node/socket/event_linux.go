package socket

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/flake-go/flake/node/reserve"
)

// event is a socket's readiness for something. Go's poller watches for it only while
// somebody waits.
type event struct {
	epoll  *os.File
	raw    syscall.RawConn
	socket int
	of     uint32

	armed bool
	err   error
	got   [1]unix.EpollEvent
	test  func(epoll uintptr) bool // happened, allocated once
}

func newEvent(socket int, of uint32) (*event, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	e := &event{socket: socket, of: of}
	e.test = e.happened
	if err = reserve.CheckNumber(fd); err == nil {
		err = unix.SetNonblock(fd, true) // so that os has the poller watch it
	}
	if err == nil {
		err = unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, socket, &unix.EpollEvent{Events: unix.EPOLLONESHOT})
	}
	e.epoll = os.NewFile(uintptr(fd), "epoll")
	if err == nil {
		e.raw, err = e.epoll.SyscallConn()
	}
	if err == nil {
		err = e.epoll.SetDeadline(time.Time{}) // fails if the poller does not
	}
	if err != nil {
		e.epoll.Close()
		return nil, err
	}
	return e, nil
}

// wait waits for the event until the deadline, or until the event is closed. Sometimes
// it returns without an event.
func (e *event) wait() error {
	e.armed, e.err = false, nil
	if err := e.raw.Read(e.test); err != nil {
		return err
	}
	return e.err
}

func (e *event) happened(epoll uintptr) bool {
	if !e.armed {
		e.armed = true
		once := unix.EpollEvent{Events: e.of | unix.EPOLLONESHOT}
		if e.err = unix.EpollCtl(int(epoll), unix.EPOLL_CTL_MOD, e.socket, &once); e.err != nil {
			return true
		}
	}
	n, err := unix.EpollWait(int(epoll), e.got[:], 0)
	return n > 0 || err != nil
}

func (e *event) setDeadline(t time.Time) error { return e.epoll.SetReadDeadline(t) }

func (e *event) close() error {
	if e == nil {
		return nil
	}
	return e.epoll.Close()
}
