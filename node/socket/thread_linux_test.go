package socket

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A thread follows its peer from one processor to the next, and is unpinned at the end.
func TestFollow(t *testing.T) {
	const nowhere = -1
	runtime.LockOSThread() // not unlocked: the thread ends with the test
	q := openRunQueue()
	defer q.Close()
	if _, err := q.check(); err != nil {
		t.Skip("following does not work here:", err)
	}
	usual, attr := affinity(t), policy(t)
	ours, theirs := pair(t)
	at := make(chan int)
	go func() {
		defer close(at)
		runtime.LockOSThread() // to examine the thread when it is released
		release := dedicate(ours)
		for b := make([]byte, callOctets); ; {
			if ours.detached == nil {
				ours.takeOver() // a busy machine may be too slow to earn a thread
			}
			if _, err := ours.Read(b); err != nil {
				break
			}
			cpu := nowhere
			if h := ours.detached; h != nil && h.cpuPin.taken {
				cpu = h.cpuPin.cpu
			}
			at <- cpu
		}
		release()
		if free := affinity(t); free != usual {
			t.Errorf("afterwards the thread runs on %v; usual is %v", free, usual)
		}
		if now := policy(t); now != attr {
			t.Errorf("afterwards the thread has %+v; usual is %+v", now, attr)
		}
	}()
	for _, cpu := range processors(t) {
		there := only(cpu)
		if err := unix.SchedSetaffinity(0, &there); err != nil {
			t.Fatal(err)
		}
		for followed := nowhere; followed != cpu; followed = <-at {
			if _, err := theirs.Write(make([]byte, callOctets)); err != nil {
				t.Fatal(err)
			}
		}
	}
	theirs.Close()
	for range at {
	}
}

// affinity returns the processors allowed for the calling thread.
func affinity(t *testing.T) (set unix.CPUSet) {
	t.Helper()
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	return set
}

// policy returns the scheduling attributes of the calling thread.
func policy(t *testing.T) unix.SchedAttr {
	t.Helper()
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return *attr
}

// nicer returns policy with a higher nice value if possible; only root may lower the value.
func nicer(t *testing.T) unix.SchedAttr {
	t.Helper()
	const nicest = 19
	attr := policy(t)
	attr.Nice = min(attr.Nice+1, nicest)
	return attr
}

// processors returns the numbers of the processors allowed for the calling thread.
func processors(t *testing.T) (list []int) {
	t.Helper()
	for cpu, all := 0, affinity(t); cpu < len(all)*64; cpu++ {
		if all.IsSet(cpu) {
			list = append(list, cpu)
		}
	}
	return list
}

// A thread is unpinned when its peer moves to a processor that is not allowed for it.
func TestFollowElsewhere(t *testing.T) {
	runtime.LockOSThread() // not unlocked: the thread ends with the test
	usual := affinity(t)
	somewhere, elsewhere := processors(t)[0], len(usual)*64-1
	if usual.IsSet(elsewhere) {
		t.Skip("the thread may run everywhere")
	}
	var p cpuPin
	p.take(somewhere)
	if n := affinity(t); !p.taken || n.Count() != 1 {
		t.Fatalf("the thread is pinned: %t, to %d processors", p.taken, n.Count())
	}
	p.take(elsewhere)
	if p.taken || affinity(t) != usual {
		t.Errorf("the thread runs on %v; usual is %v", affinity(t), usual)
	}
}

// moved reports whether the calling goroutine moves to another thread while other goroutines lock
// theirs.
func moved() bool {
	begun, end := make(chan struct{}), make(chan struct{})
	var others sync.WaitGroup
	thread := unix.Gettid()
	for range 16 {
		others.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			begun <- struct{}{}
			<-end
		})
	}
	for range 16 {
		<-begun
	}
	now := unix.Gettid()
	close(end)
	others.Wait()
	return now != thread
}

