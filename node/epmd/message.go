package epmd

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Node is a node's entry in EPMD.
type Node struct {
	Name     string // up to the @
	Port     uint16
	Type     NodeType
	Protocol byte   // 0 means TCP over IPv4; nodes ignore it
	Highest  uint16 // version of the distribution protocol
	Lowest   uint16
	Extra    []byte // at most maxExtra bytes
}

// TCPv6 is the Protocol of a node that listens only on IPv6.
const TCPv6 byte = 1

// append appends the fields of a node, as in ALIVE2_REQ and PORT2_RESP.
func (n *Node) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, n.Port)
	dst = append(dst, byte(n.Type), n.Protocol)
	dst = binary.BigEndian.AppendUint16(dst, n.Highest)
	dst = binary.BigEndian.AppendUint16(dst, n.Lowest)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(n.Name)))
	dst = append(dst, n.Name...)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(n.Extra)))
	return append(dst, n.Extra...)
}

// node reads the fields of a node. Like the real daemon, it ignores trailing bytes.
func (r *reader) node() Node {
	n := Node{
		Port:     uint16(r.uint("port", 2)),
		Type:     NodeType(r.uint("type", 1)),
		Protocol: byte(r.uint("protocol", 1)),
		Highest:  uint16(r.uint("highest version", 2)),
		Lowest:   uint16(r.uint("lowest version", 2)),
	}
	n.Name = r.name(int(r.uint("name length", 2)))
	size := int(r.uint("extra length", 2))
	if size > maxExtra {
		r.fail("extra", fmt.Sprintf("%d bytes, at most %d allowed", size, maxExtra))
	}
	n.Extra = append(n.Extra, r.bytes("extra", size)...)
	return n
}

// Alive2Req is ALIVE2_REQ, which registers a node for as long as the connection stays open.
type Alive2Req struct{ Node Node }

// Append appends the request to dst.
func (m *Alive2Req) Append(dst []byte) []byte {
	return m.Node.append(append(dst, byte(TagAlive2Req)))
}

// Decode reads the request from src.
func (m *Alive2Req) Decode(src []byte) error {
	r := newReader(src, TagAlive2Req)
	m.Node = r.node()
	return r.err
}

// Alive2Resp is ALIVE2_RESP, or ALIVE2_X_RESP if Extended.
type Alive2Resp struct {
	Extended bool
	Result   Result
	Creation uint32 // 16 bits unless Extended; 99 in the real daemon's refusals
}

// Append appends the reply to dst.
func (m *Alive2Resp) Append(dst []byte) []byte {
	if m.Extended {
		dst = append(dst, byte(TagAlive2XResp), byte(m.Result))
		return binary.BigEndian.AppendUint32(dst, m.Creation)
	}
	dst = append(dst, byte(TagAlive2Resp), byte(m.Result))
	return binary.BigEndian.AppendUint16(dst, uint16(m.Creation))
}

// Decode reads the reply from src.
func (m *Alive2Resp) Decode(src []byte) error {
	*m = Alive2Resp{Extended: len(src) > 0 && Tag(src[0]) == TagAlive2XResp}
	tag, size := TagAlive2Resp, 2
	if m.Extended {
		tag, size = TagAlive2XResp, 4
	}
	r := newReader(src, tag)
	m.Result = Result(r.uint("result", 1))
	m.Creation = r.uint("creation", size)
	return r.err
}

// PortPlease2Req is PORT_PLEASE2_REQ, which asks for the node called Name.
type PortPlease2Req struct{ Name string }

// Append appends the request to dst.
func (m *PortPlease2Req) Append(dst []byte) []byte {
	return append(append(dst, byte(TagPortPlease2Req)), m.Name...)
}

// Decode reads the request from src. It ignores the zero byte that old C nodes add to the name.
func (m *PortPlease2Req) Decode(src []byte) error {
	r := newReader(src, TagPortPlease2Req)
	n := len(r.src)
	if n > 0 && r.src[n-1] == 0 {
		n--
	}
	m.Name = r.name(n)
	return r.err
}

// Port2Resp is PORT2_RESP. Node is set if Result is ResultOK.
type Port2Resp struct {
	Result Result
	Node   Node
}

// Append appends the reply to dst.
func (m *Port2Resp) Append(dst []byte) []byte {
	dst = append(dst, byte(TagPort2Resp), byte(m.Result))
	if m.Result != ResultOK {
		return dst
	}
	return m.Node.append(dst)
}

// Decode reads the reply from src.
func (m *Port2Resp) Decode(src []byte) error {
	r := newReader(src, TagPort2Resp)
	*m = Port2Resp{Result: Result(r.uint("result", 1))}
	if m.Result == ResultOK {
		m.Node = r.node()
	}
	return r.err
}

