package socket

import (
	"errors"
	"io"
	"maps"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// together starts a goroutine that echoes bytes, possibly in the shared poller, and returns a
// channel for the error that ends it. Before each answer, the goroutine calls beforeAnswer.
func together(c *conn, beforeAnswer func()) <-chan error {
	end := make(chan error, 1)
	go func() {
		b := make([]byte, 64<<10)
		end <- Serve(c, func() error {
			n, err := c.Read(b)
			if n > 0 {
				beforeAnswer()
				_, err = c.Write(b[:n])
			}
			return err
		})
	}()
	return end
}

func nothing() {}

// conns returns the number of connections in the shared poller.
func conns() int {
	sharedPoller.mu.Lock()
	defer sharedPoller.mu.Unlock()
	return len(sharedPoller.conns)
}

// over waits until the shared poller has ended.
func over() { sharedPoller.over() }

func (p *poller) over() {
	for {
		p.mu.Lock()
		none := p.conns == nil
		p.mu.Unlock()
		if none {
			return
		}
		runtime.Gosched()
	}
}

// share sends calls until the shared poller reads all connections.
func share(t *testing.T, peers ...net.Conn) {
	t.Helper()
	for conns() < len(peers) {
		for _, c := range peers {
			call(t, c)
		}
	}
}

// A sweep drops quiet connections and, if the runner was always busy, the one that sends most.
func TestSweep(t *testing.T) {
	for i := range 40 { // sweep looks at the connections in a random order
		always := i%2 == 1
		p := poller{epoll: -1, conns: make(map[int]*pollConn)}
		var all []*pollConn
		for fd, octets := range []int{200, 100, 0} {
			m := &pollConn{detached: &detached{fd: fd}, back: make(chan error, 1)}
			m.detached.octets = octets
			p.conns[m.detached.fd] = m
			all = append(all, m)
		}
		most, few, none := all[0], all[1], all[2]
		if !p.sweep(always) {
			t.Error("the poller ends")
		}
		if few.gone || most.gone != always || most.out != always || !none.gone || !none.quiet || none.out {
			t.Fatalf("always %t: %+v, %+v, %+v", always, few, most, none)
		}
		for _, m := range all {
			if m.gone != (len(m.back) == 1) || m.gone == (p.conns[m.detached.fd] == m) {
				t.Errorf("always %t: not given back: %+v", always, m)
			}
		}
		p.drop(most)
		few.detached.octets = 100
		if !p.sweep(true) || few.gone {
			t.Errorf("always %t: the last connection is dropped", always)
		}
	}
}

// unjoined returns a connection for a poller, and its peer.
func unjoined(t *testing.T, step func() error) (*pollConn, *net.TCPConn) {
	t.Helper()
	ours, theirs := pair(t)
	h := new(detached)
	if err := h.duplicate(ours.tcp); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.file.Close() })
	return &pollConn{detached: h, step: step, back: make(chan error, 1)}, theirs
}

// unwatched returns a poller that has no runner and whose timer does not call check. A sweep closes
// the poller.
func unwatched(t *testing.T) *poller {
	t.Helper()
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	return &poller{epoll: fd, conns: make(map[int]*pollConn), watch: time.NewTimer(time.Hour)}
}

// A connection stays in the poller unless it is quiet from one sweep to the next.
func TestSweepQuiet(t *testing.T) {
	p := unwatched(t)
	m, _ := unjoined(t, nil)
	if !p.join(m) || !p.sweep(false) || m.gone {
		t.Error("the connection is dropped by the first sweep")
	}
	if p.sweep(false) || !m.gone || !m.quiet {
		t.Errorf("the connection is not dropped: %+v", m)
	}
}

