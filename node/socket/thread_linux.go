package socket

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/flake-go/flake/node/reserve"
)

const (
	// checkTime is the interval at which a thread checks where its peers run.
	checkTime = time.Millisecond

	// yieldTime is the interval at which a thread yields to Go's scheduler. A goroutine that
	// does not yield between system calls keeps the runtime's monitor awake, which then
	// checks every 20 microseconds. If such goroutines may hold all of Go's processors,
	// that is necessary, or other goroutines wait for milliseconds.
	yieldTime = 5 * time.Millisecond

	// maxWait bounds the average wait for a processor, per callOctets read, of a thread that
	// is pinned. Beyond it other programs occupy the processor, and for shunTime the thread
	// runs on any processor.
	maxWait    = 50 * time.Microsecond
	callOctets = 256
	shunTime   = 200 * time.Millisecond

	// credit is the initial value of octets, so that one long wait does not exceed maxWait.
	credit = 64 * callOctets

	anywhere = -1
)

// thread is the thread of a runner, which it pins to the processor of its peers. The thread
// does not preempt others there (SCHED_BATCH of sched(7)), so that a BEAM that sends several
// calls is not interrupted at each.
type thread struct {
	cpu   int         // where it is pinned, or anywhere
	usual unix.CPUSet // the processors that it may use
	batch bool        // pin has set the policy

	runQueue *os.File // schedstat of proc(5)
	text     [64]byte // read from it
	checked  time.Time
	yielded  time.Time

	// The cost of being pinned, as decaying sums.
	waited  time.Duration // waiting for a processor
	octets  int           // bytes read
	before  time.Duration // total wait up to the last check
	shunned time.Time     // the last check at which the cost was too high
}

// newThread returns the calling thread.
func newThread() *thread {
	t := &thread{cpu: anywhere, octets: credit}
	f, _ := os.Open("/proc/thread-self/schedstat")
	if f != nil && reserve.Check(f) != nil {
		f.Close()
		f = nil // which returns errors
	}
	t.runQueue = f
	t.before, _ = t.wait()
	return t
}

// follow pins the thread to cpu unless that costs too much.
func (t *thread) follow(now time.Time, cpu int) {
	if !t.affordable() {
		t.shunned = now
	}
	if now.Sub(t.shunned) < shunTime {
		cpu = anywhere
	}
	t.pin(cpu)
}

func (t *thread) affordable() bool {
	all, err := t.wait()
	if err != nil {
		return false
	}
	t.waited += all - t.before
	t.before = all
	if t.waited > maxWait*time.Duration(t.octets/callOctets) {
		t.waited, t.octets = 0, credit
		return false
	}
	t.waited -= t.waited / 16
	t.octets -= t.octets / 16
	return true
}

// wait returns the time for which the thread has waited for a processor.
func (t *thread) wait() (time.Duration, error) {
	n, err := t.runQueue.ReadAt(t.text[:], 0)
	if n == 0 {
		return 0, err
	}
	if string(t.text[:n]) == "0 0 0\n" { // not even its running time is counted
		return 0, errors.ErrUnsupported
	}
	_, rest, _ := bytes.Cut(t.text[:n], []byte(" ")) // skips the running time
	field, _, _ := bytes.Cut(rest, []byte(" "))
	ns, err := strconv.ParseInt(string(field), 10, 64)
	return time.Duration(ns), err
}

// pin pins the calling thread to cpu, or unpins it if cpu is anywhere or not allowed. What an
// operator has changed since the last call stays.
func (t *thread) pin(cpu int) {
	var now unix.CPUSet
	if cpu == t.cpu || unix.SchedGetaffinity(0, &now) != nil {
		return
	}
	if t.cpu == anywhere || now != only(t.cpu) {
		t.usual = now
	}
	there := t.usual
	if cpu != anywhere && t.usual.IsSet(cpu) {
		there = only(cpu)
	} else {
		cpu = anywhere
	}
	if unix.SchedSetaffinity(0, &there) != nil {
		return
	}
	switch t.cpu = cpu; {
	case cpu != anywhere && !t.batch:
		t.batch = swapPolicy(unix.SCHED_NORMAL, unix.SCHED_BATCH) // failure only makes calls slower
	case cpu == anywhere && t.batch:
		t.batch = !swapPolicy(unix.SCHED_BATCH, unix.SCHED_NORMAL)
	}
}

// swapPolicy changes the calling thread's scheduling policy to the second one if it is the
// first: an operator may have chosen another.
func swapPolicy(from, to uint32) bool {
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil || attr.Policy != from {
		return false
	}
	attr.Policy = to
	return unix.SchedSetAttr(0, attr, 0) == nil
}

func only(cpu int) (set unix.CPUSet) {
	set.Set(cpu)
	return set
}
