package node

import (
	"fmt"
	"os"
	"time"

	"github.com/flake-go/flake/node/dist"
)

// enter has a session served, in place of whatever connection is in its way. The lock is
// not held while that ends, so that nobody else waits for it.
func (n *Node) enter(s dist.Session, v *visit) error {
	before, err := n.gate.proved(v, s.Peer.Name)
	if err != nil {
		return err
	}
	if before != nil {
		n.breakOff(before, failedAgain)
	}
	tooLate := time.After(setupTime)
	n.entering.Lock()
	defer n.entering.Unlock()
	for {
		old, err := n.inTheWay(s.Peer.Name, v)
		if err != nil {
			return err
		}
		if old == nil {
			return n.door.pass(s)
		}
		n.entering.Unlock()
		old.Close()
		select {
		case <-old.Done():
		case <-v.broken:
			err = errBrokenOff
		case <-tooLate:
			err = fmt.Errorf("the connection to %s before it has not ended: %w", old.Peer().Name, os.ErrDeadlineExceeded)
		}
		n.entering.Lock()
		if err != nil {
			return err
		}
	}
}

// inTheWay gives the connection that has to end before a caller can come in, if there is
// one: that of its name.
func (n *Node) inTheWay(name string, v *visit) (old *dist.Conn, err error) {
	if old = n.connection(name); old != nil {
		return old, nil
	}
	return nil, n.gate.full(v.host)
}
