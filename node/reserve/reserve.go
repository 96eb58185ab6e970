// Package reserve keeps file descriptors back, so that however many peers there are,
// the files can be opened that ids depend on.
//
// A new descriptor has the lowest number that is free. One whose number is among the
// last that the process may have says that few are left: a peer is not given it. What
// is open for a moment only, or must not fail, may have it.
//
// It keeps threads back, too, and tells what memory there is.
package reserve

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"syscall"
	"time"
)

const (
	// Kept is how many descriptors no peer is given: more than all generators save
	// their times with at once, beside what is just being accepted and dialled.
	Kept = 128

	// Needed is how many a node needs, so that besides there are some for peers.
	Needed = 256
)

// ErrFew says that what is left is kept.
var ErrFew = errors.New("too few file descriptors are left")

// Enough fails if a process that has more files of its own than usual cannot have as
// many as a node needs.
func Enough(more int) error {
	need := uint64(Needed + more)
	if most := limit(); most < need {
		return fmt.Errorf("the node may have %d files open at a time, and needs %d or more to save the time whoever connects; "+
			"raise the limit, as with ulimit -n 20000, or LimitNOFILE=20000 in a unit of systemd", most, need)
	}
	return nil
}

// Check returns ErrFew if c, a connection or a file, has one of those that are kept.
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

// CheckNumber returns ErrFew if fd is one of those that are kept.
func CheckNumber(fd int) error {
	if uint64(fd)+Kept >= limit() {
		return ErrFew
	}
	return nil
}

// Left returns ErrFew if the next descriptor is one of those that are kept.
func Left() error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	defer w.Close()
	return Check(w)
}

// Share is a quarter of what there is for peers, and no more than most: how many
// descriptors those of one kind may have, for whom each has one.
func Share(most int) int {
	const parts = 4
	if all := limit(); all < uint64(Kept+parts*most) {
		return max(int(all)-Kept, parts) / parts
	}
	return most
}

// retry is how long a listener waits after a failure, as when there are no descriptors.
const retry = 100 * time.Millisecond

// Listener returns l, hanging up at once on whom it would give a descriptor that is kept.
// Its Accept fails only when it is closed.
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
			l.log.Error("accept failed", "at", l.Addr(), "err", err)
			time.Sleep(retry)
			continue
		}
		if err = Check(c); err == nil {
			return c, nil
		}
		l.log.Warn("connection hung up on", "address", c.RemoteAddr(), "at", l.Addr(), "err", err)
		c.Close()
	}
}
