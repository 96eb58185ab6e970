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
	threads atomic.Int32 // reading
	most    = sync.OnceValue(func() int32 { return int32(min(MaxThreads, reserve.Threads()/threadsEach)) })
)

// threadsEach is how many a connection may take: to read, and to write to a peer that
// does not read.
const threadsEach = 2

// thread belongs to a goroutine while that reads a busy connection.
type thread struct {
	poll [1]unix.PollFd
	wait func(fd uintptr) bool // sleep, allocated once

	entered bool
	pinned  bool
	place   place
	queue   queue
	looked  time.Time
	yielded time.Time

	// What following costs, as sums in which each look counts less than the next.
	waited  time.Duration // for its turn to run
	octets  int           // read
	before  time.Duration // all waiting up to the last look
	shunned time.Time     // when the cost was found to be too high
}

const (
	// lookTime is how often a thread checks where its peer runs.
	lookTime = time.Millisecond

	// yieldTime is how often it lets Go's scheduler count it as switched. A goroutine
	// that only makes system calls in between keeps the runtime's monitor awake, which
	// looks every 20 microseconds. Once each of Go's processors may be held by such a
	// goroutine it has to: else others wait for milliseconds.
	yieldTime = 5 * time.Millisecond

	// tooLong is the longest average wait, per call of about callOctets, of a thread
	// that follows. Beyond it, other programs occupy the processor, and for a while the
	// thread runs wherever it can.
	tooLong    = 50 * time.Microsecond
	callOctets = 256
	aWhile     = 200 * time.Millisecond

	// credit counts as read at first, so that one long wait is not already too long.
	credit = 64 * callOctets
)

// enter reports whether there may be another thread.
func (t *thread) enter() bool {
	if threads.Add(1) > most() {
		threads.Add(-1)
		return false
	}
	t.entered = true
	return true
}

// pin gives the calling goroutine its thread.
func (t *thread) pin() {
	if t.pinned || !t.entered {
		return
	}
	t.pinned = true
	runtime.LockOSThread()
	t.queue = openQueue()
	t.before, _ = t.queue.look()
	t.forget()
	t.looked = time.Time{}
}

// unpin gives it back.
func (t *thread) unpin() {
	if !t.pinned {
		return
	}
	t.pinned = false
	t.queue.Close()
	if t.place.leave() == nil {
		runtime.UnlockOSThread()
	} // else the thread ends with the goroutine
}

// sleep waits beside the peer for something to read, for at most idle.
func (t *thread) sleep(fd uintptr) bool {
	t.follow(int(fd))
	t.poll[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	for err := error(unix.EINTR); err == unix.EINTR; {
		_, err = unix.Poll(t.poll[:], int(idle/time.Millisecond))
	}
	return true
}

// leave lets another have it.
func (t *thread) leave() {
	if !t.entered {
		return
	}
	t.entered = false
	threads.Add(-1)
	t.unpin()
}

// follow moves the thread, from time to time, to where the last segment came in.
func (t *thread) follow(socket int) {
	now := time.Now()
	if now.Sub(t.looked) < lookTime {
		return
	}
	t.looked = now
	if now.Sub(t.yielded) >= yieldTime {
		t.yielded = now
		yield(threads.Load())
	}
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

// yield does that if so many threads that read leave a processor.
func yield(reading int32) {
	if int(reading) < runtime.GOMAXPROCS(0) {
		runtime.Gosched()
	}
}

func (t *thread) affordable() bool {
	all, err := t.queue.look()
	if err != nil {
		return false // the system does not report it
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

// forget resets what following costs, and hopes for the best.
func (t *thread) forget() { t.waited, t.octets = 0, credit }
