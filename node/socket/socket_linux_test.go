package socket

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/flake-go/flake/node/certs/certstest"
	"github.com/flake-go/flake/node/reserve"
	"github.com/flake-go/flake/node/tlslimit"
)

// accepted returns both ends of a TCP connection, which the caller must close.
func accepted(t testing.TB) (ours net.Conn, theirs *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if ours, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return ours, c.(*net.TCPConn)
}

// pair is like accepted, but adopts ours.
func pair(t testing.TB) (ours *conn, theirs *net.TCPConn) {
	t.Helper()
	a, theirs := accepted(t)
	ours, ok := Adopt(a).(*conn)
	if !ok {
		t.Fatal("not adopted")
	}
	t.Cleanup(func() { ours.Close(); theirs.Close() })
	return ours, theirs
}

// echo starts a goroutine that serves c by echoing what it reads, and returns the error that
// ended it. Before each answer it calls before.
func echo(c net.Conn, before func()) <-chan error {
	end := make(chan error, 1)
	b := make([]byte, 64<<10)
	go func() {
		end <- Serve(c, func() error {
			n, err := c.Read(b)
			if n > 0 {
				before()
				_, err = c.Write(b[:n])
			}
			return err
		})
	}()
	return end
}

func nothing() {}

// call sends a byte and waits for its echo.
func call(t *testing.T, c net.Conn) {
	t.Helper()
	var b [1]byte
	if _, err := c.Write(b[:]); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, b[:]); err != nil {
		t.Fatal(err)
	}
}

// shared reports whether a runner calls c's step.
func (c *conn) shared() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.step != nil
}

// await waits until ok returns true.
func await(ok func() bool) {
	for !ok() {
		runtime.Gosched()
	}
}

func second(_ int, err error) error { return err }

// Bytes arrive in order, and then the end of the stream.
func TestStream(t *testing.T) {
	for name, in := range map[string]bool{"by Read": false, "by steps": true} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := pair(t)
			sent := bytes.Repeat([]byte("one after the other "), 500_000)
			write := func(c net.Conn) {
				for rest := sent; len(rest) > 0; {
					n := min(len(rest), 1+len(rest)%50_000)
					if n, err := c.Write(rest[:n]); err != nil {
						t.Error(n, err)
						return
					}
					rest = rest[n:]
				}
				c.Write(nil)
			}
			var all sync.WaitGroup
			all.Go(func() { write(ours) })
			all.Go(func() {
				got := make([]byte, len(sent))
				if _, err := io.ReadFull(theirs, got); err != nil || !bytes.Equal(got, sent) {
					t.Error(err)
				}
				write(theirs)
				theirs.CloseWrite()
			})
			var got []byte
			b := make([]byte, 10_000)
			step := func() error {
				n, err := ours.Read(b[:1+len(got)%len(b)])
				got = append(got, b[:n]...)
				return err
			}
			var err error
			if in {
				err = Serve(ours, step)
			} else {
				for err == nil {
					err = step()
				}
			}
			if err != io.EOF || !bytes.Equal(got, sent) {
				t.Errorf("%v after %d bytes", err, len(got))
			}
			all.Wait()
			if n, err := ours.Read(nil); n != 0 || err != nil {
				t.Errorf("an empty read: %d, %v", n, err)
			}
		})
	}
}

