package epmd

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// NamesReq is NAMES_REQ: which nodes are registered?
type NamesReq struct{}

// Append adds the request to dst.
func (*NamesReq) Append(dst []byte) ([]byte, error) { return append(dst, byte(TagNamesReq)), nil }

// Decode reads the request from src.
func (*NamesReq) Decode(src []byte) error { return newReader(src, TagNamesReq).err }

// NodeName is a line of NAMES_RESP.
type NodeName struct {
	Name string
	Port uint16
}

// NamesResp is NAMES_RESP: the port of the EPMD in 32 bits, then a line "name flake at port
// 4711" for each node. It ends with the connection.
type NamesResp struct {
	Port  uint16
	Names []NodeName
}

// Append adds the reply to dst.
func (m *NamesResp) Append(dst []byte) ([]byte, error) {
	dst = binary.BigEndian.AppendUint32(dst, uint32(m.Port))
	for _, n := range m.Names {
		if cause := badName(n.Name); cause != "" {
			return dst, &FormatError{"NAMES_RESP", "name", cause}
		}
		dst = fmt.Appendf(dst, "name %s at port %d\n", n.Name, n.Port)
	}
	return dst, nil
}

// Decode reads the reply from src.
func (m *NamesResp) Decode(src []byte) error {
	r := &reader{message: "NAMES_RESP", src: src}
	port := r.uint32("port")
	if port > 0xFFFF {
		r.fail("port", fmt.Sprintf("%d is not a port", port))
	}
	*m = NamesResp{Port: uint16(port)}
	for line := range bytes.Lines(r.src) {
		n, ok := parseLine(string(line))
		if !ok {
			r.fail("line", fmt.Sprintf("%q is not of the form %q", line, "name NAME at port PORT\n"))
			break
		}
		m.Names = append(m.Names, n)
	}
	return r.err
}

// parseLine cuts at the last " at port ", because a name may contain these words.
func parseLine(line string) (NodeName, bool) {
	const sep = " at port "
	rest, isName := strings.CutPrefix(line, "name ")
	rest, isLine := strings.CutSuffix(rest, "\n")
	at := strings.LastIndex(rest, sep)
	if !isName || !isLine || at < 0 || badName(rest[:at]) != "" {
		return NodeName{}, false
	}
	port, err := strconv.ParseUint(rest[at+len(sep):], 10, 16)
	return NodeName{rest[:at], uint16(port)}, err == nil
}
