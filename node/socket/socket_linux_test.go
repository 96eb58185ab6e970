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
		t.Fatal("the connection is not adopted")
	}
	t.Cleanup(func() { ours.Close(); theirs.Close() })
	return ours, theirs
}

// echo starts a dedicated goroutine that echoes bytes, and returns a channel for the error that
// ends it.
func echo(c *conn) <-chan error {
	end := make(chan error, 1)
	go func() {
		release := dedicate(c)
		_, err := io.Copy(struct{ io.Writer }{c}, struct{ io.Reader }{c})
		release()
		end <- err
	}()
	return end
}

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

// earn sends calls until the connection has a thread. No other connection may have one.
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

// Bytes arrive in order, and then the end of the stream.
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
					defer dedicate(ends[1])()
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

// A blocked Read or Write ends with the same error as in package net.
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
				go theirs.Write(make([]byte, 64<<20)) // without reading
				return end
			},
			"read behind a write": func(t *testing.T, ours *conn, theirs *net.TCPConn) <-chan error {
				end, written := echo(ours), make(chan struct{})
				earn(t, theirs)
				go func() {
					ours.Write(make([]byte, 64<<20)) // not read by the peer
					close(written)
				}()
				t.Cleanup(func() { ours.Close(); <-written })
				return end
			},
			"write": func(_ *testing.T, ours *conn, _ *net.TCPConn) <-chan error {
				end := make(chan error, 1)
				go func() {
					_, err := ours.Write(make([]byte, 64<<20)) // not read by the peer
					end <- err
				}()
				return end
			},
		} {
			if name == "reset" && way == "read behind a write" {
				continue // the error is reported to either Read or Write
			}
			t.Run(name+"/"+way, func(t *testing.T) {
				ours, theirs := pair(t)
				end := wait(t, ours, theirs)
				test.end(ours, theirs)
				err := <-end
				var op *net.OpError
				if _, ofFile := errors.AsType[*os.PathError](err); ofFile {
					t.Errorf("%v names a file", err)
				}
				if !errors.Is(err, test.want) || !errors.As(err, &op) || op.Addr.String() != theirs.LocalAddr().String() {
					t.Errorf("ended with %v, want %v", err, test.want)
				}
			})
		}
	}
}