// A goroutine keeps its thread while it is pinned, or if its caller has locked it to the thread.
func TestPin(t *testing.T) {
	var th thread
	if !th.enter() {
		t.Fatal("enter returned false")
	}
	defer th.leave()
	for range 2 {
		th.pin()
		if th.octets != credit {
			t.Errorf("octets begins with %d, want %d", th.octets, credit)
		}
		if _, err := th.runQueue.Stat(); err != nil {
			t.Error(err)
		}
		if moved() {
			t.Error("the goroutine moves, although it is pinned")
		}
		th.unpin()
		for !moved() {
		}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if th.unpin(); moved() {
		t.Error("the goroutine moves, although it is locked")
	}
}

// A thread that has to wait a long time for its peer's processor leaves it, and returns only
// after shunTime.
func TestFollowShunned(t *testing.T) {
	runtime.LockOSThread() // not unlocked: the thread ends with the test
	usual := affinity(t)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	cpu := processors(t)[0]
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_INCOMING_CPU, cpu); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "schedstat"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	th := thread{runQueue: runQueue{File: f}}
	th.forget()
	for _, step := range []struct {
		waited time.Duration
		fd     int
		want   bool
	}{{1, -1, false}, {1, fd, true}, {time.Second, fd, false}, {time.Second, fd, false}} {
		f.WriteAt(fmt.Appendf(nil, "%d %d %d\n", 1234567, step.waited, 9), 0)
		th.checked = time.Time{}
		if th.follow(step.fd); th.cpuPin.taken != step.want {
			t.Fatalf("%+v: the thread is pinned: %t", step, th.cpuPin.taken)
		}
	}
	if th.shunned.IsZero() || affinity(t) != usual {
		t.Errorf("the thread runs on %v; usual is %v", affinity(t), usual)
	}
	th.checked, th.shunned = time.Time{}, time.Now().Add(-shunTime)
	if th.follow(fd); !th.cpuPin.taken {
		t.Error("the thread does not return")
	}
	th.cpuPin.leave()
}

// Changes by an operator (taskset -a, renice) take effect and are not undone.
func TestFollowChanged(t *testing.T) {
	runtime.LockOSThread() // not unlocked: the thread ends with the test
	free := processors(t)
	if len(free) < 2 {
		t.Skip("one processor")
	}
	var p cpuPin
	p.take(free[0])
	if err := p.leave(); err != nil || p.taken {
		t.Fatal(err)
	}

	rest := only(free[1])
	if err := unix.SchedSetaffinity(0, &rest); err != nil {
		t.Fatal(err)
	}
	attr := nicer(t)
	if err := unix.SchedSetAttr(0, &attr, 0); err != nil {
		t.Fatal(err)
	}
	if p.take(free[0]); p.taken {
		t.Error("the thread was pinned to a processor that it may no longer use")
	}
	p.take(free[1])
	if err := p.leave(); err != nil || affinity(t) != rest {
		t.Errorf("afterwards: %v on %v, want %v", err, affinity(t), rest)
	}
	if now := policy(t); now != attr {
		t.Errorf("afterwards: %+v, want %+v", now, attr)
	}
}

// A thread that may run on only one processor follows a peer there.
func TestFollowOne(t *testing.T) {
	runtime.LockOSThread() // not unlocked: the thread ends with the test
	cpu := processors(t)[0]
	one := only(cpu)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Fatal(err)
	}
	before := policy(t)
	p := cpuPin{cpu: cpu} // as left by an earlier peer
	if err := p.leave(); err != nil || p.taken {
		t.Errorf("%v, taken: %t", err, p.taken)
	}
	if p.take(cpu); !p.taken {
		t.Error("the thread is not pinned")
	}
	if now := policy(t); before.Policy == unix.SCHED_NORMAL && now.Policy != unix.SCHED_BATCH {
		t.Errorf("the policy is %d, want SCHED_BATCH", now.Policy)
	}
}