// A step that lasts from one check to the next is left to its runner, and another runner is
// started. A runner is not replaced in a step that began after the last check, or between steps.
func TestCheck(t *testing.T) {
	p := unwatched(t)
	m, _ := unjoined(t, nil)
	const first = 0
	if !p.join(m) {
		t.Fatal("the connection has not joined the poller")
	}
	p.begin(m.detached.fd)
	p.check()
	if m.gone || !p.end(first, m, nil) {
		t.Fatal("the runner is replaced in a step that has just begun")
	}
	p.check()
	p.check()
	if p.begin(m.detached.fd) != m {
		t.Fatal("the runner is replaced between steps")
	}
	p.check()
	p.check()
	if !m.gone || !m.out || len(m.back) > 0 {
		t.Fatalf("the runner is not replaced: %+v", m)
	}
	p.check()
	p.check()
	p.goOnWithout(m)
	if p.runner != first+1 {
		t.Errorf("the runner is replaced %d times, want once", p.runner-first)
	}
	if p.end(first, m, nil) || len(m.back) != 1 {
		t.Errorf("the old runner does not end: %+v", m)
	}
	p.over()
	p.watch.Stop()
	if p.check(); p.watch.Stop() {
		t.Error("checks continue without connections")
	}
}

// When a connection is about to wait, the runner is replaced if it is in that connection's step.
func TestGoOnWithout(t *testing.T) {
	p := unwatched(t)
	one, _ := unjoined(t, nil)
	other, _ := unjoined(t, nil)
	if !p.join(one) || !p.join(other) {
		t.Fatal("a connection has not joined the poller")
	}
	p.begin(one.detached.fd)
	if p.goOnWithout(other); one.gone || other.gone || p.runner != 0 {
		t.Error("the runner is replaced in the step of another connection")
	}
	if p.goOnWithout(one); !one.out || other.gone || p.runner != 1 {
		t.Error("the runner is not replaced")
	}
	p.leave(other)
	p.over()
}

// A runner that was replaced ends with its step.
func TestReplacedEnds(t *testing.T) {
	p := unwatched(t)
	before := runtime.NumGoroutine()
	var m *pollConn
	m, theirs := unjoined(t, func() error {
		p.goOnWithout(m)
		return nil
	})
	if !p.join(m) {
		t.Fatal("the connection has not joined the poller")
	}
	theirs.Write([]byte("?"))
	p.start()
	if err := <-m.back; err != nil || !m.out {
		t.Errorf("the runner is not replaced: %v", err)
	}
	p.over()
	for runtime.NumGoroutine() > before {
		runtime.Gosched()
	}
}

// An event is ignored if its connection was dropped during the step for the previous event.
func TestShareStale(t *testing.T) {
	p := unwatched(t)
	var both [2]*pollConn
	for i := range both {
		m, theirs := unjoined(t, func() error {
			p.leave(both[1-i])
			return io.EOF
		})
		if both[i] = m; !p.join(m) {
			t.Fatal("the connection has not joined the poller")
		}
		theirs.Write([]byte("?"))
		for readable := 0; readable == 0; {
			readable, _ = unix.Poll([]unix.PollFd{{Fd: int32(m.detached.fd), Events: unix.POLLIN}}, -1)
		}
	}
	p.start() // both have an event now
	if one, other := <-both[0].back, <-both[1].back; (one == nil) == (other == nil) {
		t.Errorf("got %v and %v, want one error", one, other)
	}
	p.over()
}

// If only reserved descriptors are left, or none, no poller is opened.
func TestShareFewFiles(t *testing.T) {
	m, _ := unjoined(t, nil)
	// A poller that has ended keeps the number of its epoll descriptor, which another file, such
	// as this one, may have now.
	another, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(another)
	before := files(t)
	for name, leave := range map[string]func(*testing.T){"kept": func(t *testing.T) { fewFiles(t, 0) }, "none": noFiles} {
		t.Run(name, func(t *testing.T) {
			leave(t)
			p := poller{epoll: another}
			if p.join(m) || p.conns != nil {
				t.Error("a poller is opened")
			}
		})
	}
	if now := files(t); now != before {
		t.Errorf("%d files are open, %d were before", now, before)
	}
}

// A connection that the poller cannot watch does not join it.
func TestShareUnable(t *testing.T) {
	var p poller
	if p.join(&pollConn{detached: &detached{fd: -1}, back: make(chan error, 1)}) {
		t.Error("a connection that cannot be watched has joined")
	}
	p.over()
	m, _ := unjoined(t, nil)
	if !p.join(m) {
		t.Error("a connection that can be watched does not join")
	}
	<-m.back
	p.over()
}

