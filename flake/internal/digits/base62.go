package digits

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// Base 62 is the most common base, so it has a separate path, which takes 15 ns for an id instead of
// 29: a table holds all pairs of digits. A number has words of 2 + 10 + 10 digits.
const (
	pow2  = 62 * 62
	pow4  = pow2 * pow2
	pow8  = pow4 * pow4
	pow10 = pow8 * pow2

	shift62 = 4 // of the radix
)

// pairs holds the two digits of each number below 62^2, the first in the low byte. Its length makes
// checks of indexes unnecessary.
var pairs = makePairs()

func makePairs() (all [4096]uint16) {
	for i := range pow2 {
		all[i] = uint16(alphabet[i/62]) | uint16(alphabet[i%62])<<8
	}
	return all
}

// two returns the first 2 digits of a fraction, and the fraction of the others. eight returns the
// first 8.
func two(fraction uint64) (digits uint16, rest uint64) {
	pair, rest := bits.Mul64(fraction, pow2)
	return pairs[pair%4096], rest
}

func eight(fraction uint64) uint64 {
	a, fraction := bits.Mul64(fraction, pow2)
	b, fraction := bits.Mul64(fraction, pow2)
	c, fraction := bits.Mul64(fraction, pow2)
	d, _ := bits.Mul64(fraction, pow2)
	return uint64(pairs[a%4096]) | uint64(pairs[b%4096])<<16 | uint64(pairs[c%4096])<<32 | uint64(pairs[d%4096])<<48
}

// put62 writes (hi, lo) as 22 digits.
func put62(to *[22]byte, hi, lo uint64) {
	r := &radixes[MaxBase]
	top, mid, low := r.split(hi, lo)
	midHead, mid := two(r.fraction(mid))
	lowHead, low := two(r.fraction(low))
	binary.LittleEndian.PutUint16(to[0:], pairs[top>>shift62%4096])
	binary.LittleEndian.PutUint16(to[2:], midHead)
	binary.LittleEndian.PutUint64(to[4:], eight(mid))
	binary.LittleEndian.PutUint16(to[12:], lowHead)
	binary.LittleEndian.PutUint64(to[14:], eight(low))
}

// put62of64 writes 11 digits, enough for 64 bits.
func put62of64(to *[11]byte, lo uint64) {
	head, rest := two(radixes[MaxBase].fraction(lo % pow10 << shift62))
	to[0] = alphabet[lo/pow10]
	binary.LittleEndian.PutUint16(to[1:], head)
	binary.LittleEndian.PutUint64(to[3:], eight(rest))
}

// append62 appends (hi, lo) without leading zeros.
func append62(dst []byte, hi, lo uint64) []byte {
	if hi == 0 {
		var buf [11]byte
		put62of64(&buf, lo)
		return appendTrimmed(dst, buf[:])
	}
	r := &radixes[MaxBase]
	if hi < pow10 {
		mid, low := r.divide(hi<<shift62|lo>>(64-shift62), lo<<shift62)
		if pow8/62 <= mid && mid < pow8 {
			// 18 digits: all ids of package flake from 1975 to 2284.
			n := len(dst)
			dst = slices.Grow(dst, 18)[:n+18]
			to := (*[18]byte)(dst[n:])
			binary.LittleEndian.PutUint64(to[0:], eight(r.fraction(mid<<shift62)*pow2))
			head, rest := two(r.fraction(low))
			binary.LittleEndian.PutUint16(to[8:], head)
			binary.LittleEndian.PutUint64(to[10:], eight(rest))
			return dst
		}
	}
	var buf [22]byte
	put62(&buf, hi, lo)
	return appendTrimmed(dst, buf[:])
}

func appendTrimmed(dst, padded []byte) []byte {
	for len(padded) > 1 && padded[0] == '0' {
		padded = padded[1:]
	}
	return append(dst, padded...)
}
