package handshake

import (
	"crypto/md5"
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"io"
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

// newChallenge gives a challenge that no handshake before had, so that a
// recorded one is worth nothing.
func newChallenge(random io.Reader) (uint32, error) {
	if random == nil {
		random = rand.Reader
	}
	var b [4]byte
	_, err := io.ReadFull(random, b[:])
	return binary.BigEndian.Uint32(b[:]), err
}
