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

// Digest proves that its sender has the cookie. As in OTP, it is MD5 over the cookie's
// text in Latin-1 and the challenge in decimal.
type Digest [md5.Size]byte

// MakeDigest returns the digest for a challenge from the other side.
func MakeDigest(cookie string, challenge uint32) Digest {
	return md5.Sum(strconv.AppendUint(latin1(cookie), uint64(challenge), 10))
}

// latin1 converts UTF-8 to Latin-1. Text with other characters, which no OTP cookie
// has, stays as it is.
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

// newChallenge returns a challenge that no earlier handshake had, so a recorded
// handshake is useless.
func newChallenge(random io.Reader) (uint32, error) {
	if random == nil {
		random = rand.Reader
	}
	var b [4]byte
	_, err := io.ReadFull(random, b[:])
	return binary.BigEndian.Uint32(b[:]), err
}