// A waiting Read, Write or Serve ends with the same error as in package net.
func TestEnds(t *testing.T) {
	async := func(f func() error) <-chan error {
		end := make(chan error, 1)
		go func() { end <- f() }()
		return end
	}
	waits := func(c *conn, event uint32) {
		await(func() bool {
			c.mu.RLock()
			defer c.mu.RUnlock()
			return c.want&event != 0
		})
	}
	const more = 64 << 20 // than the kernel takes without a reader
	for name, test := range map[string]struct {
		end  func(ours *conn, theirs *net.TCPConn)
		want error
	}{
		"deadline": {func(ours *conn, _ *net.TCPConn) { ours.SetDeadline(time.Now()) }, os.ErrDeadlineExceeded},
		"later deadline": {func(ours *conn, _ *net.TCPConn) {
			ours.SetDeadline(time.Now().Add(time.Hour))
			ours.SetDeadline(time.Time{})
			ours.SetDeadline(time.Now().Add(time.Millisecond))
		}, os.ErrDeadlineExceeded},
		"closed": {func(ours *conn, _ *net.TCPConn) { ours.Close() }, net.ErrClosed},
		"reset":  {func(_ *conn, theirs *net.TCPConn) { theirs.SetLinger(0); theirs.Close() }, syscall.ECONNRESET},
	} {
		for way, wait := range map[string]func(*testing.T, *conn, *net.TCPConn) <-chan error{
			"read": func(_ *testing.T, ours *conn, _ *net.TCPConn) <-chan error {
				end := async(func() error { return second(ours.Read(make([]byte, 9))) })
				waits(ours, unix.EPOLLIN)
				return end
			},
			"write": func(_ *testing.T, ours *conn, _ *net.TCPConn) <-chan error {
				end := async(func() error { return second(ours.Write(make([]byte, more))) })
				waits(ours, unix.EPOLLOUT)
				return end
			},
			"serve": func(t *testing.T, ours *conn, theirs *net.TCPConn) <-chan error {
				end := echo(ours, nothing)
				call(t, theirs)
				return end
			},
			"write of a step": func(t *testing.T, ours *conn, theirs *net.TCPConn) <-chan error {
				end := echo(ours, nothing)
				call(t, theirs)
				go theirs.Write(make([]byte, more)) // without reading
				waits(ours, unix.EPOLLOUT)
				return end
			},
			"serve beside a write": func(t *testing.T, ours *conn, theirs *net.TCPConn) <-chan error {
				end := echo(ours, nothing)
				call(t, theirs)
				written := async(func() error { return second(ours.Write(make([]byte, more))) })
				waits(ours, unix.EPOLLOUT)
				t.Cleanup(func() { ours.Close(); <-written })
				return end
			},
		} {
			if name == "reset" && way == "serve beside a write" {
				continue // the error is reported to either
			}
			t.Run(name+"/"+way, func(t *testing.T) {
				ours, theirs := pair(t)
				end := wait(t, ours, theirs)
				test.end(ours, theirs)
				err := <-end
				var op *net.OpError
				if !errors.Is(err, test.want) || !errors.As(err, &op) || op.Addr.String() != theirs.LocalAddr().String() {
					t.Errorf("%v, want %v", err, test.want)
				}
			})
		}
	}
}

// A deadline that was moved or removed does not end a connection.
func TestDeadlineMoved(t *testing.T) {
	ours, theirs := pair(t)
	end := echo(ours, nothing)
	const soon = 20 * time.Millisecond
	for begin := time.Now(); time.Since(begin) < 5*soon; {
		ours.SetDeadline(time.Now().Add(soon))
		ours.SetDeadline(time.Now().Add(time.Hour))
		call(t, theirs)
	}
	ours.SetDeadline(time.Now().Add(soon))
	ours.SetDeadline(time.Time{})
	time.Sleep(2 * soon) // nothing must happen
	call(t, theirs)
	theirs.Close()
	if err := <-end; err != io.EOF {
		t.Error(err)
	}
}

