package socket

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/flake-go/flake/node/reserve"
)

var (
	threads atomic.Int32 // that read
	most    = sync.OnceValue(func() int32 { return int32(min(MaxThreads, reserve.Threads())) })
)

// thread is that of a goroutine, as long as that reads a busy connection.
type thread struct {
	poll [1]unix.PollFd
	wait func(fd uintptr) bool // sleep, made once

	entered bool
	place   place
	queue   queue
	looked  time.Time

	// What following costs, as sums in which each look counts less than the next.
	waited  time.Duration // for its turn to run
	octets  int           // that were read
	before  time.Duration // waited in all until the last look
	shunned time.Time     // when the cost was found to be too high
}

const (
	// lookTime is how often a thread looks where its peer is.
	lookTime = time.Millisecond

	// tooLong is how long a call, of callOctets or so, may have to wait for a thread
	// that follows, on the average. If it is longer, others than the callers have the
	// processor, and for a while the thread runs wherever it can.
	tooLong    = 50 * time.Microsecond
	callOctets = 256
	aWhile     = 200 * time.Millisecond

	// credit is what counts as read at first, so that one long wait is not yet too long.
	credit = 64 * callOctets
)

// enter has the calling goroutine, which does not yet, keep its thread, if not too
// many do.
func (t *thread) enter() {
	if threads.Add(1) > most() {
		threads.Add(-1)
		return
	}
	runtime.LockOSThread()
	t.entered = true
	t.queue = openQueue()
	t.before, _ = t.queue.look()
	t.forget()
	t.looked = time.Time{}
}

// sleep lasts until there is something to read, for idle at most, beside the peer.
func (t *thread) sleep(fd uintptr) bool {
	t.follow(int(fd))
	t.poll[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	for err := error(unix.EINTR); err == unix.EINTR; {
		_, err = unix.Poll(t.poll[:], int(idle/time.Millisecond))
	}
	return true
}

// leave gives the thread back.
func (t *thread) leave() {
	if !t.entered {
		return
	}
	t.entered = false
	t.queue.Close()
	threads.Add(-1)
	if t.place.leave() == nil {
		runtime.UnlockOSThread()
	} // else the thread ends with the goroutine
}

// follow has the thread run where the last segment came in, from time to time.
func (t *thread) follow(socket int) {
	now := time.Now()
	if now.Sub(t.looked) < lookTime {
		return
	}
	t.looked = now
	if !t.affordable() {
		t.shunned = now
		t.place.leave()
	}
	if now.Sub(t.shunned) < aWhile {
		return
	}
	if cpu, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_INCOMING_CPU); err == nil {
		t.place.take(cpu)
	}
}

func (t *thread) affordable() bool {
	all, err := t.queue.look()
	if err != nil {
		return false // the system does not tell
	}
	t.waited += all - t.before
	t.before = all
	if t.waited > tooLong*time.Duration(t.octets/callOctets) {
		t.forget()
		return false
	}
	t.waited -= t.waited / 16
	t.octets -= t.octets / 16
	return true
}

// forget has the thread know nothing of what following costs, but hope for the best.
func (t *thread) forget() { t.waited, t.octets = 0, credit }
