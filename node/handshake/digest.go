package handshake

import (
	"crypto/md5"
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"io"
	"strconv"
	"sync"
	"unicode"
)

// Digest proves that its sender has the cookie. As in OTP, it is the MD5 of the cookie in
// Latin-1 followed by the challenge in decimal.
type Digest [md5.Size]byte

// makeDigest returns the digest that answers a challenge from the other side.
func makeDigest(cookie string, challenge uint32) Digest {
	return md5.Sum(strconv.AppendUint(latin1(cookie), uint64(challenge), 10))
}

// latin1 converts UTF-8 to Latin-1. Text with other characters, which OTP cookies cannot
// have, is returned unchanged.
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

// Challenges holds the challenges of handshakes in progress. A digest names neither side. So a peer
// without the cookie could send a node's challenge back to that node on a second connection, and
// use the resulting digest on the first. For this reason a peer that sends an open challenge is
// refused. The zero value is empty.
type Challenges struct{ open sync.Map }

// pose returns a new challenge and a function that closes it. The challenge is random, so that a
// recorded handshake cannot be replayed.
func (c *Challenges) pose(random io.Reader) (challenge uint32, end func(), err error) {
	if random == nil {
		random = rand.Reader
	}
	for {
		var b [4]byte
		if _, err := io.ReadFull(random, b[:]); err != nil {
			return 0, nil, err
		}
		challenge = binary.BigEndian.Uint32(b[:])
		if _, taken := c.open.LoadOrStore(challenge, nil); !taken {
			return challenge, func() { c.open.Delete(challenge) }, nil
		}
	}
}

// has reports whether a challenge is open.
func (c *Challenges) has(challenge uint32) bool {
	_, open := c.open.Load(challenge)
	return open
}