// After Close no file is left, and all methods fail.
func TestClose(t *testing.T) {
	pair(t) // the runner and Go's poller have files
	before := files(t)
	for range 3 {
		ours, theirs := pair(t)
		ours.SetDeadline(time.Now().Add(time.Hour))
		end := echo(ours, nothing)
		call(t, theirs)
		ours.Close()
		theirs.Close()
		<-end
		for what, err := range map[string]error{
			"read":     second(ours.Read(make([]byte, 1))),
			"write":    second(ours.Write(make([]byte, 1))),
			"serve":    Serve(ours, func() error { t.Error("a step"); return nil }),
			"close":    ours.Close(),
			"deadline": ours.SetDeadline(time.Time{}),
		} {
			if !errors.Is(err, net.ErrClosed) {
				t.Errorf("%s after close: %v", what, err)
			}
		}
	}
	if after := files(t); after != before {
		t.Errorf("%d files are open, %d were before", after, before)
	}
}

// Adopt returns other connections unchanged, and Serve serves them.
func TestAdoptOthers(t *testing.T) {
	ours, theirs := net.Pipe()
	if Adopt(ours) != ours {
		t.Error("a pipe was adopted")
	}
	end := echo(ours, nothing)
	call(t, theirs)
	theirs.Close()
	if err := <-end; err != io.EOF {
		t.Error(err)
	}
}

// A runner reads a TLS connection, whatever the peer's segments contain.
func TestTLS(t *testing.T) {
	ca := certstest.NewCA(t, "ca")
	config := ca.Client("both", "localhost")
	config.ServerName, config.RootCAs = "localhost", ca.Pool
	ours, theirs := pair(t)
	server, client := tls.Server(tlslimit.New(ours), config), tls.Client(pieces{theirs}, config)
	end := make(chan error, 1)
	go func() {
		if err := server.Handshake(); err != nil {
			t.Error(err)
		}
		end <- <-echo(above{server}, nothing)
	}()
	for n := range 40 {
		sent := bytes.Repeat([]byte{byte(n)}, 1<<n%200_000)
		go client.Write(sent)
		got := make([]byte, len(sent))
		if _, err := io.ReadFull(client, got); err != nil || !bytes.Equal(got, sent) {
			t.Fatal(err)
		}
	}
	for !ours.shared() { // a step may take long on a busy machine
		call(t, client)
	}
	client.Close()
	if err := <-end; err != io.EOF {
		t.Error(err)
	}
}

// above reads little at a time, so that TLS has more.
type above struct{ *tls.Conn }

func (c above) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b[:min(len(b), 1000)])
	if n > 0 {
		c.NetConn().(*tlslimit.Conn).Used()
	}
	return n, err
}

// pieces writes in small segments.
type pieces struct{ net.Conn }

func (c pieces) Write(b []byte) (n int, err error) {
	for rest := b; len(rest) > 0 && err == nil; rest = rest[min(len(rest), 700):] {
		_, err = c.Conn.Write(rest[:min(len(rest), 700)])
	}
	return len(b), err
}

// fewFiles leaves no descriptors but those that are kept.
func fewFiles(t *testing.T) {
	t.Helper()
	next, err := unix.Dup(0)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(next)
	var usual unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &usual); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Setrlimit(unix.RLIMIT_NOFILE, &usual) })
	few := usual
	few.Cur = uint64(next + reserve.Kept)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
}

// When descriptors are few, connections do not use kept ones, and are served by Go's poller.
func TestFewFiles(t *testing.T) {
	ours, theirs := accepted(t)
	defer ours.Close()
	other, _ := pair(t)
	swap := func(at map[int]*runner) (before map[int]*runner) {
		runners.Lock()
		defer runners.Unlock()
		before, runners.at = runners.at, at
		return before
	}
	defer swap(swap(map[int]*runner{-1: other.runner}))
	before := files(t)
	fewFiles(t)
	if Adopt(ours) != ours {
		t.Error("adopted")
	}
	if runnerAt(0) != other.runner || len(runners.at) != 1 {
		t.Error("another runner")
	}
	if newThread().runQueue != nil {
		t.Error("a thread has opened a file")
	}
	if now := files(t); now != before {
		t.Errorf("%d files are open, %d were before", now, before)
	}
	end := echo(ours, nothing)
	call(t, theirs)
	theirs.Close()
	if err := <-end; err != io.EOF {
		t.Error(err)
	}
}

