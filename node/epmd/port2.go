package epmd

// PortPlease2Req is PORT_PLEASE2_REQ: where does the node of this name listen?
type PortPlease2Req struct{ Name string }

// Append adds the request to dst.
func (m *PortPlease2Req) Append(dst []byte) ([]byte, error) {
	if cause := badName(m.Name); cause != "" {
		return dst, &FormatError{TagPortPlease2Req.String(), "name", cause}
	}
	return append(append(dst, byte(TagPortPlease2Req)), m.Name...), nil
}

// Decode reads the request from src. Old C nodes end the name in a zero byte.
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

// Append adds the reply to dst.
func (m *Port2Resp) Append(dst []byte) ([]byte, error) {
	dst = append(dst, byte(TagPort2Resp), byte(m.Result))
	if m.Result != ResultOK {
		return dst, nil
	}
	return m.Node.append(dst, TagPort2Resp)
}

// Decode reads the reply from src.
func (m *Port2Resp) Decode(src []byte) error {
	r := newReader(src, TagPort2Resp)
	*m = Port2Resp{Result: Result(r.uint8("result"))}
	if m.Result == ResultOK {
		m.Node = r.node()
	}
	return r.err
}
