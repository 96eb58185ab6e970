package digits

import (
	"errors"
	"math/bits"
)

// alphabet is the original's, and ascends in ASCII: texts of one width sort as
// their numbers do.
const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// MinBase and MaxBase are the lowest and the highest base.
const (
	MinBase = 2
	MaxBase = 62
)

// ErrBase: a base that is not from 2 to 62.
var ErrBase = errors.New("flake: a base is from 2 to 62")

// A radix is how many digits of a base, worth power together, fit a 64-bit word.
type radix struct {
	chunk int
	power uint64
}

var radixes = makeRadixes()

func makeRadixes() (all [MaxBase + 1]radix) {
	for base := MinBase; base <= MaxBase; base++ {
		r := radix{power: 1}
		for {
			over, power := bits.Mul64(r.power, uint64(base))
			if over != 0 {
				break
			}
			r.power, r.chunk = power, r.chunk+1
		}
		all[base] = r
	}
	return all
}

// divide returns the 128-bit quotient and the remainder of (hi, lo) by d.
func divide(hi, lo, d uint64) (qhi, qlo, rem uint64) {
	qhi = hi / d
	qlo, rem = bits.Div64(hi%d, lo, d)
	return qhi, qlo, rem
}

// Size is how many bits a format's numbers have.
type Size struct {
	high   uint64             // the highest number's upper half; the lower is all ones
	widths [MaxBase + 1]uint8 // the digits of the highest number, by base
}

// NewSize returns the size of numbers of so many bits, 64 to 128.
func NewSize(bits int) *Size {
	s := &Size{high: ^uint64(0) >> (128 - bits)}
	for base := MinBase; base <= MaxBase; base++ {
		for hi, lo := s.high, ^uint64(0); hi|lo != 0; s.widths[base]++ {
			hi, lo, _ = divide(hi, lo, uint64(base))
		}
	}
	return s
}

// Width is the number of digits of the highest number in a base from 2 to 62,
// and so of every padded text in it; 0 for any other base.
func (s *Size) Width(base int) int {
	if base < MinBase || base > MaxBase {
		return 0
	}
	return int(s.widths[base])
}
