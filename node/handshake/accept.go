package handshake

import (
	"errors"
	"fmt"
	"io"
)

// Options is what our side brings to a handshake.
type Options struct {
	Node     string // our name, name@host
	Creation uint32 // tells this run of our node from others of its name, not 0
	Cookie   string
	LongLen  bool // lengths of 4 bytes instead of 2, as TLS distribution has them

	// Heard is told, for Accept, that the peer has said its name. An error ends the
	// handshake. Nil is told nothing.
	Heard func() error

	// Admit decides, for Accept, whether the peer may go on, before it has shown
	// that it holds the cookie. Nil admits all.
	Admit func(peer Name) Status

	// Give gives, for Accept, a name to a peer that came with its host alone. Nil
	// stands for NewName.
	Give func(host string) (node string, creation uint32)

	// Alive answers, for Start, a peer that has a connection to our name already:
	// StatusTrue replaces that, StatusFalse keeps it. Nil stands for StatusTrue.
	Alive func() Status

	// Rand is where challenges come from. Nil means crypto/rand.
	Rand io.Reader

	// Version is the version that Start speaks, 5 or 6. Zero means 6.
	Version int
}

// Peer is the node at the other end after a handshake.
type Peer struct {
	Name     string
	Creation uint32 // 0 where a version 5 peer has not told it
	Version  int    // 5 or 6
	Flags    Flags  // what both sides can do
	Hidden   bool   // did not offer PUBLISHED
}

// Errors that a caller branches on; all others are of the stream or of an
// ill-formed message.
var (
	ErrCookie  = errors.New("wrong cookie")
	ErrRefused = errors.New("refused")

	// ErrSimultaneous is of Start: the two sides share, or are about to, a
	// connection that the other one dialled.
	ErrSimultaneous = errors.New("the other side has dialled at the same time")
)

// Accept answers a handshake that the other side of rw began. Deadlines are the
// caller's.
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

// prove exchanges the challenges. An old name from a node that knows version 6
// (OTP 23 and 24, when they could not ask EPMD) gets a version 6 challenge. One
// that was given a name takes it only from a challenge with NAME_ME.
func (a *acceptor) prove() error {
	version := a.peer.Version
	if a.all.Has(Handshake23) {
		version = 6
	}
	ours, err := newChallenge(a.o.Rand)
	if err != nil {
		return err
	}
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
	if !reply.Digest.equal(MakeDigest(a.o.Cookie, ours)) {
		return ErrCookie
	}
	a.peer.settle(a.all)
	return a.send(Ack{MakeDigest(a.o.Cookie, reply.Challenge)})
}

// settle keeps what both sides can do.
func (p *Peer) settle(theirs Flags) {
	p.Flags = theirs.expand() & Offered
	p.Hidden = !theirs.Has(Published)
}
