// Package reserve keeps file descriptors back, so that the files that ids depend on
// can be opened however many peers there are.
//
// A new descriptor has the lowest free number. If its number is among the last that
// the process may have, few are left, and no peer gets it. What is open only for a
// moment, or must not fail, may have it.
//
// The package also keeps threads back, and reports what memory there is.
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
	// Kept is how many descriptors no peer is given: more than all generators save
	// their times with at once, beside what is just being accepted and dialled.
	Kept = 128

	// Needed is how many descriptors a node needs to leave some for peers.
	Needed = 256
)

// ErrFew says that only kept descriptors are left.
var ErrFew = errors.New("too few file descriptors are left")

// Enough fails if a process with more extra files of its own cannot have as many
// descriptors as a node needs.
func Enough(more int) error {
	need := uint64(Needed + more)
	if most := limit(); most < need {
		return fmt.Errorf("the node may have %d files open at a time, and needs %d or more to save the time whoever connects; "+
			"raise the limit, as with ulimit -n 20000, or LimitNOFILE=20000 in a unit of systemd", most, need)
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

// Share returns a quarter of the descriptors for peers, limited to most: how many
// those of one kind may have at one each.
func Share(most int) int {
	const parts = 4
	if all := limit(); all < uint64(Kept+parts*most) {
		return max(int(all)-Kept, parts) / parts
	}
	return most
}

// Rest returns how many descriptors are left for peers, once others have their Share.
func Rest(others int) int {
	return int(min(max(limit(), Kept)-Kept, math.MaxInt32)) - Share(others)
}

// retry is how long a listener waits after a failure, such as no free descriptors.
const retry = 100 * time.Millisecond

// MaxUnsent bounds what the kernel keeps for a peer that does not read, which is twice
// that. By default it may be megabytes.
const MaxUnsent = 128 << 10

// Bound sets MaxUnsent for a connection, if it is one of TCP.
func Bound(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetWriteBuffer(MaxUnsent) // fails only if it has ended
	}
}

// Listener returns l, which then bounds what is kept for each connection, and hangs up at
// once on whoever would get a kept descriptor. Its Accept fails only when it is closed.
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
		l.log.Warn("connection hung up on", "address", c.RemoteAddr(), "listener", l.Addr(), "err", err)
		c.Close()
	}
}
