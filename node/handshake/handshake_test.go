package handshake

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
)

const (
	here   = "here@127.0.0.1"
	there  = "there@127.0.0.1"
	cookie = "flake"
)

// scalang holds the flags of Scalang, which do not include HANDSHAKE_23.
const scalang Flags = 0x4dbc

// outcome is the result of a handshake for one side.
type outcome struct {
	peer Peer
	err  error
}

// shake runs Accept at one end of a pipe and dial at the other, and closes each end when its
// side has ended.
func shake(o Options, dial func(rw io.ReadWriter) (Peer, error)) (accepted, dialed outcome) {
	a, b := net.Pipe()
	done := make(chan outcome)
	go func() {
		p, err := dial(b)
		b.Close()
		done <- outcome{p, err}
	}()
	accepted.peer, accepted.err = Accept(a, o)
	a.Close()
	return accepted, <-done
}

// with returns a dialing side that calls Start.
func with(o Options) func(io.ReadWriter) (Peer, error) {
	return func(rw io.ReadWriter) (Peer, error) { return Start(rw, there, o) }
}

// scripted returns one side of a handshake, given message by message.
func scripted(play func(s *script)) func(io.ReadWriter) (Peer, error) {
	return func(rw io.ReadWriter) (Peer, error) {
		s := script{stream: newStream(rw, Options{})}
		play(&s)
		return Peer{}, s.err
	}
}

// script sends and receives until the first error.
type script struct {
	stream
	err error
}

func (s *script) say(m message) {
	if s.err == nil {
		s.err = s.send(m)
	}
}

func (s *script) hear(m decoder) {
	if s.err == nil {
		s.err = s.recvInto(m)
	}
}

// hearStatus receives a status and checks it.
func (s *script) hearStatus(want Status) {
	var m Status
	if s.hear(&m); s.err == nil && m != want {
		s.err = fmt.Errorf("status %s, want %s", m, want)
	}
}

// finish answers the challenge and checks the answer to its own.
func (s *script) finish(c Challenge) {
	const ours = 4711
	s.say(Reply{ours, makeDigest(cookie, c.Challenge)})
	var answer ack
	if s.hear(&answer); s.err == nil && answer.Digest != makeDigest(cookie, ours) {
		s.err = errors.New("wrong digest in the ack")
	}
}

// After a handshake, each side knows the other's name, creation and flags.
func TestAcceptStart(t *testing.T) {
	for _, long := range []bool{false, true} {
		t.Run(fmt.Sprintf("long lengths %t", long), func(t *testing.T) {
			accepted, started := shake(
				Options{Node: there, Creation: 0x99887766, Cookie: cookie, LongLen: long},
				with(Options{Node: here, Creation: 0x11223344, Cookie: cookie, LongLen: long}))
			flags := Offered.expand()
			if want := (outcome{Peer{here, 0x11223344, 6, flags, true, false, false}, nil}); accepted != want {
				t.Errorf("accepted %+v, want %+v", accepted, want)
			}
			if want := (outcome{Peer{there, 0x99887766, 6, flags, true, false, false}, nil}); started != want {
				t.Errorf("started %+v, want %+v", started, want)
			}
		})
	}
}

// An old name is answered with an old challenge, and no complement follows.
func TestAcceptVersion5(t *testing.T) {
	var c Challenge
	accepted, dialed := shake(Options{Node: there, Creation: 7, Cookie: cookie}, scripted(func(s *script) {
		s.say(Name{Version: 5, Flags: scalang | Published, Node: here})
		s.hearStatus(StatusOK)
		s.hear(&c)
		s.finish(c)
	}))
	if dialed.err != nil {
		t.Fatal(dialed.err)
	}
	if c.Version != 5 || c.Node != there || c.Flags != Offered&0xffffffff {
		t.Errorf("challenge %+v", c)
	}
	if want := (outcome{Peer{here, 0, 5, scalang & Offered, false, false, false}, nil}); accepted != want {
		t.Errorf("accepted %+v, want %+v", accepted, want)
	}
}

// An old name with HANDSHAKE_23 is answered with a new challenge. A complement may follow; without
// it the peer keeps version 5.
func TestAcceptComplement(t *testing.T) {
	for _, completed := range []bool{true, false} {
		var c Challenge
		accepted, dialed := shake(Options{Node: there, Creation: 7, Cookie: cookie}, scripted(func(s *script) {
			s.say(Name{Version: 5, Flags: Offered, Node: here})
			s.hearStatus(StatusOK)
			s.hear(&c)
			if completed {
				s.say(complement{High: uint32(Alias >> 32), Creation: 9})
			}
			s.finish(c)
		}))
		if dialed.err != nil {
			t.Fatal(dialed.err)
		}
		if want := (Challenge{6, Offered, c.Challenge, 7, there}); c != want {
			t.Errorf("challenge %+v, want %+v", c, want)
		}
		want := Peer{here, 0, 5, Offered & 0xffffffff, true, false, false}
		if completed {
			want = Peer{here, 9, 6, Offered&0xffffffff | Alias, true, false, false}
		}
		want.Flags = want.Flags.expand()
		if accepted != (outcome{want, nil}) {
			t.Errorf("accepted %+v, want %+v", accepted, want)
		}
	}
}

