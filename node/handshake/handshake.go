// Package handshake performs the Erlang distribution handshake, in which two nodes exchange
// names and capabilities and prove that they have the same cookie.
//
// It implements the chapter "Distribution Handshake" of
// https://www.erlang.org/doc/apps/erts/erl_dist_protocol.html, in both directions, in version 6 (OTP
// 23 and later) and version 5 (older nodes, Scalang). Start sends only names of version 6.
//
//	A (Start)                        B (Accept)
//	send_name 'N' | 'n'       ->
//	                          <-     status 's'
//	status 's'                ->     after "alive"
//	                          <-     challenge 'N' | 'n'
//	complement 'c'            ->     if 'N' answered 'n'
//	challenge_reply 'r'       ->
//	                          <-     challenge_ack 'a'
//
// Start at [Accept] and [Start], which return a [Peer]. The caller decides in
// [Options.Admit] whether to admit a node.
//
// The package reads nothing beyond the handshake from the stream. It assigns a name to a peer
// that asks for one with NAME_ME, but cannot ask for one itself.
package handshake

import (
	"cmp"
	"errors"
	"fmt"
	"io"
)

// Options configure the local side of a handshake.
type Options struct {
	Node     string // name@host
	Creation uint32 // identifies this run of the node; not 0
	Cookie   string

	// PreviousCookie, if not empty, is also accepted by Accept. Start uses only Cookie.
	PreviousCookie string

	LongLen bool // lengths are 4 bytes long instead of 2, as in TLS distribution

	// NameReceived, if not nil, is called by Accept once the peer has sent its name. An error
	// ends the handshake.
	NameReceived func() error

	// Admit returns the status with which Accept answers a name, before the peer has proved
	// that it has the cookie. Nil admits all peers.
	Admit func(peer Name) Status

	// AssignName returns the name for a peer that sent only its host to Accept. Nil means
	// NewName.
	AssignName func(host string) (node string, creation uint32)

	// Alive returns Start's answer to a peer that already has a connection to Node: StatusTrue
	// replaces that connection, StatusFalse keeps it. Nil means StatusTrue.
	Alive func() Status

	// Challenges, if not nil, holds the open challenges of all the process's handshakes. A peer
	// that sends one of them is refused.
	Challenges *Challenges

	// Rand is the source of challenges. Nil means crypto/rand.
	Rand io.Reader
}

// Peer is the node at the other end of a completed handshake.
type Peer struct {
	Name     string
	Creation uint32 // 0 if a version 5 peer did not send it
	Version  int    // 5 or 6
	Flags    Flags  // supported by both sides
	Hidden   bool   // PUBLISHED is not set
	Assigned bool   // Accept has assigned the name

	// PreviousCookie reports, after Accept, that the peer has the previous cookie.
	PreviousCookie bool
}

// Errors that callers check for. Other errors come from the stream or report malformed
// messages.
var (
	// ErrCookie means that the peer has a different cookie, or closed the stream at the point where
	// a peer with a different cookie would. In the latter case the error also wraps the stream's
	// error.
	ErrCookie  = errors.New("wrong cookie")
	ErrRefused = errors.New("refused")

	// ErrOwnChallenge means that the peer sent one of this node's own challenges, to obtain an
	// answer to it.
	ErrOwnChallenge = fmt.Errorf("%w: the peer returned a challenge of this node, and may not have the cookie", ErrRefused)

	// Start returns ErrSimultaneous if the connection that the other side dialed is used
	// instead.
	ErrSimultaneous = errors.New("the other side dialed at the same time")
)

// Accept performs a handshake started by the other side of rw. The caller sets deadlines.
func Accept(rw io.ReadWriter, o Options) (Peer, error) {
	a := acceptor{stream: newStream(rw, o), o: o}
	if err := a.recvInto(&a.name); err != nil {
		return Peer{}, err
	}
	a.peer = Peer{Name: a.name.Node, Creation: a.name.Creation, Version: a.name.Version}
	if o.NameReceived != nil {
		if err := o.NameReceived(); err != nil {
			return a.peer, err
		}
	}
	if err := a.sendStatus(); err != nil {
		return a.peer, err
	}
	err := a.prove()
	return a.peer, err
}

type acceptor struct {
	stream
	o    Options
	name Name // with all flags that the peer has offered so far
	peer Peer
}

func newStream(rw io.ReadWriter, o Options) stream {
	s := stream{rw: rw, lenSize: 2, challenges: cmp.Or(o.Challenges, new(Challenges))}
	if o.LongLen {
		s.lenSize = 4
	}
	return s
}

func (a *acceptor) sendStatus() error {
	if a.name.Flags.Has(NameMe) {
		assign := a.o.AssignName
		if assign == nil {
			assign = NewName
		}
		a.peer.Name, a.peer.Creation = assign(a.peer.Name)
		a.peer.Assigned = true
		return a.send(named{a.peer.Name, a.peer.Creation})
	}
	status := StatusOK
	if a.o.Admit != nil {
		status = a.o.Admit(a.name)
	}
	if err := a.send(status); err != nil {
		return err
	}
	switch status {
	case StatusOK, StatusOKSimultaneous:
		return nil
	case StatusAlive:
		var answer Status
		if err := a.recvInto(&answer); err != nil {
			return err
		}
		if answer == StatusTrue {
			return nil
		}
		return fmt.Errorf("%w: already connected, and the peer keeps that connection", ErrRefused)
	}
	return fmt.Errorf("%w: status %s", ErrRefused, status)
}