// After Close no file is left, and all methods fail.
func TestClose(t *testing.T) {
	pair(t) // opens the files of Go's poller
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

// CloseWrite ends the stream to the peer after what was written, and the peer can still send.
func TestCloseWrite(t *testing.T) {
	for _, detached := range []bool{false, true} {
		ours, theirs := pair(t)
		release := dedicate(ours)
		if detached {
			ours.takeOver()
		}
		ours.Write([]byte("?"))
		if err := ours.CloseWrite(); err != nil {
			t.Error(err)
		}
		if got, err := io.ReadAll(theirs); string(got) != "?" || err != nil {
			t.Errorf("the peer reads %q, %v", got, err)
		}
		theirs.Write([]byte("!"))
		theirs.Close()
		if got, err := io.ReadAll(ours); string(got) != "!" || err != nil {
			t.Errorf("read %q, %v", got, err)
		}
		ours.Close()
		if err := ours.CloseWrite(); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		release()
	}
}

// Close ends the connection even while a thread blocks. It does not reset the connection, although
// data has not been read.
func TestCloseBlocked(t *testing.T) {
	ours, theirs := pair(t)
	defer dedicate(ours)()
	ours.takeOver()
	theirs.Write([]byte("!"))
	err := ours.detached.raw.Control(func(uintptr) { // keeps the descriptor, as poll does
		ours.Write([]byte("?"))
		ours.Close()
		if got, err := io.ReadAll(theirs); string(got) != "?" || err != nil {
			t.Errorf("the peer reads %q, %v", got, err)
		}
	})
	if err != nil {
		t.Error(err)
	}
}

// A Read that Close interrupts returns net.ErrClosed, not the end of the stream.
func TestCloseRead(t *testing.T) {
	ours, _ := pair(t)
	defer dedicate(ours)()
	ours.takeOver()
	ours.closed.Store(true) // as in the middle of Close
	unix.Shutdown(ours.detached.fd, unix.SHUT_RDWR)
	if _, err := ours.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	ours.closed.Store(false)
}

// After Close the thread does not follow a socket that reuses the descriptor.
func TestCloseReused(t *testing.T) {
	ours, _ := pair(t)
	defer dedicate(ours)()
	ours.takeOver()
	number := ours.detached.fd
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
	if ours.detached.cpuPin.taken {
		t.Error("the thread follows the peer of another socket")
	}
	over()
	before := sharedPoller.runner
	ours.share(nil)
	if over(); sharedPoller.runner != before {
		t.Error("the shared poller watches another socket")
	}
}

func second(_ int, err error) error { return err }

// Adopt returns connections other than TCP unchanged. dedicate supports TLS above an adopted
// connection.
func TestAdoptOthers(t *testing.T) {
	pipe, _ := net.Pipe()
	if Adopt(pipe) != pipe {
		t.Error("a pipe was adopted")
	}
	dedicate(pipe)()
	if err := Serve(pipe, func() error { return io.EOF }); err != io.EOF {
		t.Error(err)
	}
	ours, _ := pair(t)
	release := dedicate(tls.Server(tlslimit.New(ours), nil))
	if !ours.dedicated {
		t.Error("the connection below TLS is not dedicated")
	}
	if release(); ours.dedicated {
		t.Error("the connection is dedicated after release")
	}
}

// fewFiles leaves only the given number of descriptors that are not reserved.
func fewFiles(t *testing.T, left int) {
	t.Helper()
	over() // the shared poller of other tests has a descriptor
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

// noFiles leaves no descriptor at all.
func noFiles(t *testing.T) {
	t.Helper()
	fewFiles(t, 0)
	for {
		fd, err := unix.Dup(0)
		if err != nil {
			return
		}
		t.Cleanup(func() { unix.Close(fd) })
	}
}

// When few descriptors are left, connections do not use reserved ones.
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
	if q := openRunQueue(); q.File != nil {
		t.Error("a thread has opened a file")
	}
	if now := files(t); now != before {
		t.Errorf("%d files are open, %d were before", now, before)
	}
}

// A connection that cannot be given back for lack of a descriptor is served by its thread.
func TestFewFilesLater(t *testing.T) {
	ours, theirs := pair(t)
	release := dedicate(ours)
	if ours.takeOver(); ours.detached == nil {
		t.Fatal("the connection is not taken over")
	}
	ours.detached.pin()
	before := files(t)
	for name, leave := range map[string]func(*testing.T){"few": func(t *testing.T) { fewFiles(t, 0) }, "none": noFiles} {
		t.Run(name, func(t *testing.T) {
			ours.detached.runQueue.Close()
			leave(t)
			if f, err := os.Open(os.DevNull); err == nil { // uses the descriptor of the queue
				defer f.Close()
			}
			if ours.giveBack(); ours.detached == nil {
				t.Fatal("the connection is given back with a reserved descriptor")
			}
			theirs.Write([]byte("!"))
			if n, err := ours.Read(make([]byte, 9)); n != 1 || err != nil || ours.detached == nil {
				t.Errorf("Read returned %d, %v", n, err)
			}
		})
	}
	release()
	if now := files(t); now != before-1 || ours.detached != nil || threads.Load() != 0 {
		t.Errorf("%d files are open, %d were before; %d threads", now, before, threads.Load())
	}
}

// A thread keeps its connection if there is no descriptor for the shared poller.
func TestFewFilesShare(t *testing.T) {
	ours, theirs := pair(t)
	defer dedicate(ours)()
	if ours.takeOver(); ours.detached == nil {
		t.Fatal("the connection is not taken over")
	}
	t.Run("few", func(t *testing.T) {
		fewFiles(t, 0)
		err := ours.share(func() error { return errors.New("read by the poller") })
		if err != nil || ours.detached.polled != nil {
			t.Error(err)
		}
		theirs.Write([]byte("!"))
		if n, err := ours.Read(make([]byte, 9)); n != 1 || err != nil || ours.detached == nil {
			t.Errorf("Read returned %d, %v", n, err)
		}
	})
}

// Without a descriptor, a connection is not taken over, but it can be given back: its queue's
// descriptor becomes free.
func TestNoFiles(t *testing.T) {
	ours, _ := pair(t)
	defer dedicate(ours)()
	t.Run("taken over", func(t *testing.T) {
		noFiles(t)
		if ours.takeOver(); ours.detached != nil || threads.Load() != 0 {
			t.Errorf("the connection is taken over; %d threads", threads.Load())
		}
	})
	if ours.takeOver(); ours.detached == nil {
		t.Fatal("the connection is not taken over")
	}
	ours.detached.pin()
	t.Run("given back", func(t *testing.T) {
		fewFiles(t, 0)
		if ours.giveBack(); ours.detached != nil {
			t.Error("the connection is not given back")
		}
	})
}

// A connection keeps its deadlines when it is given back.
func TestDeadlines(t *testing.T) {
	ours, _ := pair(t)
	defer dedicate(ours)()
	ours.takeOver()
	ours.SetDeadline(time.Now())
	if ours.giveBack(); ours.detached != nil {
		t.Fatal("the connection is not given back")
	}
	for what, err := range map[string]error{
		"read":  second(ours.Read(make([]byte, 1))),
		"write": second(ours.Write(make([]byte, 1))),
	} {
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A thread's writes end at the deadline too.
func TestWriteDeadline(t *testing.T) {
	ours, _ := pair(t)
	defer dedicate(ours)()
	ours.takeOver()
	ours.SetWriteDeadline(time.Now())
	if _, err := ours.Write(make([]byte, 64<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
}

// A connection that cannot be given back because another goroutine writes keeps its deadline too.
func TestReadBehindWrite(t *testing.T) {
	ours, theirs := pair(t)
	defer dedicate(ours)()
	ours.writing.Lock()
	if ours.takeOver(); ours.detached != nil {
		t.Fatal("the connection is taken over from a writer")
	}
	ours.writing.Unlock()
	ours.takeOver()
	ours.writing.Lock()
	time.AfterFunc(3*idle, func() { theirs.Write([]byte("?")) })
	if n, err := ours.Read(make([]byte, 9)); n != 1 || err != nil || ours.detached == nil {
		t.Errorf("Read returned %d, %v", n, err)
	}
	ours.SetReadDeadline(time.Now())
	if _, err := ours.Read(make([]byte, 9)); !errors.Is(err, os.ErrDeadlineExceeded) || ours.detached == nil {
		t.Error(err)
	}
	ours.writing.Unlock()
}

// A connection gets a thread after a number of quick reads. Once it has been given back, it needs
// the same number again.
func TestBusy(t *testing.T) {
	ours, theirs := pair(t)
	read := func() {
		t.Helper()
		theirs.Write([]byte("?"))
		if _, err := ours.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 * busy {
		read()
	}
	if ours.detached != nil {
		t.Fatal("the connection has a thread that Serve has not allowed")
	}
	defer dedicate(ours)()
	for ours.detached == nil { // on a busy machine a read may take a long time
		ours.quick = busy - 1
		read()
	}
	ours.giveBack()
	if read(); ours.detached != nil {
		t.Error("the connection got a thread after one read")
	}
}

// In the shared poller a read does not wait, and the bytes read are counted.
func TestReadShared(t *testing.T) {
	ours, theirs := pair(t)
	defer dedicate(ours)()
	ours.takeOver()
	ours.detached.polled = new(pollConn)
	if n, err := ours.Read(make([]byte, 1)); n != 0 || err != nil || ours.detached.pinned {
		t.Errorf("without data: %d, %v", n, err)
	}
	theirs.Write([]byte("?"))
	for ours.detached.octets == 0 {
		if n, err := ours.Read(make([]byte, 1)); n != ours.detached.octets || err != nil {
			t.Fatalf("%d bytes, %d counted, %v", n, ours.detached.octets, err)
		}
	}
	theirs.Close()
	for n, err := 0, error(nil); err != io.EOF; {
		if n, err = ours.Read(make([]byte, 1)); n != 0 || err != nil && err != io.EOF {
			t.Fatalf("at the end: %d, %v", n, err)
		}
	}
}

// A connection that is quiet in the shared poller needs no thread.
func TestShareQuiet(t *testing.T) {
	ours, _ := pair(t)
	defer dedicate(ours)()
	ours.takeOver()
	threads.Add(1) // a second thread, because the poller drops a connection that has the only one
	defer threads.Add(-1)
	if err := ours.share(func() error { return nil }); err != nil || ours.detached != nil {
		t.Errorf("the connection has a thread; %v", err)
	}
	if !ours.aloneUntil.IsZero() {
		t.Error("the connection is kept out of the shared poller")
	}
	over()
}

// A connection that delays others in the shared poller is read alone, for longer each time.
func TestShareEvicted(t *testing.T) {
	ours, theirs := pair(t)
	defer dedicate(ours)()
	ours.takeOver()
	ours.SetWriteDeadline(time.Now())
	steps := 0
	step := func() error {
		steps++
		err := second(ours.Read(make([]byte, 1)))
		ours.Write(make([]byte, 64<<20)) // not read by the peer
		return err
	}
	for i := range 3 {
		theirs.Write([]byte("?"))
		before := time.Now()
		err := ours.share(step)
		for range 100 { // on a busy machine it may be dropped before its first step
			if err != nil || steps > i {
				break
			}
			if ours.detached == nil {
				ours.takeOver()
			}
			ours.aloneUntil = time.Now()
			err = ours.share(step)
		}
		if err != nil || ours.detached == nil || steps != i+1 {
			t.Fatalf("%d steps, %v", steps, err)
		}
		if ours.detached.pinned || ours.detached.polled != nil {
			t.Error("the connection is pinned while the poller reads it, or is not given back")
		}
		if alone := ours.aloneUntil.Sub(before); alone < firstAlone<<i {
			t.Errorf("the connection is read alone for %v", alone)
		}
		theirs.Write([]byte("?"))
		if err := ours.share(step); err != nil || steps != i+1 {
			t.Fatalf("the connection is read by the poller: %v", err)
		}
		if n, err := ours.Read(make([]byte, 1)); n != 1 || err != nil {
			t.Errorf("Read returned %d, %v", n, err)
		}
		ours.aloneUntil = time.Now()
	}
}

// A connection has one descriptor, with and without a thread.
func TestOneFile(t *testing.T) {
	pair(t) // opens the files of Go's poller
	before := files(t)
	ours, theirs := pair(t)
	defer func(end <-chan error) { theirs.Close(); <-end }(echo(ours))
	const each = 2 // one at each end
	call(t, theirs)
	for range 3 {
		if now := files(t); now != before+each {
			t.Fatalf("%d files are open, %d were before", now, before)
		}
		earn(t, theirs)
		quiet()
	}
}

// Bytes in both directions arrive in order, and deadlines are kept, while threads repeatedly
// take over and give back the connection.
func TestChanges(t *testing.T) {
	ours, theirs := pair(t)
	defer dedicate(ours)()
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
					runtime.Gosched() // a writer may delay the change
				}
			}
		})
	})
	detached := false
	check("ours", ours, func(int) {
		if now := ours.detached != nil; now != detached {
			detached = now
			changes++
		}
	})
	all.Wait()
	if changes == 0 {
		t.Error("no thread has taken over the connection")
	}
	t.Logf("%d changes", changes)
}

