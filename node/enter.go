package node

import (
	"fmt"
	"os"
	"time"

	"github.com/flake-go/flake/node/dist"
	"github.com/flake-go/flake/node/host"
)

// idleTime is how long a peer must have asked nothing before another may take its
// place. An Erlang node reconnects by itself when it has something to ask.
const idleTime = time.Minute

// enter has a session served, replacing any connection in its way. It does not hold
// the lock while that one ends, so nobody else waits for it.
func (n *Node) enter(s dist.Session, v *visit) error {
	before, err := n.gate.proved(v, s.Peer.Name)
	if err != nil {
		return err
	}
	if before != nil {
		n.breakOff(before, failedAgain)
	}
	tooLate := time.After(n.options.setup)
	n.entering.Lock()
	defer n.entering.Unlock()
	for {
		if !n.gate.counted(v) { // what is in the way may have come later
			return errBrokenOff
		}
		old, err := n.inTheWay(s.Peer.Name, v)
		if err != nil {
			return err
		}
		if old == nil {
			n.gate.leave(v) // before the next of its name can come
			return n.serve(s)
		}
		n.entering.Unlock()
		old.Close()
		select {
		case <-old.Done():
		case <-v.broken:
		case <-tooLate:
			err = fmt.Errorf("the previous connection to %s has not ended: %w", old.Peer().Name, os.ErrDeadlineExceeded)
		}
		n.entering.Lock()
		if err != nil {
			return err
		}
	}
}

// inTheWay returns the connection that must end before a caller can come in, if any:
// the one of its name, or, if the limit of connections is reached, the one idle
// longest.
func (n *Node) inTheWay(name string, v *visit) (old *dist.Conn, err error) {
	if old = n.connection(name); old != nil {
		return old, nil
	}
	if err = n.gate.full(v.host); err == nil {
		return nil, nil
	}
	now := n.gate.now()
	if now.Before(n.noneIdle) { // looking visits every connection
		return nil, err
	}
	idle := now.Add(-idleTime)
	longest, since := now, idle
	for _, c := range n.connections() {
		asked := c.Asked()
		if asked.Before(longest) {
			longest = asked
		}
		mayGo := c.Context().Err() == nil && (err == errFull || host.Of(c.Addr()) == v.host)
		if mayGo && asked.Before(since) {
			old, since = c, asked
		}
	}
	n.noneIdle = longest.Add(idleTime)
	if old == nil {
		return nil, err
	}
	n.log.Warn("idle connection closed: another peer needs its place", "peer", old.Peer().Name, "by", name)
	return old, nil
}
