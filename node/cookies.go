package node

import (
	"errors"
	"os"

	"github.com/flake-go/flake/node/dist"
	"github.com/flake-go/flake/node/handshake"
)

// cookies are those that prove a peer. While a fleet changes its cookie there is a
// previous one, which peers may still have; else it is empty.
type cookies struct{ current, previous string }

// SetCookies replaces the cookies for handshakes that begin from now on. Connections
// stay.
func (n *Node) SetCookies(current, previous string) {
	n.cookies.Store(&cookies{current, previous})
}

// shaking returns the options of a handshake that begins now.
func (n *Node) shaking() handshake.Options {
	o, c := n.handshake, n.cookies.Load()
	o.Cookie, o.PreviousCookie = c.current, c.previous
	return o
}

// reach dials a node and shakes hands with it: with the current cookie, and if the node
// does not take that, with the previous one. It returns no session if the node's own
// dial replaces ours.
func (n *Node) reach(peer string) (s dist.Session, err error) {
	c := n.cookies.Load()
	if s, err = n.reachWith(peer, c.current); c.previous != "" && otherCookie(err) {
		s, err = n.reachWith(peer, c.previous)
	}
	return s, err
}

// otherCookie reports whether a handshake failed as one does with a wrong cookie.
func otherCookie(err error) bool {
	return errors.Is(err, handshake.ErrCookie) && !errors.Is(err, os.ErrDeadlineExceeded)
}

func (n *Node) reachWith(peer, cookie string) (s dist.Session, err error) {
	c, err := n.dial(peer)
	if err != nil {
		return s, err
	}
	if s, err = n.introduce(c, peer, cookie); err != nil || s.Conn == nil {
		c.Close()
	}
	return s, err
}
