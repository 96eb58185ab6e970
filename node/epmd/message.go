package epmd

import (
	"bytes"
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

// alive2Req is ALIVE2_REQ, which registers a node for as long as the connection stays open.
type alive2Req struct{ node Node }

func (m *alive2Req) Append(dst []byte) []byte { return m.node.append(append(dst, tagAlive2Req)) }

func (m *alive2Req) Decode(src []byte) error {
	r := newReader("ALIVE2_REQ", src, tagAlive2Req)
	m.node = r.node()
	return r.err
}

// refused is a reply's result if the name is taken (ALIVE2_RESP) or unknown (PORT2_RESP), as is any
// other value above 0.
const refused = 1

// alive2Resp is ALIVE2_RESP, or ALIVE2_X_RESP if extended.
type alive2Resp struct {
	extended bool
	result   byte
	creation uint32 // 16 bits unless extended; 99 in the real daemon's refusals
}

func (m *alive2Resp) Append(dst []byte) []byte {
	if m.extended {
		return binary.BigEndian.AppendUint32(append(dst, tagAlive2XResp, m.result), m.creation)
	}
	return binary.BigEndian.AppendUint16(append(dst, tagAlive2Resp, m.result), uint16(m.creation))
}

func (m *alive2Resp) Decode(src []byte) error {
	*m = alive2Resp{extended: len(src) > 0 && src[0] == tagAlive2XResp}
	r, size := newReader("ALIVE2_RESP", src, tagAlive2Resp), 2
	if m.extended {
		r, size = newReader("ALIVE2_X_RESP", src, tagAlive2XResp), 4
	}
	m.result = byte(r.uint("result", 1))
	m.creation = r.uint("creation", size)
	return r.err
}

// portPlease2Req is PORT_PLEASE2_REQ, which asks for the node called name.
type portPlease2Req struct{ name string }

func (m *portPlease2Req) Append(dst []byte) []byte {
	return append(append(dst, tagPortPlease2Req), m.name...)
}

// Decode ignores the zero byte that old C nodes add to the name.
func (m *portPlease2Req) Decode(src []byte) error {
	r := newReader("PORT_PLEASE2_REQ", src, tagPortPlease2Req)
	r.src = bytes.TrimSuffix(r.src, []byte{0})
	m.name = r.name(len(r.src))
	return r.err
}

// port2Resp is PORT2_RESP. Its node is set if result is 0.
type port2Resp struct {
	result byte
	node   Node
}

func (m *port2Resp) Append(dst []byte) []byte {
	dst = append(dst, tagPort2Resp, m.result)
	if m.result != 0 {
		return dst
	}
	return m.node.append(dst)
}

func (m *port2Resp) Decode(src []byte) error {
	r := newReader("PORT2_RESP", src, tagPort2Resp)
	*m = port2Resp{result: byte(r.uint("result", 1))}
	if m.result == 0 {
		m.node = r.node()
	}
	return r.err
}

// The first byte of each request, and of each reply except NAMES_RESP. Requests, but not replies, are
// preceded by their length in two bytes.
const (
	tagKillReq        byte = 107 // empty
	tagNamesReq       byte = 110 // empty
	tagAlive2XResp    byte = 118 // result8, creation32; sent to nodes whose highest version is 6 or more
	tagPort2Resp      byte = 119 // result8 and, if it is 0, the fields of ALIVE2_REQ
	tagAlive2Req      byte = 120 // port16, type8, protocol8, highest16, lowest16, len16, name, len16, extra
	tagAlive2Resp     byte = 121 // result8, creation16
	tagPortPlease2Req byte = 122 // name
)

// NodeType determines whether a node joins the full mesh.
type NodeType byte

const (
	Hidden NodeType = 72 // 'H', a C node or another node outside the mesh
	Normal NodeType = 77 // 'M', an Erlang node
)

// The versions of the distribution protocol.
const (
	version5 uint16 = 5 // until OTP 24
	version6 uint16 = 6 // 32-bit creations and the 'N' handshake, since OTP 23
)

const (
	maxName  = 255  // bytes of a node's name before the @
	maxExtra = 1020 // bytes of extra, the real daemon's limit
)

// truncatedError is the error for a message that more bytes might complete.
type truncatedError struct{ error }

// reader reads fields from src. Its first failure sticks; fields read after it are zero.
type reader struct {
	message string
	src     []byte
	err     error
}

func newReader(message string, src []byte, tag byte) *reader {
	r := &reader{message: message, src: src}
	if got := byte(r.uint("tag", 1)); got != tag && r.err == nil {
		r.fail("tag", fmt.Sprintf("%d, not %d", got, tag))
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
