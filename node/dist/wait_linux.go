package dist

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// gatherTime is what is asked for; the kernel adds its timer slack of 50 µs.
	gatherTime = 20 * time.Microsecond
	lingerTime = 20 * time.Microsecond
)

// patient reads from a socket at a pace.
type patient struct {
	conn syscall.RawConn
	pace *pace
	try  func(fd uintptr) bool // r.attempt, made once

	b   []byte
	n   int
	err error
}

// newPatient gives a reader of conn that waits as the pace says, if conn is a
// socket; else conn.
func newPatient(conn net.Conn, p *pace) io.Reader {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return conn
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return conn
	}
	r := &patient{conn: raw, pace: p}
	r.try = r.attempt
	return r
}

func (r *patient) Read(b []byte) (int, error) {
	r.b, r.n, r.err = b, 0, nil
	if err := r.conn.Read(r.try); err != nil {
		return 0, err
	}
	r.b = nil
	return r.n, r.err
}

// attempt reads from the socket. False has Go's poller wait for octets and call
// it again.
func (r *patient) attempt(fd uintptr) bool {
	now := time.Now()
	if r.pace.gather(now) && waiting.TryLock() {
		r.pace.sleeps(toGather)
		t := unix.NsecToTimespec(int64(gatherTime))
		unix.Nanosleep(&t, nil)
		waiting.Unlock()
		begin := now
		now = time.Now()
		r.pace.woke(now, now.Sub(begin))
	}
	if r.read(fd) {
		return true
	}
	if r.pace.linger(now) && waiting.TryLock() {
		defer waiting.Unlock()
		took := time.Duration(0)
		for ; took < lingerTime; took = time.Since(now) {
			if r.read(fd) {
				return true
			}
			// Another process may be what we wait for. Nothing is read after it
			// has had its time: to look at the poller then rather than here was
			// seen to keep the runtime from leaving a thread there, which every
			// segment would wake.
			unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
		}
		r.pace.woke(now.Add(took), took)
	}
	r.pace.sleeps(forWant)
	return false
}

// waiting is held by the one connection that gathers or lingers. Others need not:
// what arrives for them waits while this process does something else.
var waiting sync.Mutex

// read reports whether there was something: octets, or an error.
func (r *patient) read(fd uintptr) bool {
	n, err := unix.Read(int(fd), r.b)
	for err == unix.EINTR {
		n, err = unix.Read(int(fd), r.b)
	}
	switch {
	case err == unix.EAGAIN:
		return false
	case err != nil:
		r.err = os.NewSyscallError("read", err)
	case n == 0:
		r.err = io.EOF
	default:
		r.n = n
	}
	return true
}