// A complement after a name without HANDSHAKE_23 is refused.
func TestAcceptComplementUnasked(t *testing.T) {
	accepted, _ := shake(Options{Node: there, Cookie: cookie}, scripted(func(s *script) {
		s.say(Name{Version: 5, Flags: scalang, Node: here})
		s.hearStatus(StatusOK)
		var c Challenge
		s.hear(&c)
		s.say(complement{})
		s.finish(c)
	}))
	if accepted.err == nil || errors.Is(accepted.err, io.EOF) || accepted.err == ErrCookie {
		t.Errorf("accepted %+v", accepted)
	}
}

// MANDATORY_25_DIGEST implies all flags of mandatory25.
func TestMandatory25Digest(t *testing.T) {
	accepted, _ := shake(Options{Node: there, Cookie: cookie}, scripted(func(s *script) {
		s.say(Name{Version: 6, Flags: Mandatory25Digest, Node: here})
		s.hearStatus(StatusOK)
		var c Challenge
		s.hear(&c)
		s.finish(c)
	}))
	if want := 0x1070f94 | Mandatory25Digest; accepted.err != nil || accepted.peer.Flags != want {
		t.Errorf("%+v, want %#x", accepted, want)
	}
}

// Start supports a node of version 5.
func TestStartVersion5(t *testing.T) {
	a, b := net.Pipe()
	server := make(chan error, 1)
	go func() {
		var name Name
		_, err := scripted(func(s *script) {
			s.hear(&name)
			s.say(StatusOK)
			c := Challenge{Version: 5, Flags: scalang, Challenge: 12, Node: there}
			s.say(c)
			var r Reply
			s.hear(&r)
			if s.err == nil && r.Digest != makeDigest(cookie, c.Challenge) {
				s.err = errors.New("wrong digest in the reply")
			}
			s.say(ack{makeDigest(cookie, r.Challenge)})
		})(b)
		if err == nil && name.Version != 6 {
			err = fmt.Errorf("name of version %d", name.Version)
		}
		b.Close()
		server <- err
	}()
	p, err := Start(a, there, Options{Node: here, Creation: 3, Cookie: cookie})
	if want := (Peer{there, 0, 5, scalang & Offered, true, false, false}); err != nil || p != want {
		t.Errorf("%+v, %v, want %+v", p, err, want)
	}
	if err := <-server; err != nil {
		t.Error(err)
	}
}

// A peer without a name is assigned a new name with its host each time.
func TestNameMe(t *testing.T) {
	seen, creations := make(map[string]bool), make(map[uint32]bool)
	for range 3 {
		var told []byte
		accepted, dialed := shake(Options{Node: there, Creation: 7, Cookie: cookie}, scripted(func(s *script) {
			s.say(Name{Version: 6, Flags: Offered | NameMe, Node: "127.0.0.1"})
			told, s.err = s.recv()
			told = bytes.Clone(told)
			var c Challenge
			if s.hear(&c); s.err == nil && !c.Flags.Has(NameMe) {
				s.err = errors.New("the challenge has no NAME_ME")
			}
			s.finish(c)
		}))
		if accepted.err != nil || dialed.err != nil {
			t.Fatal(accepted.err, dialed.err)
		}
		p := accepted.peer
		if want := (named{p.Name, p.Creation}).Append(nil); string(told) != string(want) {
			t.Errorf("sent %q, want %q", told, want)
		}
		if !strings.HasSuffix(p.Name, "@127.0.0.1") || checkName(p.Name, 0) != nil || p.Creation == 0 {
			t.Errorf("assigned %+v", p)
		}
		seen[p.Name], creations[p.Creation] = true, true
	}
	if len(seen) != 3 || len(creations) == 1 {
		t.Errorf("names %v, creations %v", seen, creations)
	}
}

