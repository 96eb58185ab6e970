package epmd

import "encoding/binary"

// Alive2Req is ALIVE2_REQ: a node registers while it keeps the connection open.
type Alive2Req struct{ Node Node }

// Append adds the request to dst.
func (m *Alive2Req) Append(dst []byte) ([]byte, error) {
	return m.Node.append(append(dst, byte(TagAlive2Req)), TagAlive2Req)
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
	Creation uint32 // of 16 bits unless Extended; 99 in the real daemon's refusals
}

// Append adds the reply to dst.
func (m *Alive2Resp) Append(dst []byte) ([]byte, error) {
	if m.Extended {
		dst = append(dst, byte(TagAlive2XResp), byte(m.Result))
		return binary.BigEndian.AppendUint32(dst, m.Creation), nil
	}
	if m.Creation > 0xFFFF {
		return dst, &FormatError{TagAlive2Resp.String(), "creation", "more than 16 bits"}
	}
	dst = append(dst, byte(TagAlive2Resp), byte(m.Result))
	return binary.BigEndian.AppendUint16(dst, uint16(m.Creation)), nil
}

// Decode reads the reply from src.
func (m *Alive2Resp) Decode(src []byte) error {
	*m = Alive2Resp{Extended: len(src) > 0 && Tag(src[0]) == TagAlive2XResp}
	tag := TagAlive2Resp
	if m.Extended {
		tag = TagAlive2XResp
	}
	r := newReader(src, tag)
	m.Result = Result(r.uint8("result"))
	if m.Extended {
		m.Creation = r.uint32("creation")
	} else {
		m.Creation = uint32(r.uint16("creation"))
	}
	return r.err
}