// An adopted connection has one descriptor.
func TestOneFile(t *testing.T) {
	pair(t) // the runner and Go's poller have files
	before := files(t)
	ours, theirs := pair(t)
	end := echo(ours, nothing)
	call(t, theirs)
	const each = 2 // one at each end
	if now := files(t); now != before+each {
		t.Errorf("%d files are open, %d were before", now, before)
	}
	theirs.Close()
	<-end
}

// files returns the number of open files.
func files(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list) - 1 // without the directory itself
}

// A step that takes long does not delay others. Afterwards, its connection is read
// separately for a while.
func TestLongStep(t *testing.T) {
	one, itsPeer := pair(t)
	other, theirs := pair(t)
	began, goOn := make(chan struct{}), make(chan struct{})
	var long atomic.Bool
	end := echo(one, func() {
		if long.Swap(false) {
			began <- struct{}{}
			<-goOn
		}
	})
	defer func(end <-chan error) { theirs.Close(); <-end }(echo(other, nothing))
	call(t, itsPeer)
	for range 2 {
		long.Store(true)
		itsPeer.Write([]byte("?"))
		<-began
		itsPeer.Write([]byte("?")) // does not wake the runner again and again
		for range 100 {
			call(t, theirs)
		}
		if n := stuck.Load(); n != 1 {
			t.Errorf("%d steps are stuck", n)
		}
		goOn <- struct{}{}
		if _, err := io.ReadFull(itsPeer, make([]byte, 2)); err != nil {
			t.Fatal(err)
		}
		await(func() bool { return stuck.Load() == 0 })
		if one.shared() {
			t.Error("read by the runner at once")
		}
		call(t, theirs)
		for calls := 0; !one.shared(); calls++ {
			if call(t, itsPeer); calls > separateSteps {
				t.Fatal("not read by the runner again")
			}
		}
	}
	itsPeer.Close()
	if err := <-end; err != io.EOF {
		t.Error(err)
	}
}

