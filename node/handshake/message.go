package handshake

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// The tags of the messages. On the wire they are characters. Append appends a message, and Decode reads
// it from all of its source.
const (
	tagNameNew    byte = 'N' // send_name and challenge of version 6
	tagNameOld    byte = 'n' // send_name and challenge of version 5
	tagStatus     byte = 's'
	tagComplement byte = 'c'
	tagReply      byte = 'r'
	tagAck        byte = 'a'
)

// MaxNameLength bounds the bytes of a node name, as in an atom.
const MaxNameLength = 255

// Name is send_name, the first message from the side that dialed:
//
//	'N' flags:64 creation:32 len:16 name
//	'n' version:16 flags:32 name
type Name struct {
	Version  int // 5 or 6
	Flags    Flags
	Creation uint32 // 0 in version 5
	Node     string // the host alone, if Flags has NameMe
}

func (m Name) Append(dst []byte) []byte {
	return Challenge{m.Version, m.Flags, 0, m.Creation, m.Node}.append(dst, false)
}

func (m *Name) Decode(src []byte) error {
	var c Challenge
	if err := c.decode("send_name", src, 0); err != nil {
		return err
	}
	*m = Name{c.Version, c.Flags, c.Creation, c.Node}
	return checkName(m.Node, m.Flags)
}

// Challenge is the challenge from the side that was dialed:
//
//	'N' flags:64 challenge:32 creation:32 len:16 name
//	'n' version:16 flags:32 challenge:32 name
type Challenge struct {
	Version   int // 5 or 6
	Flags     Flags
	Challenge uint32
	Creation  uint32 // 0 in version 5
	Node      string
}

func (m Challenge) Append(dst []byte) []byte { return m.append(dst, true) }

func (m Challenge) append(dst []byte, challenge bool) []byte {
	if m.Version < 6 {
		dst = binary.BigEndian.AppendUint16(append(dst, tagNameOld), uint16(m.Version))
		dst = binary.BigEndian.AppendUint32(dst, uint32(m.Flags))
	} else {
		dst = binary.BigEndian.AppendUint64(append(dst, tagNameNew), uint64(m.Flags))
	}
	if challenge {
		dst = binary.BigEndian.AppendUint32(dst, m.Challenge)
	}
	if m.Version < 6 {
		return append(dst, m.Node...)
	}
	return appendName(binary.BigEndian.AppendUint32(dst, m.Creation), m.Node)
}

func (m *Challenge) Decode(src []byte) error {
	if err := m.decode("challenge", src, 4); err != nil {
		return err
	}
	return checkName(m.Node, 0)
}

// decode reads a message whose challenge is size bytes long, 4 or 0.
func (m *Challenge) decode(message string, src []byte, size int) error {
	*m = Challenge{}
	var challenge []byte
	switch {
	case len(src) >= 7+size && src[0] == tagNameOld:
		m.Version = int(binary.BigEndian.Uint16(src[1:]))
		m.Flags = Flags(binary.BigEndian.Uint32(src[3:]))
		challenge = src[7:]
		m.Node = string(challenge[size:])
		if m.Version != 5 {
			return fmt.Errorf("%s: version %d: must be 5", message, m.Version)
		}
	case len(src) >= 15+size && src[0] == tagNameNew:
		m.Version = 6
		m.Flags = Flags(binary.BigEndian.Uint64(src[1:]))
		challenge = src[9:]
		m.Creation = binary.BigEndian.Uint32(challenge[size:])
		n, rest := int(binary.BigEndian.Uint16(challenge[size+4:])), challenge[size+6:]
		if n > len(rest) {
			return fmt.Errorf("%s: name of %d bytes, but only %d left", message, n, len(rest))
		}
		m.Node = string(rest[:n]) // like OTP, ignore further bytes, which later versions may use
	default:
		return malformed(message, src)
	}
	if size > 0 {
		m.Challenge = binary.BigEndian.Uint32(challenge)
	}
	return nil
}

// Status is the answer to a name: 's' and a word.
type Status string

const (
	StatusOK             Status = "ok"              // continue
	StatusOKSimultaneous Status = "ok_simultaneous" // continue; this side drops its own attempt
	StatusNOK            Status = "nok"             // this side continues its own attempt instead
	StatusNotAllowed     Status = "not_allowed"
	StatusAlive          Status = "alive" // the name is already connected; continue?
	StatusTrue           Status = "true"  // answer to alive: continue
	StatusFalse          Status = "false" // answer to alive: keep the earlier connection
)

func (m Status) Append(dst []byte) []byte { return append(append(dst, tagStatus), m...) }

func (m *Status) Decode(src []byte) error {
	if len(src) < 2 || src[0] != tagStatus {
		return malformed("status", src)
	}
	*m = Status(src[1:])
	switch *m {
	case StatusOK, StatusOKSimultaneous, StatusNOK, StatusNotAllowed, StatusAlive, StatusTrue, StatusFalse:
		return nil
	}
	return fmt.Errorf("status: unknown %q", src[1:])
}

