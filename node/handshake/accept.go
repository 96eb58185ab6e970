// Package handshake performs the Erlang distribution handshake, in which two nodes
// exchange names and abilities and prove that they have the same cookie.
//
// It implements the chapter "Distribution Handshake" of
// https://www.erlang.org/doc/apps/erts/erl_dist_protocol.html, in version 6 (OTP 23
// and later) and version 5 (older nodes, Scalang), in both directions:
//
//	A (Start)                        B (Accept)
//	send_name 'N' | 'n'       ->
//	                          <-     status 's'
//	status 's'                ->     only after "alive"
//	                          <-     challenge 'N' | 'n'
//	complement 'c'            ->     only after 'n' was answered by 'N'
//	challenge_reply 'r'       ->
//	                          <-     challenge_ack 'a'
//
// Start at [Accept] and [Start]; both return a [Peer]. The caller decides whether a
// node may come in, through [Options.Admit].
//
// The package reads only the handshake's bytes from the stream; what follows is left
// for the connection. Not supported: dialling without a name of our own (NAME_ME from
// our side). A peer that asks for a name gets one.
package handshake

import (
	"errors"
	"fmt"
	"io"
)

// Options configure our side of a handshake.
type Options struct {
	Node     string // our name, name@host
	Creation uint32 // distinguishes this run of our node from others of its name; not 0
	Cookie   string

	// PreviousCookie, if not empty, is one that Accept takes as well. Start shows only
	// Cookie.
	PreviousCookie string

	LongLen bool // lengths of 4 bytes instead of 2, as in TLS distribution

	// Heard, if not nil, is called by Accept once the peer has sent its name. An error
	// ends the handshake.
	Heard func() error

	// Admit decides, for Accept, whether the peer may go on, before it has proved that
	// it has the cookie. Nil admits all.
	Admit func(peer Name) Status

	// Give names, for Accept, a peer that sent only its host. Nil stands for NewName.
	Give func(host string) (node string, creation uint32)

	// Alive answers, for Start, a peer that already has a connection to our name:
	// StatusTrue replaces it, StatusFalse keeps it. Nil stands for StatusTrue.
	Alive func() Status

	// Challenges, if not nil, are the open challenges of all handshakes that share it,
	// which should be all of a process: none of them is answered.
	Challenges *Challenges

	// Rand is the source of challenges. Nil means crypto/rand.
	Rand io.Reader

	// Version is the version that Start speaks, 5 or 6. Zero means 6.
	Version int
}

// Peer is the node at the other end after a handshake.
type Peer struct {
	Name     string
	Creation uint32 // 0 if a version 5 peer did not send it
	Version  int    // 5 or 6
	Flags    Flags  // what both sides can do
	Hidden   bool   // it did not offer PUBLISHED

	// PreviousCookie tells, after Accept, that it has the previous cookie and not the
	// current one.
	PreviousCookie bool
}

// Errors that a caller branches on; all others come from the stream or a malformed
// message.
var (
	// ErrCookie: the peer has another cookie, or hung up where one does that has. Then
	// the stream's error is in it too.
	ErrCookie  = errors.New("wrong cookie")
	ErrRefused = errors.New("refused")

	// ErrOwnChallenge: the peer posed a challenge of our own, to have us answer it.
	ErrOwnChallenge = fmt.Errorf("%w: it posed a challenge of this node, as one without the cookie would", ErrRefused)

	// ErrSimultaneous is returned by Start: the two sides share a connection that the
	// other one dialled, or will soon.
	ErrSimultaneous = errors.New("the other side has dialled at the same time")
)

// Accept answers a handshake begun by the other side of rw. The caller sets deadlines.
func Accept(rw io.ReadWriter, o Options) (Peer, error) {
	a := acceptor{stream: newStream(rw, o), o: o}
	if err := a.recvName(); err != nil {
		return Peer{}, err
	}
	if o.Heard != nil {
		if err := o.Heard(); err != nil {
			return a.peer, err
		}
	}
	if err := a.sendStatus(); err != nil {
		return a.peer, err
	}
	return a.peer, a.prove()
}

type acceptor struct {
	stream
	o    Options
	name Name
	peer Peer
	all  Flags // as the peer offers them
}

func newStream(rw io.ReadWriter, o Options) stream {
	s := stream{rw: rw, lenSize: 2}
	if o.LongLen {
		s.lenSize = 4
	}
	return s
}

func (a *acceptor) recvName() error {
	m := &a.name
	if err := a.recvInto(m); err != nil {
		return err
	}
	a.all = m.Flags
	a.peer = Peer{Name: m.Node, Creation: m.Creation, Version: m.Version}
	return nil
}

func (a *acceptor) sendStatus() error {
	if a.all.Has(NameMe) {
		give := a.o.Give
		if give == nil {
			give = NewName
		}
		a.peer.Name, a.peer.Creation = give(a.peer.Name)
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
		return fmt.Errorf("%w: already connected, and it keeps that connection", ErrRefused)
	}
	return fmt.Errorf("%w: status %s", ErrRefused, status)
}

// prove exchanges the challenges. An old name from a node that knows version 6 (OTP 23
// and 24, when they could not ask EPMD) gets a version 6 challenge. A peer that was
// given a name accepts it only from a challenge with NAME_ME.
func (a *acceptor) prove() error {
	version := a.peer.Version
	if a.all.Has(Handshake23) {
		version = 6
	}
	ours, end, err := a.o.Challenges.pose(a.o.Rand)
	if err != nil {
		return err
	}
	defer end()
	err = a.send(Challenge{
		Version: version, Flags: Offered | a.all&NameMe, Challenge: ours, Creation: a.o.Creation, Node: a.o.Node,
	})
	if err != nil {
		return err
	}
	b, err := a.recv()
	if err != nil {
		return err
	}
	if version > a.peer.Version && b[0] == tagComplement {
		var m Complement
		if err := m.Decode(b); err != nil {
			return err
		}
		a.all |= Flags(m.High) << 32
		a.peer.Creation, a.peer.Version = m.Creation, 6
		if b, err = a.recv(); err != nil {
			return err
		}
	}
	var reply Reply
	if err := reply.Decode(b); err != nil {
		return err
	}
	if a.o.Challenges.has(reply.Challenge) {
		return ErrOwnChallenge
	}
	cookie, err := a.cookieOf(reply.Digest, ours)
	if err != nil {
		return err
	}
	a.peer.settle(a.all)
	return a.send(Ack{MakeDigest(cookie, reply.Challenge)})
}

// cookieOf returns the cookie with which a peer has answered our challenge. It compares
// with both whatever the outcome, so that the time it takes tells nothing.
func (a *acceptor) cookieOf(d Digest, ours uint32) (cookie string, err error) {
	current := d.equal(MakeDigest(a.o.Cookie, ours))
	previous := d.equal(MakeDigest(a.o.PreviousCookie, ours)) && a.o.PreviousCookie != ""
	switch {
	case current:
		return a.o.Cookie, nil
	case previous:
		a.peer.PreviousCookie = true
		return a.o.PreviousCookie, nil
	}
	return "", ErrCookie
}

// settle keeps what both sides can do.
func (p *Peer) settle(theirs Flags) {
	p.Flags = theirs.expand() & Offered
	p.Hidden = !theirs.Has(Published)
}