// Together, the poller's connections count as one thread that reads.
func TestReading(t *testing.T) {
	quiet()
	threads.Add(5)
	defer threads.Add(-5)
	p := poller{conns: map[int]*pollConn{1: nil, 2: nil, 3: nil}}
	if n := p.reading(); n != 3 {
		t.Errorf("%d threads read, want 3", n)
	}
}

// A runner is overloaded if it works for more than nine tenths of the time.
func TestOverloaded(t *testing.T) {
	for worked, want := range map[time.Duration]bool{0: false, 9: false, 10: true} {
		if overloaded(worked*time.Millisecond, 10*time.Millisecond) != want {
			t.Errorf("overloaded, for %d of 10 ms: %t", worked, !want)
		}
	}
	if cpuTime() <= 0 {
		t.Error("the thread that runs this test has used no CPU time")
	}
}

// Several busy connections share a thread, a single one has its own, and quiet ones have none.
func TestShare(t *testing.T) {
	one, itsPeer := pair(t)
	other, theirs := pair(t)
	before := files(t)
	ends := []<-chan error{together(one, nothing), together(other, nothing)}
	share(t, itsPeer, theirs)
	for threads.Load() != 1 || conns() != 0 {
		call(t, theirs) // only on this connection
	}
	share(t, itsPeer, theirs)
	quiet()
	if now := files(t); now != before {
		t.Errorf("%d files are open, %d were before", now, before)
	}
	share(t, itsPeer, theirs)
	itsPeer.Close()
	theirs.Close()
	for _, end := range ends {
		if err := <-end; err != io.EOF {
			t.Error(err)
		}
	}
	over()
	if n := threads.Load(); n != 0 {
		t.Errorf("%d threads after the end", n)
	}
}

// A connection that blocks the shared poller is read separately, and others are answered.
func TestShareWaits(t *testing.T) {
	one, itsPeer := pair(t)
	other, theirs := pair(t)
	var waits sync.Mutex
	began := make(chan struct{}, 1)
	end := together(one, func() {
		select {
		case began <- struct{}{}:
		default:
		}
		waits.Lock()
		defer waits.Unlock()
	})
	defer func(end <-chan error) { theirs.Close(); <-end }(together(other, nothing))
	defer func() { itsPeer.Close(); <-end }()
	share(t, itsPeer, theirs)
	waits.Lock()
	for len(began) > 0 {
		<-began
	}
	itsPeer.Write([]byte("?"))
	<-began
	for range 100 {
		call(t, theirs)
	}
	waits.Unlock()
	if _, err := io.ReadFull(itsPeer, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		call(t, theirs)
		call(t, itsPeer)
	}
}

// uncheck stops the checks of the shared poller until it is opened again.
func uncheck() {
	sharedPoller.mu.Lock()
	defer sharedPoller.mu.Unlock()
	if sharedPoller.watch != nil {
		sharedPoller.watch.Stop()
	}
	sharedPoller.watch = time.NewTimer(time.Hour) // a check that is waiting for mu resets this timer
}