// files returns the number of open files, after the shared poller of other tests has ended.
func files(t *testing.T) int {
	t.Helper()
	over()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list) - 1 // without the directory itself
}

// A connection with occasional calls has no thread.
func TestQuick(t *testing.T) {
	ours, theirs := pair(t)
	defer dedicate(ours)()
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
		for short := true; short; short = ours.quick > 0 { // on a busy machine a read may start late
			time.AfterFunc(10*idle, write)
			read()
		}
	}
	if n := threads.Load(); n != 0 {
		t.Errorf("%d threads, want none", n)
	}
}

// Connections beyond the limit of threads are served too.
func TestMaxThreads(t *testing.T) {
	defer func(usual func() int32) { most = usual }(most)
	most = func() int32 { return 1 }
	one, itsPeer := pair(t)
	defer func(end <-chan error) { itsPeer.Close(); <-end }(echo(one))
	earn(t, itsPeer)
	other, theirs := pair(t)
	defer func(end <-chan error) { theirs.Close(); <-end }(echo(other))
	for range 1000 {
		call(t, itsPeer) // so that it keeps its thread
		call(t, theirs)
		if n := threads.Load(); n > 1 {
			t.Fatalf("%d threads, want at most 1", n)
		}
	}
	most = func() int32 { return 0 }
	third, _ := pair(t)
	if third.takeOver(); third.detached != nil {
		t.Error("a connection has a thread beyond the limit")
	}
}