// A side that dials a node to which it is already connected decides which connection is kept.
func TestAlive(t *testing.T) {
	alive := Options{Node: there, Cookie: cookie, Admit: func(Name) Status { return StatusAlive }}
	for _, answer := range []Status{StatusTrue, StatusFalse, StatusOK} {
		accepted, dialed := shake(alive, scripted(func(s *script) {
			s.say(Name{Version: 6, Flags: Offered, Node: here})
			s.hearStatus(StatusAlive)
			s.say(answer)
			var c Challenge
			s.hear(&c)
			s.finish(c)
		}))
		if answer == StatusTrue {
			if accepted.err != nil || dialed.err != nil {
				t.Error(accepted.err, dialed.err)
			}
		} else if !errors.Is(accepted.err, ErrRefused) || accepted.peer.Name != here {
			t.Errorf("answer %s: %+v", answer, accepted)
		}
	}
	if accepted, started := shake(alive, with(Options{Node: here, Cookie: cookie})); accepted.err != nil ||
		started.err != nil {
		t.Errorf("Start: %v, %v", accepted.err, started.err)
	}
	keep := with(Options{Node: here, Cookie: cookie, Alive: func() Status { return StatusFalse }})
	if accepted, started := shake(alive, keep); !errors.Is(accepted.err, ErrRefused) ||
		!errors.Is(started.err, ErrSimultaneous) {
		t.Errorf("Start: %v, %v", accepted.err, started.err)
	}
}

// Admit is called with the peer's name and returns the status that is sent.
func TestAdmit(t *testing.T) {
	for status, ok := range map[Status]bool{
		StatusOK: true, StatusOKSimultaneous: true, StatusNOK: false, StatusNotAllowed: false,
	} {
		var asked string
		admit := func(peer Name) Status {
			asked = peer.Node
			return status
		}
		accepted, started := shake(Options{Node: there, Cookie: cookie, Admit: admit},
			with(Options{Node: here, Cookie: cookie}))
		if asked != here {
			t.Errorf("Admit was called with %q", asked)
		}
		for _, o := range []outcome{accepted, started} {
			if (o.err == nil) != ok || !ok && !errors.Is(o.err, ErrRefused) {
				t.Errorf("%s: %v", status, o.err)
			}
		}
		if errors.Is(started.err, ErrSimultaneous) != (status == StatusNOK) {
			t.Errorf("%s: %v", status, started.err)
		}
	}
}

// Each side detects a wrong cookie. Accept then does not send a digest of its own cookie.
func TestWrongCookie(t *testing.T) {
	accepted, started := shake(Options{Node: there, Cookie: cookie}, with(Options{Node: here, Cookie: "guess"}))
	if accepted.err != ErrCookie || accepted.peer.Name != here {
		t.Errorf("accepted %+v", accepted)
	}
	if !errors.Is(started.err, io.EOF) || !strings.Contains(started.err.Error(), "wrong cookie") {
		t.Errorf("started %+v", started)
	}

	a, b := net.Pipe()
	go scripted(func(s *script) { // a peer that accepts any digest, without a cookie
		s.hear(new(Name))
		s.say(StatusOK)
		s.say(Challenge{Version: 6, Flags: Offered, Challenge: 1, Creation: 1, Node: there})
		s.hear(new(Reply))
		s.say(ack{})
	})(b)
	if p, err := Start(a, there, Options{Node: here, Cookie: cookie}); err != ErrCookie {
		t.Errorf("started %+v, %v", p, err)
	}
}

// Start refuses a node other than the dialed one.
func TestStartOtherNode(t *testing.T) {
	_, started := shake(Options{Node: "other@127.0.0.1", Cookie: cookie}, with(Options{Node: here, Cookie: cookie}))
	if !errors.Is(started.err, ErrRefused) {
		t.Errorf("started %+v", started)
	}
	_, started = shake(Options{Node: "other@127.0.0.1", Cookie: cookie}, func(rw io.ReadWriter) (Peer, error) {
		return Start(rw, "", Options{Node: here, Cookie: cookie})
	})
	if started.err != nil || started.peer.Name != "other@127.0.0.1" {
		t.Errorf("started %+v", started)
	}
}

// A length beyond MaxMessage is refused before the message is read.
func TestLengths(t *testing.T) {
	for _, test := range []struct {
		length []byte
		long   bool
	}{
		{[]byte{0, 0}, false},
		{[]byte{2, 1}, false},
		{[]byte{0xff, 0xff}, false},
		{[]byte{0, 0, 0, 0}, true},
		{[]byte{0, 0, 2, 1}, true},
		{[]byte{0xff, 0xff, 0xff, 0xff}, true},
	} {
		s := stubOf(test.length, make([]byte, MaxMessage+1))
		_, err := Accept(s, Options{Node: here, LongLen: test.long})
		if err == nil || !strings.Contains(err.Error(), "must be 1 to 512") {
			t.Errorf("%x: %v", test.length, err)
		}
		if s.in.Len() != MaxMessage+1 {
			t.Errorf("%x: %d bytes left", test.length, s.in.Len())
		}
	}
	name := Name{Version: 6, Node: here}.Append(nil)
	name = append(name, make([]byte, MaxMessage-len(name))...) // as in a later version
	s := stubOf([]byte{2, 0}, name)
	if p, err := Accept(s, Options{Node: there}); err != io.EOF || p.Name != here {
		t.Errorf("longest message: %+v, %v", p, err)
	}
}