// A policy that an operator chose is kept.
func TestFollowPolicy(t *testing.T) {
	runtime.LockOSThread() // not unlocked: the thread ends with the test
	batch := policy(t)
	batch.Policy = unix.SCHED_BATCH
	if err := unix.SchedSetAttr(0, &batch, 0); err != nil {
		t.Fatal(err)
	}
	var p cpuPin
	p.take(processors(t)[0])
	if err := p.leave(); err != nil || policy(t) != batch {
		t.Errorf("afterwards: %v, %+v, want %+v", err, policy(t), batch)
	}
}

// A thread whose processors cannot be restored ends with its goroutine.
func TestFollowLost(t *testing.T) {
	runtime.LockOSThread() // not unlocked: the thread ends with the test
	cpu := processors(t)[0]
	there := only(cpu)
	if err := unix.SchedSetaffinity(0, &there); err != nil {
		t.Fatal(err)
	}
	th := thread{pinned: true, cpuPin: cpuPin{taken: true, cpu: cpu, batch: true}} // usual: none
	if th.unpin(); moved() {
		t.Error("other goroutines get the thread")
	}
}

// Changes by an operator while the thread follows are not undone either.
func TestFollowConfined(t *testing.T) {
	runtime.LockOSThread() // not unlocked: the thread ends with the test
	usual := affinity(t)
	free := processors(t)
	if len(free) < 2 {
		t.Skip("one processor")
	}
	rest := only(free[1])
	for _, next := range free[:2] {
		if err := unix.SchedSetaffinity(0, &usual); err != nil {
			t.Fatal(err)
		}
		var p cpuPin
		p.take(free[0])
		if err := unix.SchedSetaffinity(0, &rest); err != nil {
			t.Fatal(err)
		}
		p.take(next)
		attr := nicer(t)
		if err := unix.SchedSetAttr(0, &attr, 0); err != nil {
			t.Fatal(err)
		}
		if err := p.leave(); err != nil || affinity(t) != rest {
			t.Errorf("after %d: %v on %v, want %v", next, err, affinity(t), rest)
		}
		attr.Policy = unix.SCHED_NORMAL
		if now := policy(t); now != attr {
			t.Errorf("after %d: %+v, want %+v", next, now, attr)
		}
	}
}

// A thread stops following only when it waits too long for its processor.
func TestAffordable(t *testing.T) {
	for name, test := range map[string]struct {
		waits  time.Duration // between checks
		octets int           // in that time
		want   bool
	}{
		"one caller":                {20 * time.Microsecond, callOctets, true},
		"one caller, others run":    {3 * time.Millisecond, callOctets, false},
		"many callers":              {2 * time.Millisecond, 64 * callOctets, true},
		"many callers, others run":  {4 * time.Millisecond, 64 * callOctets, false},
		"nothing to wait for":       {0, 0, true},
		"a little too long":         {maxWait + 1, callOctets, false},
		"no longer than allowed":    {maxWait, callOctets, true},
		"without calls, others run": {time.Millisecond, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "schedstat")
			f, err := os.Create(file)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			setWait := func(waited time.Duration) { f.WriteAt(fmt.Appendf(nil, "%d %d %d\n", 1234567, waited, 9), 0) }

			th := thread{runQueue: runQueue{File: f}}
			th.forget()
			affordable := true
			for i := range time.Duration(1000) {
				setWait((i + 1) * test.waits)
				th.octets += test.octets
				affordable = affordable && th.affordable()
			}
			if affordable != test.want {
				t.Errorf("affordable: %t", affordable)
			}
			setWait(time.Hour)
			if th.affordable() || !th.affordable() {
				t.Error("a long wait counts more than once, or not at all")
			}
		})
	}
}

// If the system does not report how long threads wait, they do not follow their peers.
func TestAffordableUnknown(t *testing.T) {
	if new(thread).affordable() {
		t.Error("affordable at an unknown cost")
	}
	file := filepath.Join(t.TempDir(), "schedstat")
	if err := os.WriteFile(file, []byte("0 0 0\n"), 0o600); err != nil { // possible on Linux before 5.14
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	th := thread{runQueue: runQueue{File: f}}
	th.forget()
	if th.affordable() {
		t.Error("affordable, although nothing is counted")
	}
}