// Tag is the first byte of each request, and of each reply except NAMES_RESP.
type Tag byte

// The requests. Each is preceded by its length in two bytes.
const (
	TagDumpReq        Tag = 100 // empty
	TagKillReq        Tag = 107 // empty
	TagNamesReq       Tag = 110 // empty
	TagStopReq        Tag = 115 // name
	TagAlive2Req      Tag = 120 // port16, type8, protocol8, highest16, lowest16, len16, name, len16, extra
	TagPortPlease2Req Tag = 122 // name
)

// The replies, which have no length prefix.
const (
	TagAlive2XResp Tag = 118 // result8, creation32; sent to nodes whose highest version is 6 or more
	TagPort2Resp   Tag = 119 // result8 and, if it is 0, the fields of ALIVE2_REQ
	TagAlive2Resp  Tag = 121 // result8, creation16
)

var tagNames = map[Tag]string{
	TagDumpReq:        "DUMP_REQ",
	TagKillReq:        "KILL_REQ",
	TagNamesReq:       "NAMES_REQ",
	TagStopReq:        "STOP_REQ",
	TagAlive2XResp:    "ALIVE2_X_RESP",
	TagPort2Resp:      "PORT2_RESP",
	TagAlive2Req:      "ALIVE2_REQ",
	TagAlive2Resp:     "ALIVE2_RESP",
	TagPortPlease2Req: "PORT_PLEASE2_REQ",
}

// String returns the message's name in the EPMD protocol, such as ALIVE2_REQ.
func (t Tag) String() string {
	if s, ok := tagNames[t]; ok {
		return s
	}
	return fmt.Sprintf("Tag(%d)", byte(t))
}

// NodeType determines whether a node joins the full mesh.
type NodeType byte

const (
	Hidden NodeType = 72 // 'H', a C node or another node outside the mesh
	Normal NodeType = 77 // 'M', an Erlang node
)

// Result is the second byte of a reply.
type Result byte

const (
	ResultOK Result = 0
	// ResultRefused, like any other value above 0, means that the name is taken (ALIVE2_RESP) or
	// unknown (PORT2_RESP).
	ResultRefused Result = 1
)

// The versions of the distribution protocol.
const (
	Version5 uint16 = 5 // until OTP 24
	Version6 uint16 = 6 // 32-bit creations and the 'N' handshake, since OTP 23
)

const (
	maxName  = 255  // bytes of a node's name before the @
	maxExtra = 1020 // bytes of extra, the real daemon's limit
)

// truncatedError is the error for a message that more bytes might complete.
type truncatedError struct{ error }

// reader reads fields from src. Its first failure sticks; fields read after it are zero.
type reader struct {
	message Tag
	src     []byte
	err     error
}

func newReader(src []byte, want Tag) *reader {
	r := &reader{message: want, src: src}
	if got := Tag(r.uint("tag", 1)); got != want && r.err == nil {
		r.fail("tag", fmt.Sprintf("got %s", got))
	}
	return r
}

func (r *reader) fail(field, cause string) {
	if r.err == nil {
		r.err = fmt.Errorf("epmd: %s: %s: %s", r.message, field, cause)
	}
}

func (r *reader) bytes(field string, n int) []byte {
	if len(r.src) < n && r.err == nil {
		r.fail(field, fmt.Sprintf("%d bytes needed, but only %d left", n, len(r.src)))
		r.err = truncatedError{r.err}
	}
	if r.err != nil {
		return nil
	}
	b := r.src[:n]
	r.src = r.src[n:]
	return b
}

// uint reads an integer of n bytes.
func (r *reader) uint(field string, n int) (v uint32) {
	for _, b := range r.bytes(field, n) {
		v = v<<8 | uint32(b)
	}
	return v
}

// name reads a node's name of n bytes.
func (r *reader) name(n int) string {
	name := string(r.bytes("name", n))
	if r.err == nil {
		if cause := badName(name); cause != "" {
			r.fail("name", cause)
		}
	}
	return name
}

// badName returns what is wrong with a node's name, or "". It refuses control characters,
// because a name with them could forge lines of NAMES_RESP; the real daemon accepts them.
func badName(name string) string {
	switch {
	case name == "":
		return "empty"
	case len(name) > maxName:
		return fmt.Sprintf("%d bytes, at most %d allowed", len(name), maxName)
	case !utf8.ValidString(name):
		return fmt.Sprintf("%q is not UTF-8", name)
	case strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Sprintf("%q contains a control character", name)
	}
	return ""
}