// A connection whose peer does not read leaves the shared poller without waiting for a check.
func TestShareUnread(t *testing.T) {
	one, itsPeer := pair(t)
	other, theirs := pair(t)
	defer func(end <-chan error) { theirs.Close(); <-end }(together(other, nothing))
	end := together(one, nothing)
	share(t, itsPeer, theirs)
	uncheck()
	go itsPeer.Write(make([]byte, 64<<20)) // without reading
	for conns() > 1 {
		call(t, theirs)
	}
	for range 100 {
		call(t, theirs)
	}
	one.Close()
	if err := <-end; !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

// Close ends a connection in the shared poller, during a step and between steps.
func TestShareClose(t *testing.T) {
	for name, in := range map[string]bool{"in a step": true, "between steps": false} {
		t.Run(name, func(t *testing.T) {
			one, itsPeer := pair(t)
			other, theirs := pair(t)
			var closes atomic.Bool
			end := together(one, func() {
				if closes.Load() {
					one.Close()
				}
			})
			defer func(end <-chan error) { theirs.Close(); <-end }(together(other, nothing))
			share(t, itsPeer, theirs)
			if in {
				closes.Store(true)
				itsPeer.Write([]byte("?"))
			} else {
				one.Close()
			}
			if err := <-end; !errors.Is(err, net.ErrClosed) {
				t.Error(err)
			}
			call(t, theirs)
		})
	}
}

// Close drops a connection from the shared poller before its descriptor may be used again.
func TestShareCloseFirst(t *testing.T) {
	one, itsPeer := pair(t)
	other, theirs := pair(t)
	var waits sync.Mutex
	began := make(chan struct{}, 1)
	end := together(one, nothing)
	last := together(other, func() {
		select {
		case began <- struct{}{}:
		default:
		}
		waits.Lock()
		defer waits.Unlock()
	})
	defer func() { theirs.Close(); <-last }()
	for dropped := false; !dropped; { // while the runner is in the step of the other connection
		share(t, itsPeer, theirs)
		waits.Lock()
		uncheck()
		for len(began) > 0 {
			<-began
		}
		theirs.Write([]byte("?"))
		<-began
		if conns() == 2 {
			one.Close()
			dropped = true
			if n := conns(); n != 1 {
				t.Errorf("%d connections are in the poller, want 1", n)
			}
		}
		waits.Unlock()
		io.ReadFull(theirs, make([]byte, 1))
	}
	if err := <-end; !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

// The error of a step ends only its connection.
func TestShareDeadline(t *testing.T) {
	one, itsPeer := pair(t)
	other, theirs := pair(t)
	end := together(one, nothing)
	defer func(end <-chan error) { theirs.Close(); <-end }(together(other, nothing))
	share(t, itsPeer, theirs)
	one.SetDeadline(time.Now())
	if err := <-end; err == nil {
		t.Error("Serve returned no error after the deadline")
	}
	call(t, theirs)
}

// A step in the shared poller does not allocate.
func TestShareAllocs(t *testing.T) {
	one, itsPeer := pair(t)
	other, theirs := pair(t)
	defer func(end <-chan error) { itsPeer.Close(); <-end }(together(one, nothing))
	defer func(end <-chan error) { theirs.Close(); <-end }(together(other, nothing))
	share(t, itsPeer, theirs)
	b := make([]byte, callOctets)
	for range 1000 { // on a busy machine a connection may be quiet for long and be dropped
		n := testing.AllocsPerRun(20, func() {
			for _, c := range []net.Conn{itsPeer, theirs} {
				c.Write(b)
				io.ReadFull(c, b)
			}
		})
		if n == 0 && conns() == 2 {
			return
		}
	}
	t.Error("each call allocates")
}

// A peer that sends continuously does not prevent others from being answered.
func TestShareFlood(t *testing.T) {
	one, itsPeer := pair(t)
	other, theirs := pair(t)
	defer func(end <-chan error) { itsPeer.Close(); <-end }(together(one, nothing))
	defer func(end <-chan error) { theirs.Close(); <-end }(together(other, nothing))
	share(t, itsPeer, theirs)
	go io.Copy(io.Discard, itsPeer)
	flood := make(chan struct{})
	go func() {
		defer close(flood)
		for b := make([]byte, 64<<10); ; {
			if _, err := itsPeer.Write(b); err != nil {
				return
			}
		}
	}()
	defer func() { itsPeer.Close(); <-flood }()
	for range 1000 {
		call(t, theirs)
	}
}

// A step that has failed is not called again.
func TestShareError(t *testing.T) {
	one, itsPeer := pair(t)
	other, theirs := pair(t)
	defer func(end <-chan error) { theirs.Close(); <-end }(together(other, nothing))
	failed, end := false, make(chan error, 1)
	go func() {
		b := make([]byte, 1)
		end <- Serve(one, func() error {
			n, err := one.Read(b)
			if failed {
				return errors.New("called again")
			}
			if failed = n > 0 && b[0] == '!'; failed {
				return errors.ErrUnsupported
			}
			if n > 0 {
				_, err = one.Write(b)
			}
			return err
		})
	}()
	share(t, itsPeer, theirs)
	itsPeer.Write([]byte("!"))
	for ended := false; !ended; {
		call(t, theirs)
		select {
		case err := <-end:
			if ended = true; err != errors.ErrUnsupported {
				t.Error(err)
			}
		default:
		}
	}
}

// Connections that are busy stay in the shared poller.
func TestShareStays(t *testing.T) {
	one, itsPeer := pair(t)
	other, theirs := pair(t)
	defer func(end <-chan error) { itsPeer.Close(); <-end }(together(one, nothing))
	defer func(end <-chan error) { theirs.Close(); <-end }(together(other, nothing))
	for range 1000 { // on a busy machine they may be quiet for long and be dropped
		share(t, itsPeer, theirs)
		before := joined()
		for end := time.Now().Add(3 * idle); time.Now().Before(end); {
			call(t, itsPeer)
			call(t, theirs)
		}
		if maps.Equal(joined(), before) {
			return
		}
	}
	t.Error("busy connections are dropped again and again")
}

// A connection without a thread is read as usual while others share one.
func TestShareOthers(t *testing.T) {
	one, itsPeer := pair(t)
	other, theirs := pair(t)
	defer func(end <-chan error) { itsPeer.Close(); <-end }(together(one, nothing))
	defer func(end <-chan error) { theirs.Close(); <-end }(together(other, nothing))
	for shared := 0; shared < 2; {
		third, thirds := pair(t)
		end := together(third, nothing)
		share(t, itsPeer, theirs)
		if call(t, thirds); conns() == 2 {
			shared++
		}
		thirds.Close()
		if err := <-end; err != io.EOF {
			t.Error(err)
		}
	}
}

// If only one connection is busy, it has its own thread.
func TestShareAlone(t *testing.T) {
	over()
	ours, theirs := pair(t)
	defer func(end <-chan error) { theirs.Close(); <-end }(together(ours, nothing))
	for range 100 {
		if earn(t, theirs); conns() > 0 {
			t.Fatal("the only busy connection joined the shared poller")
		}
		call(t, theirs)
	}
}

// joined returns the connections in the shared poller.
func joined() map[int]*pollConn {
	sharedPoller.mu.Lock()
	defer sharedPoller.mu.Unlock()
	return maps.Clone(sharedPoller.conns)
}

// However connections end in the shared poller, it answers the others, and no threads or
// files are left. Later connections reuse the descriptors.
func TestShareSiege(t *testing.T) {
	honest, itsPeer := pair(t)
	before := files(t)
	last := together(honest, nothing)
	ways := []func(ours *conn, theirs *net.TCPConn){
		func(_ *conn, theirs *net.TCPConn) { theirs.SetLinger(0); theirs.Close() },
		func(_ *conn, theirs *net.TCPConn) { theirs.Write(make([]byte, 1<<20)); theirs.Close() },
		func(_ *conn, theirs *net.TCPConn) { theirs.CloseWrite() },
		func(ours *conn, _ *net.TCPConn) { ours.Close() },
		func(ours *conn, theirs *net.TCPConn) { go theirs.Write(make([]byte, 16<<20)); ours.Close() },
		func(ours *conn, _ *net.TCPConn) { ours.SetDeadline(time.Now()) },
	}
	for range 10 {
		peers := []net.Conn{itsPeer}
		var ours []*conn
		var ends []<-chan error
		for range ways {
			a, b := pair(t)
			peers, ours, ends = append(peers, b), append(ours, a), append(ends, together(a, nothing))
		}
		share(t, peers...)
		for i, way := range ways {
			go way(ours[i], peers[i+1].(*net.TCPConn))
		}
		for i, end := range ends {
			for ended := false; !ended; {
				call(t, itsPeer)
				select {
				case err := <-end:
					if ended = true; err == nil {
						t.Errorf("way %d: no error", i)
					}
				default:
				}
			}
			ours[i].Close()
			peers[i+1].Close()
		}
	}
	itsPeer.Close()
	<-last
	over()
	honest.Close()
	if n := threads.Load(); n != 0 {
		t.Errorf("%d threads are left", n)
	}
	if now := files(t); now > before {
		t.Errorf("%d files are open, %d were before", now, before)
	}
}
