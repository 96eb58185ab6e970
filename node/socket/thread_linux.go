package socket

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/flake-go/flake/node/reserve"
)

var threads atomic.Int32 // number of threads that read

// thread is the thread of a goroutine that reads a busy connection.
type thread struct {
	poll [1]unix.PollFd
	wait func(fd uintptr) bool // sleep, allocated once

	entered  bool
	pinned   bool
	cpuPin   cpuPin
	runQueue runQueue
	checked  time.Time
	yielded  time.Time

	// The cost of following the peer, as decaying sums.
	waited  time.Duration // waiting for a processor
	octets  int           // bytes read
	before  time.Duration // total wait up to the last check
	shunned time.Time     // the last check at which the cost was too high
}

const (
	// checkTime is the interval at which a thread checks where its peer runs.
	checkTime = time.Millisecond

	// yieldTime is the interval at which a thread yields to Go's scheduler. A goroutine that does
	// not yield between system calls keeps the runtime's monitor awake, which then checks every
	// 20 microseconds. The checks are necessary if such goroutines may hold all of Go's
	// processors; without them, other goroutines would wait for milliseconds.
	yieldTime = 5 * time.Millisecond

	// maxWait bounds how long a thread that follows its peer may wait for a processor, on average
	// for each callOctets bytes that it reads. A longer wait means that other programs occupy the
	// processor; then the thread runs on any processor for shunTime.
	maxWait    = 50 * time.Microsecond
	callOctets = 256
	shunTime   = 200 * time.Millisecond

	// credit is the initial value of octets, so that one long wait does not exceed maxWait.
	credit = 64 * callOctets
)

// enter counts the thread and reports whether the limit allows it.
func (t *thread) enter() bool {
	if threads.Add(1) > most() {
		threads.Add(-1)
		return false
	}
	t.entered = true
	return true
}

// pin locks the calling goroutine to its thread.
func (t *thread) pin() {
	if t.pinned || !t.entered {
		return
	}
	t.pinned = true
	runtime.LockOSThread()
	t.runQueue = openRunQueue()
	t.before, _ = t.runQueue.check()
	t.forget()
}

func (t *thread) unpin() {
	if !t.pinned {
		return
	}
	t.pinned = false
	t.runQueue.Close()
	if t.cpuPin.leave() == nil {
		runtime.UnlockOSThread()
	} // otherwise the thread ends with the goroutine
}

// sleep waits for data for at most idle, on the peer's processor.
func (t *thread) sleep(fd uintptr) bool {
	t.follow(int(fd))
	t.poll[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	for err := error(unix.EINTR); err == unix.EINTR; {
		_, err = unix.Poll(t.poll[:], int(idle/time.Millisecond))
	}
	return true
}

func (t *thread) leave() {
	if !t.entered {
		return
	}
	t.entered = false
	threads.Add(-1)
	t.unpin()
}

// follow moves the thread to the processor that received the last segment.
func (t *thread) follow(socket int) {
	now := time.Now()
	if now.Sub(t.checked) < checkTime {
		return
	}
	t.checked = now
	if now.Sub(t.yielded) >= yieldTime {
		t.yielded = now
		yield(threads.Load())
	}
	if !t.affordable() {
		t.shunned = now
		t.cpuPin.leave()
	}
	if now.Sub(t.shunned) < shunTime {
		return
	}
	if cpu, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_INCOMING_CPU); err == nil {
		t.cpuPin.take(cpu)
	}
}

// yield yields to Go's scheduler, unless reading threads may hold all processors.
func yield(reading int32) {
	if int(reading) < runtime.GOMAXPROCS(0) {
		runtime.Gosched()
	}
}

func (t *thread) affordable() bool {
	all, err := t.runQueue.check()
	if err != nil {
		return false // the system does not report the wait
	}
	t.waited += all - t.before
	t.before = all
	if t.waited > maxWait*time.Duration(t.octets/callOctets) {
		t.forget()
		return false
	}
	t.waited -= t.waited / 16
	t.octets -= t.octets / 16
	return true
}

func (t *thread) forget() { t.waited, t.octets = 0, credit }

// cpuPin pins a thread to one processor. The thread does not preempt other threads there
// (SCHED_BATCH of sched(7)), so that a BEAM that sends several calls is not interrupted after each
// one.
type cpuPin struct {
	taken bool
	cpu   int
	usual unix.CPUSet // the processors allowed before
	batch bool        // take has set the policy
}

// take pins the calling thread to cpu, or to its usual processors if cpu is not one of them.
func (p *cpuPin) take(cpu int) {
	if p.taken && p.cpu == cpu {
		return
	}
	if p.taken {
		p.confine()
	} else if unix.SchedGetaffinity(0, &p.usual) != nil {
		return
	}
	there := only(cpu)
	if !p.usual.IsSet(cpu) || unix.SchedSetaffinity(0, &there) != nil {
		p.leave()
		return
	}
	if !p.taken {
		p.batch, _ = swapPolicy(unix.SCHED_NORMAL, unix.SCHED_BATCH) // failure only makes calls slower
	}
	p.taken, p.cpu = true, cpu
}

// leave undoes take for the calling thread.
func (p *cpuPin) leave() error {
	if !p.taken {
		return nil
	}
	p.confine()
	err := unix.SchedSetaffinity(0, &p.usual)
	if err == nil && p.batch {
		_, err = swapPolicy(unix.SCHED_BATCH, unix.SCHED_NORMAL)
	}
	p.taken = err != nil
	return err
}

// swapPolicy changes the calling thread's scheduling policy from one value to the other. It does
// nothing if the thread has a third policy, which an operator may have chosen.
func swapPolicy(from, to uint32) (swapped bool, err error) {
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil || attr.Policy != from {
		return false, err
	}
	attr.Policy = to
	err = unix.SchedSetAttr(0, attr, 0)
	return err == nil, err
}

// confine sets usual to the allowed processors if they have changed since take.
func (p *cpuPin) confine() {
	var now unix.CPUSet
	if unix.SchedGetaffinity(0, &now) == nil && now != only(p.cpu) {
		p.usual = now
	}
}

func only(cpu int) (set unix.CPUSet) {
	set.Set(cpu)
	return set
}

// runQueue measures the time that a thread waits for a processor.
type runQueue struct {
	*os.File
	text [64]byte
}

// openRunQueue opens the schedstat file of the calling thread: see proc(5).
func openRunQueue() runQueue {
	f, _ := os.Open("/proc/thread-self/schedstat")
	if reserve.Check(f) != nil { // fails without a file too
		f.Close()
		f = nil
	}
	return runQueue{File: f} // a nil file has no text
}

// check returns the total wait of the thread.
func (q *runQueue) check() (waited time.Duration, err error) {
	n, _ := q.ReadAt(q.text[:], 0)       // without text there is no number
	if string(q.text[:n]) == "0 0 0\n" { // not even its running time is counted
		return 0, errors.ErrUnsupported
	}
	_, rest, _ := bytes.Cut(q.text[:n], []byte(" ")) // skips the running time
	field, _, _ := bytes.Cut(rest, []byte(" "))
	ns, err := strconv.ParseInt(string(field), 10, 64)
	return time.Duration(ns), err
}
