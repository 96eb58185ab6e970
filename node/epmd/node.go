package epmd

import (
	"encoding/binary"
	"fmt"
)

// Node is what EPMD knows of a node: its name up to the @, and how to reach it.
type Node struct {
	Name     string
	Port     uint16
	Type     NodeType
	Protocol byte   // TCPv4 or TCPv6; nobody looks at it
	Highest  uint16 // version of the distribution protocol
	Lowest   uint16
	Extra    []byte
}

// The protocols in which a Node listens.
const (
	TCPv4 byte = 0
	TCPv6 byte = 1
)

// fill sets zero fields to what this node speaks.
func (n *Node) fill() {
	if n.Type == 0 {
		n.Type = Normal
	}
	if n.Highest == 0 {
		n.Highest, n.Lowest = Version6, Version5
	}
}

// append adds the node in the form that ALIVE2_REQ and PORT2_RESP share.
func (n *Node) append(dst []byte, message Tag) ([]byte, error) {
	if cause := badName(n.Name); cause != "" {
		return dst, &FormatError{message.String(), "name", cause}
	}
	if len(n.Extra) > maxExtra {
		return dst, &FormatError{message.String(), "extra", tooLong(len(n.Extra))}
	}
	dst = binary.BigEndian.AppendUint16(dst, n.Port)
	dst = append(dst, byte(n.Type), n.Protocol)
	dst = binary.BigEndian.AppendUint16(dst, n.Highest)
	dst = binary.BigEndian.AppendUint16(dst, n.Lowest)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(n.Name)))
	dst = append(dst, n.Name...)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(n.Extra)))
	return append(dst, n.Extra...), nil
}

// node reads what append added. Like the real daemon, it ignores what follows.
func (r *reader) node() Node {
	n := Node{
		Port:     r.uint16("port"),
		Type:     NodeType(r.uint8("type")),
		Protocol: r.uint8("protocol"),
		Highest:  r.uint16("highest version"),
		Lowest:   r.uint16("lowest version"),
	}
	n.Name = r.name(int(r.uint16("name length")))
	size := int(r.uint16("extra length"))
	if size > maxExtra {
		r.fail("extra", tooLong(size))
	}
	n.Extra = append(n.Extra, r.bytes("extra", size)...)
	return n
}

func tooLong(size int) string {
	return fmt.Sprintf("%d bytes, at most %d allowed", size, maxExtra)
}
