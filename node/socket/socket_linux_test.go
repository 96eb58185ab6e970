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
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/flake-go/flake/node/reserve"
	"github.com/flake-go/flake/node/tlslimit"
)

// accepted returns both ends of a TCP connection, which the caller closes.
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

// pair is accepted, with ours adopted.
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

// echo starts a dedicated goroutine that echoes bytes, and returns what ended it.
func echo(c *conn) <-chan error {
	end := make(chan error, 1)
	go func() {
		release := Dedicate(c)
		_, err := io.Copy(struct{ io.Writer }{c}, struct{ io.Reader }{c})
		release()
		end <- err
	}()
	return end
}

// call sends a byte and waits for it.
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

// earn calls until the connection, alone in having one, has a thread.
func earn(t *testing.T, theirs net.Conn) {
	t.Helper()
	for threads.Load() == 0 {
		call(t, theirs)
	}
}

// quiet waits until no connection has a thread.
func quiet() {
	for threads.Load() != 0 {
		runtime.Gosched()
	}
}

// What was sent arrives, in order, then the end.
func TestStream(t *testing.T) {
	for name, dedicated := range map[string]bool{"poller": false, "thread": true} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := pair(t)
			sent := bytes.Repeat([]byte("one after the other "), 100_000)
			for name, ends := range map[string][2]net.Conn{"to us": {theirs, ours}, "from us": {ours, theirs}} {
				go func() {
					for rest := sent; len(rest) > 0; {
						n := min(len(rest), 1+len(rest)%5000)
						ends[0].Write(rest[:n])
						rest = rest[n:]
					}
					ends[0].Write(nil)
				}()
				got := make([]byte, len(sent))
				if dedicated {
					defer Dedicate(ends[1])()
				}
				if _, err := io.ReadFull(ends[1], got); err != nil || !bytes.Equal(got, sent) {
					t.Errorf("%s: %v", name, err)
				}
			}
			theirs.Close()
			if n, err := ours.Read(make([]byte, 9)); err != io.EOF {
				t.Errorf("at the end: %d, %v", n, err)
			}
		})
	}
}

