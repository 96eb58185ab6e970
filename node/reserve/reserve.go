// Package reserve keeps file descriptors free for the files that ids depend on, so that these
// files can be opened no matter how many peers connect.
//
// A new descriptor has the lowest free number. So when a connection has one of the last [Kept]
// numbers below the limit, few descriptors are left, and the connection is closed. Those numbers
// are reserved for files that are open only briefly or that must not fail to open.
package reserve

import (
	"errors"
	"fmt"
	"math"
	"os"
	"syscall"
)

const (
	// Kept is the number of descriptors reserved from peers: more than all generators need to
	// save their times simultaneously, while connections are accepted and dialed.
	Kept = 128

	// Needed is the lowest limit on descriptors with which a node can serve peers.
	Needed = 256
)

// ErrFew means that only reserved descriptors are left.
var ErrFew = errors.New("too few file descriptors left")

// Enough fails if the limit on descriptors is below Needed+more.
func Enough(more int) error {
	if allowed, need := limit(), uint64(Needed+more); allowed < need {
		return fmt.Errorf("the limit of %d open files is below the %d that the node needs; "+
			"raise it with ulimit -n 20000 or LimitNOFILE=20000 in a systemd unit", allowed, need)
	}
	return nil
}

// Check returns ErrFew if c, a connection or a file, has a reserved descriptor.
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

// CheckNumber returns ErrFew if fd is a reserved descriptor.
func CheckNumber(fd int) error {
	if uint64(fd)+Kept >= limit() {
		return ErrFew
	}
	return nil
}

// Left returns ErrFew if the next descriptor is reserved.
func Left() error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	defer w.Close()
	return Check(w)
}

// Quarter returns a quarter of the descriptors for peers, but at most ceiling. It is the limit on
// peers of one kind, each with one descriptor.
func Quarter(ceiling int) int {
	const parts = 4
	if all := limit(); all < uint64(Kept+parts*ceiling) {
		return max(int(all)-Kept, parts) / parts
	}
	return ceiling
}

// Rest returns the number of descriptors for peers, less Quarter(others).
func Rest(others int) int {
	return int(min(max(limit(), Kept)-Kept, math.MaxInt32)) - Quarter(others)
}
