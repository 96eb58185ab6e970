package digits

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// Base 62 is the most common base, so it has a separate path: two 128-bit divisions by 62^10
// split a number into 2 + 10 + 10 digits, and a table holds all pairs of digits.
const (
	pow2  = 62 * 62
	pow4  = pow2 * pow2
	pow8  = pow4 * pow4
	pow10 = pow8 * pow2
)

// pairs holds the two digits of each number below 62^2, the first in the low byte.
var pairs = makePairs()

func makePairs() (all [pow2]uint16) {
	for i := range all {
		all[i] = uint16(alphabet[i/62]) | uint16(alphabet[i%62])<<8
	}
	return all
}

// two returns the 2 digits of v < 62^2. ten returns the 10 digits of v < 62^10: the first 2 as
// head, and the other 8 as tail.
func two(v uint64) uint16 { return pairs[v%pow2] }

func ten(v uint64) (head uint16, tail uint64) {
	a, b := uint32(v%pow8/pow4), uint32(v%pow8%pow4)
	return two(v / pow8), uint64(pairs[a/pow2%pow2]) | uint64(pairs[a%pow2])<<16 |
		uint64(pairs[b/pow2%pow2])<<32 | uint64(pairs[b%pow2])<<48
}

// appendPadded62 appends (hi, lo) as 22 digits.
func appendPadded62(dst []byte, hi, lo uint64) []byte {
	hi, lo, low := divide(hi, lo, pow10)
	top, mid := bits.Div64(hi, lo, pow10)
	n := len(dst)
	dst = slices.Grow(dst, 22)[:n+22]
	to := (*[22]byte)(dst[n:])
	midHead, midTail := ten(mid)
	lowHead, lowTail := ten(low)
	binary.LittleEndian.PutUint16(to[0:], two(top))
	binary.LittleEndian.PutUint16(to[2:], midHead)
	binary.LittleEndian.PutUint64(to[4:], midTail)
	binary.LittleEndian.PutUint16(to[12:], lowHead)
	binary.LittleEndian.PutUint64(to[14:], lowTail)
	return dst
}

// appendPadded62of64 appends 11 digits, enough for 64 bits.
func appendPadded62of64(dst []byte, lo uint64) []byte {
	n := len(dst)
	dst = slices.Grow(dst, 11)[:n+11]
	to := (*[11]byte)(dst[n:])
	head, tail := ten(lo % pow10)
	to[0] = alphabet[lo/pow10]
	binary.LittleEndian.PutUint16(to[1:], head)
	binary.LittleEndian.PutUint64(to[3:], tail)
	return dst
}

// append62 appends (hi, lo) without leading zeros.
func append62(dst []byte, hi, lo uint64) []byte {
	if hi == 0 {
		var buf [11]byte
		return appendTrimmed(dst, appendPadded62of64(buf[:0], lo))
	}
	if hi < pow10 {
		if mid, low := bits.Div64(hi, lo, pow10); pow8/62 <= mid && mid < pow8 {
			// 18 digits: all ids of package flake from 1975 to 2284.
			n := len(dst)
			dst = slices.Grow(dst, 18)[:n+18]
			to := (*[18]byte)(dst[n:])
			_, midTail := ten(mid)
			lowHead, lowTail := ten(low)
			binary.LittleEndian.PutUint64(to[0:], midTail)
			binary.LittleEndian.PutUint16(to[8:], lowHead)
			binary.LittleEndian.PutUint64(to[10:], lowTail)
			return dst
		}
	}
	var buf [22]byte
	return appendTrimmed(dst, appendPadded62(buf[:0], hi, lo))
}

func appendTrimmed(dst, padded []byte) []byte {
	for len(padded) > 1 && padded[0] == '0' {
		padded = padded[1:]
	}
	return append(dst, padded...)
}