// named is the status that assigns a name to a peer that asked for one with NAME_ME:
// 's' "named:" len:16 name creation:32.
type named struct {
	node     string
	creation uint32
}

func (m named) Append(dst []byte) []byte {
	dst = appendName(Status("named:").Append(dst), m.node)
	return binary.BigEndian.AppendUint32(dst, m.creation)
}

// complement completes a version 5 name after a version 6 challenge:
// 'c' flags_high:32 creation:32.
type complement struct {
	High     uint32 // the upper half of the flags
	Creation uint32
}

func (m *complement) Decode(src []byte) error {
	return decodeFields("complement", tagComplement, src, m)
}

// Reply answers a challenge and poses another: 'r' challenge:32 digest:128.
type Reply struct {
	Challenge uint32
	Digest    Digest
}

func (m Reply) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(append(dst, tagReply), m.Challenge)
	return append(dst, m.Digest[:]...)
}

func (m *Reply) Decode(src []byte) error { return decodeFields("challenge_reply", tagReply, src, m) }

// ack answers the challenge of a Reply: 'a' digest:128.
type ack struct{ Digest Digest }

func (m ack) Append(dst []byte) []byte { return append(append(dst, tagAck), m.Digest[:]...) }

func (m *ack) Decode(src []byte) error { return decodeFields("challenge_ack", tagAck, src, m) }

// decodeFields reads a tag and the fields of m, which have a fixed size.
func decodeFields(message string, tag byte, src []byte, m any) error {
	if len(src) != 1+binary.Size(m) || src[0] != tag {
		return malformed(message, src)
	}
	_, err := binary.Decode(src[1:], binary.BigEndian, m)
	return err
}

func appendName(dst []byte, name string) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(name)))
	return append(dst, name...)
}

func checkName(node string, flags Flags) error {
	name, host, _ := strings.Cut(node, "@")
	if flags.Has(NameMe) {
		name, host = "-", node
	}
	switch {
	case name == "" || host == "" || strings.Contains(host, "@"):
		return fmt.Errorf("node name %q: must be name@host", node)
	case len(node) > MaxNameLength || !utf8.ValidString(node):
		return fmt.Errorf("node name %q: must be UTF-8 of at most %d bytes", node, MaxNameLength)
	}
	return nil
}

func malformed(message string, src []byte) error {
	const shown = 32
	if len(src) > shown {
		return fmt.Errorf("%s: malformed: %q and %d more bytes", message, src[:shown], len(src)-shown)
	}
	return fmt.Errorf("%s: malformed: %q", message, src)
}

// NewName returns a random node name and creation for a peer that sent only its host, as OTP does for
// "erl -name undefined".
func NewName(host string) (string, uint32) { return rand.Text()[:13] + "@" + host, NewCreation() }

// NewCreation returns a random creation, which identifies one run of a node. Its lower two bits are
// never both 0, because old peers use only these two, and 0 means any creation.
func NewCreation() uint32 {
	for {
		var b [4]byte
		rand.Read(b[:]) // never fails
		if b[3]&3 != 0 {
			return binary.BigEndian.Uint32(b[:])
		}
	}
}

// MaxMessage bounds the bytes of one handshake message. The longest is a challenge with a
// name of MaxNameLength; later versions may need more bytes.
const MaxMessage = 512

// stream reads and writes messages, each preceded by its length.
type stream struct {
	rw         io.ReadWriter
	lenSize    int // 2, or 4 in TLS distribution
	challenges *Challenges
	buf        [4 + MaxMessage]byte
}

// recv returns the next message, valid until the next call to recv or send.
func (s *stream) recv() ([]byte, error) {
	head := s.buf[:s.lenSize]
	if _, err := io.ReadFull(s.rw, head); err != nil {
		return nil, err
	}
	n := uint64(binary.BigEndian.Uint16(head))
	if s.lenSize == 4 {
		n = uint64(binary.BigEndian.Uint32(head))
	}
	if n == 0 || n > MaxMessage {
		return nil, fmt.Errorf("message of %d bytes: must be 1 to %d", n, MaxMessage)
	}
	if _, err := io.ReadFull(s.rw, s.buf[:n]); err != nil {
		return nil, fmt.Errorf("message of %d bytes: %w", n, err)
	}
	return s.buf[:n], nil
}

// send writes one message with one Write.
func (s *stream) send(m interface{ Append([]byte) []byte }) error {
	b := m.Append(s.buf[:s.lenSize])
	n := len(b) - s.lenSize
	if s.lenSize == 4 {
		binary.BigEndian.PutUint32(b, uint32(n))
	} else {
		binary.BigEndian.PutUint16(b, uint16(n))
	}
	_, err := s.rw.Write(b)
	return err
}

type decoder interface{ Decode([]byte) error }

func (s *stream) recvInto(m decoder) error {
	b, err := s.recv()
	if err != nil {
		return err
	}
	return m.Decode(b)
}
