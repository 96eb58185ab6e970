package dist

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// sockets gives both ends of a TCP connection.
func sockets(t *testing.T) (ours, theirs *net.TCPConn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	a, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); a.Close() })
	return a.(*net.TCPConn), c.(*net.TCPConn)
}

// Whatever the pace, a patient reader gives what was sent, in order, and then the
// end.
func TestPatientReads(t *testing.T) {
	for name, processes := range map[string]int{"one caller": 1, "a crowd": 64} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := sockets(t)
			var p pace
			p.hearAll(processes, 200)
			r := newPatient(ours, &p)
			if r == io.Reader(ours) {
				t.Fatal("a socket is read as if it were none")
			}
			sent := bytes.Repeat([]byte("one after the other "), 1000)
			go func() {
				for rest := sent; len(rest) > 0; rest = rest[10:] {
					theirs.Write(rest[:10])
				}
				theirs.Close()
			}()
			got, err := io.ReadAll(r)
			if err != nil || !bytes.Equal(got, sent) {
				t.Errorf("%d octets of %d, %v", len(got), len(sent), err)
			}
		})
	}
}

// A wait ends as the socket's own would.
func TestPatientEnds(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(ours, theirs *net.TCPConn)
		want error
	}{
		"deadline": {func(ours, _ *net.TCPConn) { ours.SetReadDeadline(time.Now()) }, os.ErrDeadlineExceeded},
		"closed":   {func(ours, _ *net.TCPConn) { ours.Close() }, net.ErrClosed},
		"reset":    {func(_, theirs *net.TCPConn) { theirs.SetLinger(0); theirs.Close() }, syscall.ECONNRESET},
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := sockets(t)
			end := make(chan error)
			r := newPatient(ours, new(pace))
			go func() {
				_, err := r.Read(make([]byte, 9))
				end <- err
			}()
			test.end(ours, theirs)
			if err := <-end; !errors.Is(err, test.want) {
				t.Errorf("%v, want %v", err, test.want)
			}
		})
	}
}
