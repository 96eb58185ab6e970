package wire

import (
	"bytes"
	"testing"

	"github.com/flake-go/flake/node/etf"
)

// FuzzDecode checks that the parts of what decodes are all that there is.
func FuzzDecode(f *testing.F) {
	for _, payload := range [][]etf.Term{nil, {etf.Atom("x")}} {
		for n := range MaxArguments + 2 {
			control := etf.Tuple{int64(OpSend)}
			for range n {
				control = append(control, etf.List{etf.Atom("x"), int64(1)})
			}
			b, err := Append(nil, etf.AllCaps, control, payload...)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b[HeaderSize+1:])
		}
	}
	f.Add([]byte("\x83h\x00a0")) // an empty tuple has no operation
	f.Fuzz(func(t *testing.T, src []byte) {
		var m Message
		if m.Decode(src) != nil {
			return
		}
		again := etf.AppendInt(etf.AppendTupleHeader([]byte{etf.VersionMagic}, 1+m.N), int64(m.Op))
		for _, a := range m.Args[:m.N] {
			again = append(again, a...)
		}
		if m.Payload != nil {
			again = append(append(again, etf.VersionMagic), m.Payload...)
		}
		var n Message
		if err := n.Decode(again); err != nil || n.Op != m.Op || n.N != m.N || !bytes.Equal(n.Payload, m.Payload) {
			t.Errorf("%x: %v, %+v is not %+v", src, err, n, m)
		}
	})
}