// prove exchanges the challenges. A node that supports version 6 but sent a version 5 name is sent
// a version 6 challenge. OTP 23 and 24 send such a name if they could not ask EPMD. A peer accepts
// the name assigned to it only if the challenge has NAME_ME.
func (a *acceptor) prove() error {
	version := a.peer.Version
	if a.name.Flags.Has(Handshake23) {
		version = 6
	}
	ours, end, err := a.challenges.pose(a.o.Rand)
	if err != nil {
		return err
	}
	defer end()
	err = a.send(Challenge{
		Version: version, Flags: Offered | a.name.Flags&NameMe, Challenge: ours, Creation: a.o.Creation, Node: a.o.Node,
	})
	if err != nil {
		return err
	}
	b, err := a.recv()
	if err != nil {
		return err
	}
	if version > a.peer.Version && b[0] == tagComplement {
		var m complement
		if err := m.Decode(b); err != nil {
			return err
		}
		a.name.Flags |= Flags(m.High) << 32
		a.peer.Creation, a.peer.Version = m.Creation, 6
		if b, err = a.recv(); err != nil {
			return err
		}
	}
	var reply Reply
	if err := reply.Decode(b); err != nil {
		return err
	}
	if a.challenges.has(reply.Challenge) {
		return ErrOwnChallenge
	}
	cookie, err := a.cookieOf(reply.Digest, ours)
	if err != nil {
		return err
	}
	a.peer.settle(a.name.Flags)
	return a.send(ack{makeDigest(cookie, reply.Challenge)})
}

// cookieOf returns the cookie with which a peer answered our challenge. It always compares both
// cookies, so that its duration does not depend on the outcome.
func (a *acceptor) cookieOf(d Digest, ours uint32) (cookie string, err error) {
	current := d.equal(makeDigest(a.o.Cookie, ours))
	previous := d.equal(makeDigest(a.o.PreviousCookie, ours)) && a.o.PreviousCookie != ""
	switch {
	case current:
		return a.o.Cookie, nil
	case previous:
		a.peer.PreviousCookie = true
		return a.o.PreviousCookie, nil
	}
	return "", ErrCookie
}

// settle sets the flags that both sides support.
func (p *Peer) settle(theirs Flags) {
	p.Flags = theirs.expand() & Offered
	p.Hidden = !theirs.Has(Published)
}

// Start performs a handshake with the node peer, or with any node if peer is empty, at the
// other side of rw. The caller sets deadlines.
func Start(rw io.ReadWriter, peer string, o Options) (Peer, error) {
	s := newStream(rw, o)
	err := s.send(Name{Version: 6, Flags: Offered, Creation: o.Creation, Node: o.Node})
	if err != nil {
		return Peer{}, err
	}
	if err := recvStatus(&s, o.Alive); err != nil {
		if errors.Is(err, io.EOF) && !o.LongLen {
			err = fmt.Errorf("status: %w (the node may require TLS)", err)
		}
		return Peer{}, err
	}
	var c Challenge
	if err := s.recvInto(&c); err != nil {
		return Peer{}, err
	}
	p := Peer{Name: c.Node, Creation: c.Creation, Version: c.Version}
	if peer != "" && c.Node != peer {
		return p, fmt.Errorf("%w: dialed %q, but %q answered", ErrRefused, peer, c.Node)
	}
	if s.challenges.has(c.Challenge) {
		return p, ErrOwnChallenge
	}
	ours, end, err := s.challenges.pose(o.Rand)
	if err != nil {
		return p, err
	}
	defer end()
	if err := s.send(Reply{Challenge: ours, Digest: makeDigest(o.Cookie, c.Challenge)}); err != nil {
		return p, err
	}
	var answer ack
	if err := s.recvInto(&answer); err != nil {
		return p, fmt.Errorf("challenge_ack: %w (possible cause: %w)", err, ErrCookie)
	}
	if !answer.Digest.equal(makeDigest(o.Cookie, ours)) {
		return p, ErrCookie
	}
	p.settle(c.Flags)
	return p, nil
}

func recvStatus(s *stream, alive func() Status) error {
	var status Status
	if err := s.recvInto(&status); err != nil {
		return err
	}
	switch status {
	case StatusOK, StatusOKSimultaneous:
		return nil
	case StatusNOK:
		return fmt.Errorf("%w: %w", ErrRefused, ErrSimultaneous)
	case StatusAlive:
		answer := StatusTrue
		if alive != nil {
			answer = alive()
		}
		if err := s.send(answer); err != nil || answer == StatusTrue {
			return err
		}
		return fmt.Errorf("%w: %w", ErrRefused, ErrSimultaneous)
	}
	return fmt.Errorf("%w: status %s", ErrRefused, status)
}
