package handshake

import (
	"crypto/md5"
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"strconv"
)

// Digest proves that its sender holds the cookie: MD5 over the cookie's text
// and the challenge in decimal, as the protocol demands.
type Digest [md5.Size]byte

// MakeDigest gives the digest for a challenge that the other side posed.
func MakeDigest(cookie string, challenge uint32) Digest {
	return md5.Sum(strconv.AppendUint([]byte(cookie), uint64(challenge), 10))
}

func (d Digest) equal(other Digest) bool {
	return subtle.ConstantTimeCompare(d[:], other[:]) == 1
}

func newChallenge() uint32 {
	var b [4]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	return binary.BigEndian.Uint32(b[:])
}
