// Package reserve keeps file descriptors for the files that ids depend on, so that these
// can be opened however many peers connect.
//
// A new descriptor has the lowest free number. If the number is among the last below the
// limit, few are left, and the connection of a peer that got it is closed. Files that are
// open only briefly, or must not fail, can use these descriptors.
//
// The package also keeps threads, and reports the limit of memory.
package reserve

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"syscall"
	"time"
)

const (
	// Kept is the number of descriptors that peers cannot use: more than all generators
	// need to save their times at once, while connections are accepted and dialed.
	Kept = 128

	// Needed is the least limit of descriptors with which a node can serve peers.
	Needed = 256
)

// ErrFew means that only kept descriptors are left.
var ErrFew = errors.New("too few file descriptors left")

// Enough fails if the limit of descriptors is below Needed and more.
func Enough(more int) error {
	need := uint64(Needed + more)
	if most := limit(); most < need {
		return fmt.Errorf("the limit of %d open files is below the %d that the node needs; "+
			"raise it, as with ulimit -n 20000, or LimitNOFILE=20000 in a systemd unit", most, need)
	}
	return nil
}

// Check returns ErrFew if c, a connection or a file, has a kept descriptor.
func Check(c any) error {
	s, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return err
	}
	var few error
	err = raw.Control(func(fd uintptr) { few = CheckNumber(int(fd)) })
	return errors.Join(err, few)
}

// CheckNumber returns ErrFew if fd is a kept descriptor.
func CheckNumber(fd int) error {
	if uint64(fd)+Kept >= limit() {
		return ErrFew
	}
	return nil
}

// Left returns ErrFew if the next descriptor is a kept one.
func Left() error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	defer w.Close()
	return Check(w)
}

// Share returns a quarter of the descriptors for peers, but at most most: the number of
// peers of one kind if each has one descriptor.
func Share(most int) int {
	const parts = 4
	if all := limit(); all < uint64(Kept+parts*most) {
		return max(int(all)-Kept, parts) / parts
	}
	return most
}

// Rest returns the number of descriptors for peers without the Share of others.
func Rest(others int) int {
	return int(min(max(limit(), Kept)-Kept, math.MaxInt32)) - Share(others)
}

// retry is the wait of a listener after a failure, such as no free descriptor.
const retry = 100 * time.Millisecond

// MaxUnsent is the send buffer of a connection. The kernel doubles it, and its default
// can be megabytes for a peer that does not read.
const MaxUnsent = 128 << 10

// Bound sets the send buffer of a TCP connection to MaxUnsent.
func Bound(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetWriteBuffer(MaxUnsent) // fails only if the connection has ended
	}
}

// Listener returns a listener that bounds the connections of l, and closes at once a
// connection with a kept descriptor. Its Accept fails only when l is closed.
func Listener(l net.Listener, log *slog.Logger) net.Listener { return listener{l, log} }

type listener struct {
	net.Listener
	log *slog.Logger
}

func (l listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil, err
		case err != nil:
			l.log.Error("accept failed", "listener", l.Addr(), "err", err)
			time.Sleep(retry)
			continue
		}
		if err = Check(c); err == nil {
			Bound(c)
			return c, nil
		}
		l.log.Warn("closed a new connection", "address", c.RemoteAddr(), "listener", l.Addr(), "err", err)
		c.Close()
	}
}