// A wait ends as package net's would.
func TestEnds(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(ours *conn, theirs *net.TCPConn)
		want error
	}{
		"deadline": {func(ours *conn, _ *net.TCPConn) { ours.SetDeadline(time.Now()) }, os.ErrDeadlineExceeded},
		"closed":   {func(ours *conn, _ *net.TCPConn) { ours.Close() }, net.ErrClosed},
		"reset":    {func(_ *conn, theirs *net.TCPConn) { theirs.SetLinger(0); theirs.Close() }, syscall.ECONNRESET},
	} {
		for way, wait := range map[string]func(*testing.T, *conn, *net.TCPConn) <-chan error{
			"read by the poller": func(_ *testing.T, ours *conn, _ *net.TCPConn) <-chan error {
				end := make(chan error, 1)
				go func() {
					_, err := ours.Read(make([]byte, 9))
					end <- err
				}()
				return end
			},
			"read by a thread": func(t *testing.T, ours *conn, theirs *net.TCPConn) <-chan error {
				end := echo(ours)
				earn(t, theirs)
				return end
			},
			"write of a thread": func(t *testing.T, ours *conn, theirs *net.TCPConn) <-chan error {
				end := echo(ours)
				earn(t, theirs)
				go theirs.Write(make([]byte, 64<<20)) // and does not read
				return end
			},
			"read behind a write": func(t *testing.T, ours *conn, theirs *net.TCPConn) <-chan error {
				end, written := echo(ours), make(chan struct{})
				earn(t, theirs)
				go func() {
					ours.Write(make([]byte, 64<<20)) // nobody reads
					close(written)
				}()
				t.Cleanup(func() { ours.Close(); <-written })
				return end
			},
			"write": func(_ *testing.T, ours *conn, _ *net.TCPConn) <-chan error {
				end := make(chan error, 1)
				go func() {
					_, err := ours.Write(make([]byte, 64<<20)) // nobody reads
					end <- err
				}()
				return end
			},
		} {
			if name == "reset" && way == "read behind a write" {
				continue // one of the two is told
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

// After the end nothing is left, and nothing more can be had.
func TestClose(t *testing.T) {
	pair(t) // the poller has files of its own
	before := files(t)
	for _, use := range []func(*testing.T, net.Conn){call, earn, func(t *testing.T, c net.Conn) { earn(t, c); quiet() }} {
		ours, theirs := pair(t)
		end := echo(ours)
		use(t, theirs)
		ours.Close()
		theirs.Close()
		<-end
		for what, err := range map[string]error{
			"read":     second(ours.Read(make([]byte, 1))),
			"write":    second(ours.Write(make([]byte, 1))),
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

// The owner of the next descriptor number is not asked where to run.
func TestCloseReused(t *testing.T) {
	ours, _ := pair(t)
	defer Dedicate(ours)()
	ours.takeOver()
	var number int
	ours.held.raw.Control(func(fd uintptr) { number = int(fd) })
	ours.Close()
	other, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(other)
	if err := unix.SetsockoptInt(other, unix.SOL_SOCKET, unix.SO_INCOMING_CPU, processors(t)[0]); err != nil {
		t.Fatal(err)
	}
	if other != number {
		if err := unix.Dup3(other, number, unix.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		defer unix.Close(number)
	}
	if _, err := ours.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if ours.held.place.taken {
		t.Error("follows another's peer")
	}
}

func second(_ int, err error) error { return err }

// A connection that is not TCP stays what it is, and TLS is a layer.
func TestAdoptOthers(t *testing.T) {
	pipe, _ := net.Pipe()
	if Adopt(pipe) != pipe {
		t.Error("a pipe was adopted")
	}
	Dedicate(pipe)()
	ours, _ := pair(t)
	release := Dedicate(tls.Server(tlslimit.New(ours), nil))
	if !ours.dedicated {
		t.Error("not dedicated below TLS")
	}
	if release(); ours.dedicated {
		t.Error("dedicated after release")
	}
}

// fewFiles leaves so many descriptors that are not kept.
func fewFiles(t *testing.T, left int) {
	t.Helper()
	over() // that of other tests, whose descriptor would be one more
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
	few.Cur = uint64(next + left + reserve.Kept)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
}

// When descriptors are few, no kept ones are taken.
func TestFewFiles(t *testing.T) {
	ours, theirs := pair(t)
	defer func(end <-chan error) { theirs.Close(); <-end }(echo(ours))
	call(t, theirs)
	before := files(t)
	fewFiles(t, 0)
	for range 10 * busy {
		call(t, theirs)
	}
	if now := files(t); now != before || threads.Load() != 0 {
		t.Errorf("%d files are open, %d were before; %d threads", now, before, threads.Load())
	}
	if q := openQueue(); q.File != nil {
		t.Error("a thread has opened a file")
	}
}

// A connection that finds no descriptor to be given back is served by its thread.
func TestFewFilesLater(t *testing.T) {
	ours, theirs := pair(t)
	release := Dedicate(ours)
	if ours.takeOver(); ours.held == nil {
		t.Fatal("not taken over")
	}
	ours.held.pin()
	before := files(t)
	t.Run("few", func(t *testing.T) {
		ours.held.queue.Close()
		fewFiles(t, 0)
		if f, err := os.Open(os.DevNull); err == nil { // instead of the queue
			defer f.Close()
		}
		if ours.giveBack() {
			t.Error("it has a kept descriptor")
		}
		theirs.Write([]byte("!"))
		if n, err := ours.Read(make([]byte, 9)); n != 1 || err != nil || ours.held == nil {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
	release()
	if now := files(t); now != before-1 || ours.held != nil || threads.Load() != 0 {
		t.Errorf("%d files are open, %d were before; %d threads", now, before, threads.Load())
	}
}

// A connection has one descriptor, before a thread holds it and after.
func TestOneFile(t *testing.T) {
	pair(t) // the poller has files of its own
	before := files(t)
	ours, theirs := pair(t)
	defer func(end <-chan error) { theirs.Close(); <-end }(echo(ours))
	const each = 2 // ours and theirs
	call(t, theirs)
	for range 3 {
		if now := files(t); now != before+each {
			t.Fatalf("%d files are open, %d were before", now, before)
		}
		earn(t, theirs)
		quiet()
	}
}

// Bytes that go both ways while a thread takes and gives back the connection, again and
// again, all arrive in order, whoever writes them; nor do deadlines get lost.
func TestChanges(t *testing.T) {
	ours, theirs := pair(t)
	defer Dedicate(ours)()
	const size, most = 32 << 20, 40
	next := func(b []byte, at int) {
		for i := range b {
			b[i] = byte((at + i) % 251)
		}
	}
	check := func(who string, r io.Reader, pause func(at int)) {
		b, want := make([]byte, 10_000), make([]byte, 10_000)
		for at := 0; at < size; {
			n, err := r.Read(b[:1+at%len(b)])
			next(want[:n], at)
			if err != nil || !bytes.Equal(b[:n], want[:n]) {
				t.Errorf("%s, at %d: %v", who, at, err)
				return
			}
			at += n
			pause(at)
		}
	}
	var all sync.WaitGroup
	write := func(c net.Conn, pause func(at int)) {
		b := make([]byte, 10_000)
		for at := 0; at < size; {
			n := min(size-at, 1+at%len(b))
			next(b[:n], at)
			if _, err := c.Write(b[:n]); err != nil {
				t.Error(err)
				return
			}
			at += n
			pause(at)
		}
	}
	on := func(int) {}
	changes := 0
	all.Go(func() { write(ours, func(int) { ours.SetDeadline(time.Now().Add(time.Hour)) }) })
	all.Go(func() { check("theirs", theirs, on) })
	all.Go(func() {
		last := 0
		write(theirs, func(at int) {
			if at-last > size/most && threads.Load() > 0 {
				last = at
				for end := time.Now().Add(2 * idle); threads.Load() > 0 && time.Now().Before(end); {
					runtime.Gosched() // it may be kept by who writes
				}
			}
		})
	})
	held := false
	check("ours", ours, func(int) {
		if now := ours.held != nil; now != held {
			held = now
			changes++
		}
	})
	all.Wait()
	if changes == 0 {
		t.Error("no changes")
	}
	t.Logf("%d changes", changes)
}

// files counts open files, once that of a poller of other tests is closed.
func files(t *testing.T) int {
	t.Helper()
	over()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list) - 1 // that of the folder
}

// A busy connection has a thread, an idle one has none.
func TestThread(t *testing.T) {
	ours, theirs := pair(t)
	end := echo(ours)
	earn(t, theirs)
	quiet()
	earn(t, theirs)
	theirs.Close()
	if err := <-end; err != nil {
		t.Error(err)
	}
	if n := threads.Load(); n != 0 {
		t.Errorf("%d threads after the end", n)
	}
}

// An occasional call is not worth a thread.
func TestQuick(t *testing.T) {
	ours, theirs := pair(t)
	defer Dedicate(ours)()
	write := func() { theirs.Write([]byte("?")) }
	read := func() {
		t.Helper()
		if _, err := ours.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		for range busy / 2 {
			write()
			read()
		}
		for short := true; short; short = ours.quick > 0 { // on a busy machine a read may begin late
			time.AfterFunc(10*idle, write)
			read()
		}
	}
	if n := threads.Load(); n != 0 {
		t.Errorf("%d threads", n)
	}
}

// More connections than may have threads are still served.
func TestMaxThreads(t *testing.T) {
	defer func(usual func() int32) { most = usual }(most)
	most = func() int32 { return 1 }
	one, itsPeer := pair(t)
	defer func(end <-chan error) { itsPeer.Close(); <-end }(echo(one))
	earn(t, itsPeer)
	other, theirs := pair(t)
	defer func(end <-chan error) { theirs.Close(); <-end }(echo(other))
	for range 1000 {
		call(t, itsPeer) // or it gives its thread back
		call(t, theirs)
		if n := threads.Load(); n > 1 {
			t.Fatalf("%d threads", n)
		}
	}
}

// Reading and writing cost nothing but the system calls, while the connection stays
// with its thread or the poller: on a busy machine it may change often.
func TestAllocs(t *testing.T) {
	ours, theirs := pair(t)
	defer func(end <-chan error) { theirs.Close(); <-end }(echo(ours))
	b := make([]byte, callOctets)
	least := 1.0
	for n := 0; n < 100 && least > 0; n++ {
		least = min(least, testing.AllocsPerRun(100, func() {
			theirs.Write(b)
			io.ReadFull(theirs, b)
		}))
	}
	if least > 0 {
		t.Errorf("%v allocations a call or more", least)
	}
}
