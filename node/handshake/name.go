package handshake

import (
	"crypto/rand"
	"encoding/binary"
)

// named is the status that gives a peer the name it asked for with NAME_ME.
type named struct {
	node     string
	creation uint32
}

func (m named) Append(dst []byte) []byte { return appendNamed(dst, m.node, m.creation) }

// NewName makes a node name for a peer that sent only its host, as OTP does for "erl
// -name undefined": random, therefore unique.
func NewName(host string) (string, uint32) {
	var b [4]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	return rand.Text()[:13] + "@" + host, binary.BigEndian.Uint32(b[:]) | 1
}
