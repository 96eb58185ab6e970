package handshake

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"os"
	"strings"
	"testing"
)

// recording is a recorded handshake, as frames in the order of the protocol.
type recording struct{ name, status, challenge, reply, ack []byte }

var recordings = []string{"otp25.txt", "otp27.txt", "otp29.txt"}

func readRecording(t testing.TB, file string) recording {
	t.Helper()
	f, err := os.Open("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var frames [][]byte
	for lines := bufio.NewScanner(f); lines.Scan(); {
		_, digits, _ := strings.Cut(lines.Text(), " ")
		b, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatal(err)
		}
		frames = append(frames, b)
	}
	if len(frames) != 5 {
		t.Fatalf("%s: %d frames", file, len(frames))
	}
	return recording{frames[0], frames[1], frames[2], frames[3], frames[4]}
}

// stub is a stream whose peer has already sent all its messages.
type stub struct {
	in  bytes.Buffer
	out bytes.Buffer
}

func (s *stub) Read(b []byte) (int, error)  { return s.in.Read(b) }
func (s *stub) Write(b []byte) (int, error) { return s.out.Write(b) }

func stubOf(parts ...[]byte) *stub {
	s := new(stub)
	s.in.Write(bytes.Join(parts, nil))
	return s
}

// posing returns options whose next challenge is the recorded one.
func (r recording) posing(t testing.TB) (Options, Challenge) {
	t.Helper()
	var c Challenge
	if err := c.Decode(r.challenge[2:]); err != nil {
		t.Fatal(err)
	}
	random := binary.BigEndian.AppendUint32(nil, c.Challenge)
	return Options{Node: c.Node, Creation: c.Creation, Cookie: cookie, Rand: bytes.NewReader(random)}, c
}

// Recorded callers are sent the recorded answers, except for our flags, and no bytes are
// read or written after the handshake.
func TestRecorded(t *testing.T) {
	for _, file := range recordings {
		r := readRecording(t, file)
		o, c := r.posing(t)
		s := stubOf(r.name, r.reply, []byte("frames"))
		if _, err := Accept(s, o); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		c.Flags = Offered
		challenge := c.Append(nil)
		challenge = append(binary.BigEndian.AppendUint16(nil, uint16(len(challenge))), challenge...)
		want := bytes.Join([][]byte{r.status, challenge, r.ack}, nil)
		if got := s.out.String(); got != string(want) {
			t.Errorf("%s: answered %x, want %x", file, got, want)
		}
		if rest := s.in.String(); rest != "frames" {
			t.Errorf("%s: left in the stream: %q", file, rest)
		}
	}
}

// A recorded handshake cannot be replayed, because each challenge is new.
func TestReplay(t *testing.T) {
	for _, file := range recordings {
		r := readRecording(t, file)
		s := stubOf(r.name, r.reply)
		if p, err := Accept(s, Options{Node: here, Cookie: cookie}); err != ErrCookie {
			t.Errorf("%s: %+v, %v, want %v", file, p, err, ErrCookie)
		}
		if bytes.Contains(s.out.Bytes(), r.ack) {
			t.Errorf("%s: the replayed handshake is acknowledged", file)
		}
		again := stubOf(r.name, r.reply)
		Accept(again, Options{Node: here, Cookie: cookie})
		if bytes.Equal(again.out.Bytes(), s.out.Bytes()) {
			t.Errorf("%s: the same challenge is sent twice", file)
		}
	}
}

// Start does not read bytes after the ack either.
func TestStartReadsNoFurther(t *testing.T) {
	const ours = 77
	o := Options{Node: here, Cookie: cookie, Rand: bytes.NewReader([]byte{0, 0, 0, ours})}
	s := new(stub)
	peer := newStream(&s.in, o)
	for _, m := range []message{
		StatusOK, Challenge{Version: 6, Node: there}, ack{makeDigest(cookie, ours)},
	} {
		if err := peer.send(m); err != nil {
			t.Fatal(err)
		}
	}
	s.in.WriteString("frames")
	if _, err := Start(s, there, o); err != nil || s.in.String() != "frames" {
		t.Errorf("%v, left in the stream: %q", err, s.in.String())
	}
}
