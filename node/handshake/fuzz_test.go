package handshake

import (
	"bytes"
	"testing"
)

// fuzz checks that a decoded message encodes to bytes that decode to the same message. The
// seeds are the messages of the recorded handshakes and of TestRoundTrip.
func fuzz(f *testing.F, decode func([]byte) (message, error)) {
	seeds := 0
	add := func(src []byte) {
		if _, err := decode(src); err == nil {
			f.Add(src)
			seeds++
		}
	}
	for _, file := range recordings {
		r := readRecording(f, file)
		for _, frame := range [][]byte{r.name, r.status, r.challenge, r.reply, r.ack} {
			add(frame[2:])
		}
	}
	for _, m := range messages {
		add([]byte(m.wire))
	}
	if seeds == 0 {
		f.Fatal("no seeds")
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		m, err := decode(src)
		if err != nil {
			return
		}
		again := m.Append(nil)
		if !bytes.HasPrefix(src, again) {
			t.Errorf("%x is encoded to %x", src, again)
		}
		if got, err := decode(again); err != nil || got != m {
			t.Errorf("%#v round-trips to %#v, %v", m, got, err)
		}
	})
}

func FuzzName(f *testing.F)      { fuzz(f, decodeAs[Name]) }
func FuzzChallenge(f *testing.F) { fuzz(f, decodeAs[Challenge]) }
func FuzzStatus(f *testing.F)    { fuzz(f, decodeAs[Status]) }

// FuzzAccept checks that no bytes from a peer without the cookie are accepted.
func FuzzAccept(f *testing.F) {
	for _, file := range recordings {
		r := readRecording(f, file)
		f.Add(append(r.name, r.reply...), false)
	}
	f.Add([]byte("\x00\x0an\x00\x05\x01\x00\x4d\xbca@b\x00\x09c\x00\x00\x00\x0f\x00\x00\x00\x07"), false)
	f.Add([]byte("\x00\x00\x00\x12N\x00\x00\x00\x01\x23\x45\x67\x89\x00\x00\xca\xfe\x00\x03a@b"), true)
	f.Fuzz(func(t *testing.T, src []byte, long bool) {
		s := stubOf(src)
		if p, err := Accept(s, Options{Node: here, Cookie: cookie, LongLen: long}); err == nil {
			t.Errorf("%x: accepted %+v", src, p)
		}
		if s.out.Len() > 3*(4+MaxMessage) {
			t.Errorf("the answer has %d bytes", s.out.Len())
		}
	})
}
