package socket

import (
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// together starts a goroutine that echoes bytes, alone or with others, and returns what
// ended it. Before an answer it calls meanwhile.
func together(c *conn, meanwhile func()) <-chan error {
	end := make(chan error, 1)
	go func() {
		release := Dedicate(c)
		b := make([]byte, 64<<10)
		step := func() error {
			n, err := c.Read(b)
			if n > 0 {
				meanwhile()
				_, err = c.Write(b[:n])
			}
			return err
		}
		var err error
		for err == nil {
			if err = Share(c, step); err == nil {
				err = step()
			}
		}
		release()
		end <- err
	}()
	return end
}

func nothing() {}

// members counts the connections that the poller reads.
func members() int {
	busyOnes.mu.Lock()
	defer busyOnes.mu.Unlock()
	return len(busyOnes.members)
}

// over waits until no poller is left.
func over() {
	for {
		busyOnes.mu.Lock()
		none := busyOnes.members == nil
		busyOnes.mu.Unlock()
		if none {
			return
		}
		runtime.Gosched()
	}
}

// share calls until the poller reads all of them.
func share(t *testing.T, peers ...net.Conn) {
	t.Helper()
	for members() < len(peers) {
		for _, c := range peers {
			call(t, c)
		}
	}
}

// Several busy connections have one thread, one that is left has its own, and none is
// left over for quiet ones.
func TestShare(t *testing.T) {
	one, itsPeer := pair(t)
	other, theirs := pair(t)
	before := files(t)
	ends := []<-chan error{together(one, nothing), together(other, nothing)}
	share(t, itsPeer, theirs)
	for threads.Load() != 1 || members() != 0 {
		call(t, theirs) // and not the other
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

// Whoever holds up the poller is read apart, and others are answered meanwhile.
func TestShareHeldUp(t *testing.T) {
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

// Nor does a peer that does not read hold up others.
func TestShareUnread(t *testing.T) {
	one, itsPeer := pair(t)
	other, theirs := pair(t)
	defer func(end <-chan error) { theirs.Close(); <-end }(together(other, nothing))
	end := together(one, nothing)
	share(t, itsPeer, theirs)
	go itsPeer.Write(make([]byte, 64<<20)) // and does not read
	for members() > 1 {
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

// Closing ends a connection that the poller reads, in a step and between two.
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

// The error of a step is the end of that connection alone.
func TestShareDeadline(t *testing.T) {
	one, itsPeer := pair(t)
	other, theirs := pair(t)
	end := together(one, nothing)
	defer func(end <-chan error) { theirs.Close(); <-end }(together(other, nothing))
	share(t, itsPeer, theirs)
	one.SetDeadline(time.Now())
	if err := <-end; err == nil {
		t.Error("no error")
	}
	call(t, theirs)
}

// Sharing costs nothing but the system calls.
func TestShareAllocs(t *testing.T) {
	one, itsPeer := pair(t)
	other, theirs := pair(t)
	defer func(end <-chan error) { itsPeer.Close(); <-end }(together(one, nothing))
	defer func(end <-chan error) { theirs.Close(); <-end }(together(other, nothing))
	share(t, itsPeer, theirs)
	b := make([]byte, callOctets)
	for range 1000 { // at times one is quiet for long
		n := testing.AllocsPerRun(20, func() {
			for _, c := range []net.Conn{itsPeer, theirs} {
				c.Write(b)
				io.ReadFull(c, b)
			}
		})
		if n == 0 && members() == 2 {
			return
		}
	}
	t.Error("each call allocates")
}

// A peer that always sends does not keep others from being answered.
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

// Whoever sends most leaves if there is always something to do, and whoever is quiet in
// any case.
func TestSweep(t *testing.T) {
	for _, always := range []bool{false, true} {
		p := poller{epoll: -1, members: make(map[int32]*member)}
		var all []*member
		for i, octets := range []int{100, 200, 0} {
			m := &member{held: new(held), fd: int32(i), back: make(chan error, 1)}
			m.held.octets = octets
			p.members[m.fd] = m
			all = append(all, m)
		}
		few, most, none := all[0], all[1], all[2]
		if !p.sweep(always) {
			t.Error("the poller ends")
		}
		if few.gone || most.gone != always || most.out != always || !none.gone || !none.quiet || none.out {
			t.Errorf("always %t: %+v, %+v, %+v", always, few, most, none)
		}
		for _, m := range all {
			if m.gone != (len(m.back) == 1) || m.gone == (p.members[m.fd] == m) {
				t.Errorf("always %t: not given back: %+v", always, m)
			}
		}
	}
}

// However connections end while the poller reads them, it answers the others, and nothing
// of them is left over. The next have their descriptors.
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