// A handshake fails if the source of randomness fails.
func TestNoRandomness(t *testing.T) {
	dry := Options{Node: there, Cookie: cookie, Rand: strings.NewReader("abc")}
	accepted, _ := shake(dry, with(Options{Node: here, Cookie: cookie}))
	if accepted.err != io.ErrUnexpectedEOF {
		t.Errorf("accepted %+v", accepted)
	}
	_, started := shake(Options{Node: there, Cookie: cookie},
		with(Options{Node: here, Cookie: cookie, Rand: strings.NewReader("")}))
	if started.err != io.EOF {
		t.Errorf("started %+v", started)
	}
}

// A peer may have the previous cookie, if one is set, and is answered with the cookie that
// it has.
func TestPreviousCookie(t *testing.T) {
	for _, test := range []struct {
		name              string
		current, previous string
		has               string
		ok, old           bool
	}{
		{"current", "new", "old", "new", true, false},
		{"previous", "new", "old", "old", true, true},
		{"neither", "new", "old", "guess", false, false},
		{"no previous one", "new", "", "old", false, false},
		{"empty", "new", "", "", false, false},
		{"twice the same", "new", "new", "new", true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			accepted, started := shake(Options{Node: there, Cookie: test.current, PreviousCookie: test.previous},
				with(Options{Node: here, Cookie: test.has}))
			if ok := accepted.err == nil && started.err == nil; ok != test.ok || accepted.peer.PreviousCookie != test.old {
				t.Errorf("accepted %+v, started %+v", accepted, started)
			}
			if !test.ok && (accepted.err != ErrCookie || !errors.Is(started.err, ErrCookie)) {
				t.Errorf("accepted %v, started %v, want %v", accepted.err, started.err, ErrCookie)
			}
		})
	}
}

// Neither side answers an open challenge of its own.
func TestOwnChallenge(t *testing.T) {
	ours := new(Challenges)
	o := Options{Node: there, Creation: 7, Cookie: cookie, Challenges: ours}
	caller := o
	caller.Node = here
	relayed := func(challenge uint32) {
		t.Helper()
		a, b := net.Pipe()
		defer a.Close()
		go func() {
			scripted(func(s *script) {
				s.hear(new(Name))
				s.say(StatusOK)
				s.say(Challenge{Version: 6, Flags: Offered, Challenge: challenge, Creation: 1, Node: there})
				s.hear(new(Reply))
			})(b)
			b.Close()
		}()
		if _, err := Start(a, there, caller); !errors.Is(err, ErrOwnChallenge) {
			t.Errorf("for the challenge of another handshake, Start returned %v", err)
		}
	}
	accepted, _ := shake(o, scripted(func(s *script) {
		s.say(Name{Version: 6, Flags: Offered, Node: here})
		s.hearStatus(StatusOK)
		var c Challenge
		s.hear(&c)
		relayed(c.Challenge)
		s.say(Reply{c.Challenge, makeDigest(cookie, c.Challenge)})
	}))
	if !errors.Is(accepted.err, ErrOwnChallenge) {
		t.Errorf("accepted %+v", accepted)
	}

	a, b := net.Pipe()
	done := make(chan error)
	go func() {
		_, err := Start(a, there, caller)
		a.Close()
		done <- err
	}()
	scripted(func(s *script) {
		s.hear(new(Name))
		s.say(StatusOK)
		s.say(Challenge{Version: 6, Flags: Offered, Challenge: 1, Creation: 1, Node: there})
		var r Reply
		s.hear(&r)
		relayed(r.Challenge)
		s.say(ack{makeDigest(cookie, r.Challenge)})
	})(b)
	if err := <-done; err != nil || ours.count() != 0 {
		t.Errorf("Start returned %v; %d challenges are still open", err, ours.count())
	}
}

func (c *Challenges) count() (open int) {
	for range c.open.Range {
		open++
	}
	return open
}

// Two open challenges are never equal.
func TestPoseOnce(t *testing.T) {
	var ours Challenges
	random := strings.NewReader("aaaaaaaabbbb")
	first, end, _ := ours.pose(random)
	second, _, err := ours.pose(random)
	if end(); err != nil || first == second || ours.count() != 1 {
		t.Errorf("challenges %x and %x, %v", first, second, err)
	}
}
