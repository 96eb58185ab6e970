package handshake

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// thin is a stub whose writes fail after a number of messages.
type thin struct {
	*stub
	takes int
}

var errThin = errors.New("no more")

func (s *thin) Write(b []byte) (int, error) {
	if s.takes--; s.takes < 0 {
		return 0, errThin
	}
	return s.stub.Write(b)
}

// said returns the bytes of a peer's messages.
func said(messages ...message) []byte {
	var s stub
	peer := newStream(&s, Options{})
	for _, m := range messages {
		peer.send(m)
	}
	return s.out.Bytes()
}

// If the stream fails at any message, the handshake ends with the stream's error.
func TestBroken(t *testing.T) {
	const posed = 77
	name := Name{Version: 6, Flags: Offered, Creation: 1, Node: here}
	old := Name{Version: 5, Flags: Offered & 0xffffffff, Node: here}
	challenge := Challenge{Version: 6, Flags: Offered, Challenge: 1, Creation: 1, Node: there}
	digest := makeDigest(cookie, posed)
	admit := func(Name) Status { return StatusAlive }
	keep := func() Status { return StatusFalse }
	for _, test := range []struct {
		does  string
		start bool
		o     Options
		hears []message
		says  int // number of messages
		want  error
	}{
		{"accept", false, Options{}, []message{name, Reply{1, digest}}, 3, nil},
		{"accept a nameless peer", false, Options{},
			[]message{Name{Version: 6, Flags: Offered | NameMe, Node: "b"}, Reply{1, digest}}, 3, nil},
		{"accept a connected peer", false, Options{Admit: admit}, []message{name, StatusTrue, Reply{1, digest}}, 3, nil},
		{"accept a complement", false, Options{}, []message{old, complement{1, 1}, Reply{1, digest}}, 3, nil},
		{"start", true, Options{}, []message{StatusOK, challenge, ack{digest}}, 2, nil},
		{"start, replacing", true, Options{}, []message{StatusAlive, challenge, ack{digest}}, 3, nil},
		{"start, not replacing", true, Options{Alive: keep}, []message{StatusAlive}, 2, ErrSimultaneous},
	} {
		run := func(in []byte, takes int) (*thin, error) {
			s := &thin{stubOf(in), takes}
			test.o.Node, test.o.Cookie, test.o.Rand = here, cookie, strings.NewReader("\x00\x00\x00\x4d")
			if test.start {
				_, err := Start(s, there, test.o)
				return s, err
			}
			_, err := Accept(s, test.o)
			return s, err
		}
		in := said(test.hears...)
		if s, err := run(in, test.says); !errors.Is(err, test.want) || s.takes != 0 {
			t.Errorf("%s: %v; %d messages fewer than %d were sent", test.does, err, s.takes, test.says)
		}
		for n := range test.says {
			if s, err := run(in, n); err != errThin || s.takes != -1 {
				t.Errorf("%s: %v; %d more writes were tried after %d messages", test.does, err, -1-s.takes, n)
			}
		}
		for n := range in {
			s, err := run(in[:n], test.says)
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, ErrRefused) {
				t.Errorf("%s: %v after receiving %q", test.does, err, in[:n])
			}
			if ends := strings.Contains(err.Error(), "wrong cookie"); ends != (test.start && s.takes == 0) {
				t.Errorf("%s: %v after sending all but %d of %d messages", test.does, err, s.takes, test.says)
			}
		}
	}
}

// A node that uses TLS closes the stream instead of sending a status.
func TestStartToTLS(t *testing.T) {
	for _, test := range []struct {
		in   string
		long bool
		want bool
	}{{"", false, true}, {"", true, false}, {"\x00\x01x", false, false}} {
		_, err := Start(stubOf([]byte(test.in)), there, Options{Node: here, LongLen: test.long})
		if err == nil || strings.Contains(err.Error(), "TLS") != test.want {
			t.Errorf("%q, TLS: %t: %v", test.in, test.long, err)
		}
	}
}

// A message with the tag of a complement must be a complement.
func TestMalformedComplement(t *testing.T) {
	s := stubOf(said(Name{Version: 5, Flags: Offered, Node: here}, named{}, Reply{1, makeDigest(cookie, 77)}))
	s.in.Bytes()[2+7+len(here)+2] = tagComplement
	p, err := Accept(s, Options{Node: there, Cookie: cookie, Rand: strings.NewReader("\x00\x00\x00\x4d")})
	if err == nil || !strings.Contains(err.Error(), "complement: malformed") {
		t.Errorf("Accept returned %+v, %v", p, err)
	}
}

// NameReceived can end the handshake before a status is sent.
func TestNameReceived(t *testing.T) {
	for _, want := range []error{nil, errThin} {
		s := stubOf(said(Name{Version: 6, Flags: Offered, Creation: 1, Node: here}))
		heard := 0
		p, err := Accept(s, Options{Node: there, NameReceived: func() error { heard++; return want }})
		if heard != 1 || want != nil && err != want || p.Name != here || (s.out.Len() == 0) != (want != nil) {
			t.Errorf("NameReceived was called %d times; %+v, %v; sent %q", heard, p, err, s.out.String())
		}
	}
}

// Accept calls AssignName for a peer without a name.
func TestAssignName(t *testing.T) {
	s := stubOf(said(Name{Version: 6, Flags: Offered | NameMe, Node: "b"}))
	p, _ := Accept(s, Options{Node: there, AssignName: func(host string) (string, uint32) { return "given@" + host, 9 }})
	if p.Name != "given@b" || p.Creation != 9 || !p.Assigned {
		t.Errorf("Accept returned %+v", p)
	}
}
