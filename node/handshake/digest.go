package handshake

import (
	"crypto/md5"
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"io"
	"strconv"
	"unicode"
)

// Digest proves that its sender holds the cookie: MD5 over the cookie's text in
// Latin-1 and the challenge in decimal, as OTP has it.
type Digest [md5.Size]byte

// MakeDigest returns the digest for a challenge that the other side posed.
func MakeDigest(cookie string, challenge uint32) Digest {
	return md5.Sum(strconv.AppendUint(latin1(cookie), uint64(challenge), 10))
}

// latin1 is a text of UTF-8 in Latin-1. One that has other characters, which no
// cookie of OTP has, stays as it is.
func latin1(s string) []byte {
	b := make([]byte, 0, len(s))
	for _, r := range s {
		if r > unicode.MaxLatin1 {
			return []byte(s)
		}
		b = append(b, byte(r))
	}
	return b
}

func (d Digest) equal(other Digest) bool {
	return subtle.ConstantTimeCompare(d[:], other[:]) == 1
}

// newChallenge returns a challenge that no handshake before had, so that a
// recorded one is worth nothing.
func newChallenge(random io.Reader) (uint32, error) {
	if random == nil {
		random = rand.Reader
	}
	var b [4]byte
	_, err := io.ReadFull(random, b[:])
	return binary.BigEndian.Uint32(b[:]), err
}
