package epmd

// PortPlease2Req is PORT_PLEASE2_REQ: where does the node of this name listen?
type PortPlease2Req struct{ Name string }

// Append adds the request to dst.
func (m *PortPlease2Req) Append(dst []byte) ([]byte, error) {
	if cause := badName(m.Name); cause != "" {
		return dst, &FormatError{PortPlease2Tag.String(), "name", cause}
	}
	return append(append(dst, byte(PortPlease2Tag)), m.Name...), nil
}

// Decode reads the request from src. Old C nodes end the name in a zero byte.
func (m *PortPlease2Req) Decode(src []byte) error {
	r := newReader(src, PortPlease2Tag)
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

// Append adds the reply to dst.
func (m *Port2Resp) Append(dst []byte) ([]byte, error) {
	dst = append(dst, byte(Port2RespTag), byte(m.Result))
	if m.Result != ResultOK {
		return dst, nil
	}
	return m.Node.append(dst, Port2RespTag)
}

// Decode reads the reply from src.
func (m *Port2Resp) Decode(src []byte) error {
	r := newReader(src, Port2RespTag)
	*m = Port2Resp{Result: Result(r.uint8("result"))}
	if m.Result == ResultOK {
		m.Node = r.node()
	}
	return r.err
}