// A peer that does not read does not delay others either.
func TestUnread(t *testing.T) {
	one, itsPeer := pair(t)
	other, theirs := pair(t)
	defer func(end <-chan error) { theirs.Close(); <-end }(echo(other, nothing))
	end := echo(one, nothing)
	call(t, itsPeer)
	go itsPeer.Write(make([]byte, 64<<20)) // without reading
	for one.shared() {
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

// When many steps are stuck, no more threads are used for them.
func TestMaxStuck(t *testing.T) {
	defer func(usual func() int32) { maxStuck = usual }(maxStuck)
	maxStuck = func() int32 { return 1 }
	var peers []*net.TCPConn
	var ends []<-chan error
	goOn := make(chan struct{})
	for range 5 {
		ours, theirs := pair(t)
		peers, ends = append(peers, theirs), append(ends, echo(ours, func() { <-goOn }))
	}
	for _, p := range peers {
		p.Write([]byte("?"))
		await(func() bool { return stuck.Load() == 1 })
	}
	ours, theirs := pair(t)
	end := echo(ours, nothing)
	for range 100 {
		call(t, theirs)
	}
	if n := stuck.Load(); n != 1 {
		t.Errorf("%d steps are stuck", n)
	}
	theirs.Close()
	<-end
	close(goOn)
	for i, p := range peers {
		p.CloseWrite()
		if err := <-ends[i]; err != io.EOF {
			t.Error(err)
		}
	}
	if n := stuck.Load(); n != 0 {
		t.Errorf("%d steps are stuck at the end", n)
	}
}

// Close, an error and a deadline in a step end only its connection.
func TestEndInStep(t *testing.T) {
	for name, test := range map[string]struct {
		in   func(*conn)
		want error
	}{
		"closed": {func(c *conn) { c.Close() }, net.ErrClosed},
		"deadline": {func(c *conn) {
			c.SetReadDeadline(time.Now())
			await(func() bool { return !c.shared() })
		}, os.ErrDeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			one, itsPeer := pair(t)
			other, theirs := pair(t)
			var now atomic.Bool
			end := make(chan error, 1)
			go func() {
				end <- Serve(one, func() error {
					b := make([]byte, 9)
					n, err := one.Read(b)
					if n > 0 {
						one.Write(b[:n])
						if now.Load() {
							test.in(one)
							return nil
						}
					}
					return err
				})
			}()
			defer func(end <-chan error) { theirs.Close(); <-end }(echo(other, nothing))
			call(t, itsPeer)
			now.Store(true)
			itsPeer.Write([]byte("?"))
			if err := <-end; !errors.Is(err, test.want) {
				t.Errorf("%v, want %v", err, test.want)
			}
			call(t, theirs)
		})
	}
}

// Reading, writing and calling a step do not allocate.
func TestAllocs(t *testing.T) {
	one, itsPeer := pair(t)
	other, theirs := pair(t)
	defer func(end <-chan error) { itsPeer.Close(); <-end }(echo(one, nothing))
	defer func(end <-chan error) { theirs.Close(); <-end }(echo(other, nothing))
	b := make([]byte, callOctets)
	least := 1.0
	for n := 0; n < 100 && least > 0; n++ { // a step may take long on a busy machine
		least = min(least, testing.AllocsPerRun(20, func() {
			for _, c := range []net.Conn{itsPeer, theirs} {
				c.Write(b)
				io.ReadFull(c, b)
			}
		}))
	}
	if least > 0 {
		t.Errorf("%v allocations a call or more", least)
	}
}

// A peer that sends continuously does not prevent others from being answered.
func TestFlood(t *testing.T) {
	one, itsPeer := pair(t)
	other, theirs := pair(t)
	defer func(end <-chan error) { itsPeer.Close(); <-end }(echo(one, nothing))
	defer func(end <-chan error) { theirs.Close(); <-end }(echo(other, nothing))
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

// However connections end, others are answered, and no files are left. Later connections
// reuse the descriptors.
func TestSiege(t *testing.T) {
	honest, itsPeer := pair(t)
	before := files(t)
	last := echo(honest, nothing)
	ways := []func(ours *conn, theirs *net.TCPConn){
		func(_ *conn, theirs *net.TCPConn) { theirs.SetLinger(0); theirs.Close() },
		func(_ *conn, theirs *net.TCPConn) { theirs.Write(make([]byte, 1<<20)); theirs.Close() },
		func(_ *conn, theirs *net.TCPConn) { theirs.CloseWrite() },
		func(ours *conn, _ *net.TCPConn) { ours.Close() },
		func(ours *conn, theirs *net.TCPConn) { go theirs.Write(make([]byte, 16<<20)); ours.Close() },
		func(ours *conn, _ *net.TCPConn) { ours.SetDeadline(time.Now()) },
	}
	for range 10 {
		var peers []*net.TCPConn
		var ours []*conn
		var ends []<-chan error
		for range ways {
			a, b := pair(t)
			peers, ours, ends = append(peers, b), append(ours, a), append(ends, echo(a, nothing))
			call(t, b)
		}
		for i, way := range ways {
			go way(ours[i], peers[i])
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
			peers[i].Close()
		}
	}
	itsPeer.Close()
	<-last
	honest.Close()
	if now := files(t); now > before {
		t.Errorf("%d files are open, %d were before", now, before)
	}
}

// Without calls the runner's timer stops.
func TestAsleep(t *testing.T) {
	ours, theirs := pair(t)
	defer func(end <-chan error) { theirs.Close(); <-end }(echo(ours, nothing))
	for range 3 {
		call(t, theirs)
		await(func() bool {
			ours.mu.RLock()
			defer ours.mu.RUnlock()
			return ours.runner.asleep.Load()
		})
	}
}
