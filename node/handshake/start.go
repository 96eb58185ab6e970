package handshake

import (
	"errors"
	"fmt"
	"io"
)

// Start performs a handshake with the node peer, or with any node if peer is empty, at the
// other side of rw. The caller sets deadlines.
func Start(rw io.ReadWriter, peer string, o Options) (Peer, error) {
	s := newStream(rw, o)
	version := o.Version
	if version == 0 {
		version = 6
	}
	err := s.send(Name{Version: version, Flags: Offered, Creation: o.Creation, Node: o.Node})
	if err != nil {
		return Peer{}, err
	}
	if err := recvStatus(&s, o.Alive); err != nil {
		if errors.Is(err, io.EOF) && !o.LongLen {
			err = fmt.Errorf("status: %w (a node that speaks TLS ends like this)", err)
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
	if version < 6 && c.Version == 6 {
		err := s.send(Complement{High: uint32(Offered >> 32), Creation: o.Creation})
		if err != nil {
			return p, err
		}
	}
	if s.challenges.has(c.Challenge) {
		return p, ErrOwnChallenge
	}
	ours, end, err := s.challenges.pose(o.Rand)
	if err != nil {
		return p, err
	}
	defer end()
	if err := s.send(Reply{Challenge: ours, Digest: MakeDigest(o.Cookie, c.Challenge)}); err != nil {
		return p, err
	}
	var ack Ack
	if err := s.recvInto(&ack); err != nil {
		return p, fmt.Errorf("challenge_ack: %w (a %w ends like this)", err, ErrCookie)
	}
	if !ack.Digest.equal(MakeDigest(o.Cookie, ours)) {
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