// Reading and writing do not allocate while the connection stays with its thread or with Go's
// poller. On a busy machine it may often change from one to the other.
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
		t.Errorf("at least %v allocations per call", least)
	}
}

// After a reset the system no longer knows the peer's address, which errors contain. So the
// connection is not given back to Go's poller, because giving it back would require the address.
func TestReset(t *testing.T) {
	ours, theirs := pair(t)
	defer dedicate(ours)()
	ours.takeOver()
	theirs.SetLinger(0)
	theirs.Close()
	end := []unix.PollFd{{Fd: int32(ours.detached.fd), Events: unix.POLLIN}}
	if n, err := unix.Poll(end, 60_000); n != 1 || err != nil {
		t.Fatal("no reset", n, err)
	}
	if ours.giveBack(); ours.detached == nil {
		t.Errorf("the connection is given back, with the peer %v", ours.tcp.RemoteAddr())
	}
}

// A Write without a deadline waits for a peer that reads slowly, even if a thread reads the connection.
func TestWriteWaits(t *testing.T) {
	const size = 32 << 20 // more than the kernel buffers
	ours, theirs := pair(t)
	defer dedicate(ours)()
	ours.takeOver()
	end := make(chan error, 1)
	go func() {
		_, err := ours.Write(make([]byte, size))
		ours.Close()
		end <- err
	}()
	n, err := io.Copy(io.Discard, theirs)
	if failed := <-end; n != size || err != nil || failed != nil {
		t.Errorf("%d of %d bytes arrived, %v, %v", n, size, err, failed)
	}
}
