package flake

import "math/bits"

// Base 62 is the text of String and the one most asked for, so it has a path of
// its own: an id is cut into 2 + 10 + 10 digits with two divisions of 128 bits
// by 62^10, and each ten into pairs that are looked up.
const (
	pow2  = 62 * 62
	pow5  = pow2 * pow2 * 62
	pow10 = pow5 * pow5
)

var pairs = makePairs()

func makePairs() (all [pow2][2]byte) {
	for i := range all {
		all[i] = [2]byte{digits[i/62], digits[i%62]}
	}
	return all
}

// put62 writes (hi, lo) as 22 digits.
func put62(buf *[22]byte, hi, lo uint64) {
	qhi := hi / pow10
	qlo, low := bits.Div64(hi%pow10, lo, pow10)
	top, mid := bits.Div64(qhi, qlo, pow10)
	*(*[2]byte)(buf[0:]) = pairs[top%pow2] // top < 62^2 always; % spares a bounds check
	put10((*[10]byte)(buf[2:]), mid)
	put10((*[10]byte)(buf[12:]), low)
}

// put10 writes v < 62^10 as ten digits, two independent halves at a time.
func put10(buf *[10]byte, v uint64) {
	a, b := uint32(v/pow5), uint32(v%pow5)
	*(*[2]byte)(buf[3:]) = pairs[a%pow2]
	*(*[2]byte)(buf[8:]) = pairs[b%pow2]
	a, b = a/pow2, b/pow2
	*(*[2]byte)(buf[1:]) = pairs[a%pow2]
	*(*[2]byte)(buf[6:]) = pairs[b%pow2]
	buf[0] = digits[a/pow2%62]
	buf[5] = digits[b/pow2%62]
}
