package socket

import (
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/flake-go/flake/node/reserve"
)

// poller reads all busy connections, if there are several, in one goroutine: its
// runner. A connection in whose step the runner blocks keeps that goroutine until the
// step is over; the others get another.
type poller struct {
	mu      sync.Mutex
	epoll   int
	members map[int32]*member // by descriptor; nil: nobody polls
	runner  int               // how many there have been
	at      *member           // whose step runs
	steps   uint64            // begun
	seen    uint64            // steps at the last look
	watch   *time.Timer       // calls look
}

var busyOnes poller

// member is a connection among those.
type member struct {
	fd     int32
	step   func() error
	back   chan error // receives once, when the poller has done with it
	active bool       // since the last sweep
	gone   bool
	slow   bool // the poller would have had to wait for it
	alone  bool // no others are busy
}

// join fails if there is no descriptor for a poller.
func (p *poller) join(m *member) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.members == nil && !p.open() {
		return false
	}
	if unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, int(m.fd), &unix.EpollEvent{Events: unix.EPOLLIN, Fd: m.fd}) != nil {
		return false
	}
	p.members[m.fd] = m
	return true
}

func (p *poller) open() bool {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return false
	}
	if reserve.CheckNumber(fd) != nil {
		unix.Close(fd)
		return false
	}
	p.epoll, p.members = fd, make(map[int32]*member)
	p.start()
	if p.watch == nil {
		p.watch = time.AfterFunc(idle, p.look)
	}
	p.watch.Reset(idle)
	return true
}

func (p *poller) start() {
	p.runner++
	p.at = nil
	go p.run(p.runner, p.epoll)
}

// run calls the step of each member that has something to read.
func (p *poller) run(runner, epoll int) {
	runtime.LockOSThread() // not unlocked: the thread ends with the goroutine
	swapPolicy(unix.SCHED_NORMAL, unix.SCHED_BATCH)
	var events [MaxThreads]unix.EpollEvent
	swept, yielded := time.Now(), time.Now()
	for {
		n, _ := unix.EpollWait(epoll, events[:], int(idle/time.Millisecond))
		for _, e := range events[:max(n, 0)] {
			if m := p.begin(e.Fd); m != nil && !p.end(runner, m, m.step()) {
				return
			}
		}
		now := time.Now()
		if now.Sub(yielded) >= yieldTime {
			yielded = now
			yield(p.threads())
		}
		if now.Sub(swept) >= idle {
			swept = now
			if !p.sweep() {
				return
			}
		}
	}
}

// threads returns how many read, with the poller's own.
func (p *poller) threads() int32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return threads.Load() - int32(len(p.members)) + 1
}

func (p *poller) begin(fd int32) *member {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.members[fd]
	if m != nil {
		m.active = true
		p.at = m
		p.steps++
	}
	return m
}

// end reports whether the runner goes on: another may have taken its place.
func (p *poller) end(runner int, m *member, err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	goesOn := p.runner == runner
	if goesOn {
		p.at = nil
	}
	if err != nil {
		p.drop(m)
	}
	if m.gone {
		m.back <- err
	}
	return goesOn
}

// sweep gives quiet members back, or ends the poller if there are none.
func (p *poller) sweep() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.members {
		if m.alone = threads.Load() == 1; m.alone || !m.active {
			p.drop(m)
			m.back <- nil
		}
		m.active = false
	}
	if len(p.members) > 0 {
		return true
	}
	unix.Close(p.epoll)
	p.members = nil
	p.runner++
	return false
}

// look has another runner take over if one step takes long.
func (p *poller) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.members == nil {
		return
	}
	if p.at != nil && p.steps == p.seen {
		p.replace()
	}
	p.seen = p.steps
	p.watch.Reset(idle)
}

// hold tells the poller that m's step, if it runs, has to wait.
func (p *poller) hold(m *member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at == m {
		p.replace()
	}
}

func (p *poller) replace() {
	p.at.slow = true
	p.drop(p.at)
	p.start()
}

// leave ends m's part, at once or when its step is over.
func (p *poller) leave(m *member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m.gone {
		return
	}
	p.drop(m)
	if p.at != m {
		m.back <- nil
	}
}

func (p *poller) drop(m *member) {
	if m.gone {
		return
	}
	m.gone = true
	delete(p.members, m.fd)
	unix.EpollCtl(p.epoll, unix.EPOLL_CTL_DEL, int(m.fd), nil)
}
