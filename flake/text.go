package flake

import "math/bits"

// digits are the original's, and ascend in ASCII: texts of one width sort as
// their ids do.
const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// MinBase and MaxBase are the lowest and the highest base of an id's text.
const (
	MinBase = 2
	MaxBase = 62
)

// A radix is what one base needs: how many digits the highest id has, and how
// many digits, worth power together, fit a 64-bit word.
type radix struct {
	width int
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
		hi, lo := ^uint64(0), ^uint64(0)
		for hi|lo != 0 {
			hi, lo, _ = divide(hi, lo, uint64(base))
			r.width++
		}
		all[base] = r
	}
	return all
}

// divide gives the 128-bit quotient and the remainder of (hi, lo) by d.
func divide(hi, lo, d uint64) (qhi, qlo, rem uint64) {
	qhi = hi / d
	qlo, rem = bits.Div64(hi%d, lo, d)
	return qhi, qlo, rem
}

// Width is the number of digits of the highest id in a base from 2 to 62, and
// so of every padded text in it: 128 for 2, 32 for 16, 22 for 62. It is 0 for
// any other base.
func Width(base int) int {
	if base < MinBase || base > MaxBase {
		return 0
	}
	return radixes[base].width
}

// Text gives the id as a number in a base from 2 to 62, digits 0-9A-Za-z in
// that order, without leading zeros: what the original answers to {get, Base}.
// Any other base gives [ErrBase]. Such texts do not sort as ids do; those of
// [ID.Padded] do.
func (id ID) Text(base int) (string, error) {
	var buf [128]byte
	text, err := id.AppendText(buf[:0], base)
	return string(text), err
}

// AppendText appends what [ID.Text] gives to dst. On [ErrBase] dst comes back
// as it was.
func (id ID) AppendText(dst []byte, base int) ([]byte, error) {
	if base < MinBase || base > MaxBase {
		return dst, ErrBase
	}
	hi, lo := id.words()
	if base == MaxBase {
		return append62(dst, hi, lo), nil
	}
	var buf [128]byte
	return append(dst, buf[put(&buf, hi, lo, base):]...), nil
}

// Padded gives the id in a base from 2 to 62 with leading zeros to [Width]
// digits: in any one base such texts sort, as bytes, as the ids do. Any other
// base gives [ErrBase].
func (id ID) Padded(base int) (string, error) {
	var buf [128]byte
	text, err := id.AppendPadded(buf[:0], base)
	return string(text), err
}

// AppendPadded appends what [ID.Padded] gives to dst. On [ErrBase] dst comes
// back as it was.
func (id ID) AppendPadded(dst []byte, base int) ([]byte, error) {
	if base < MinBase || base > MaxBase {
		return dst, ErrBase
	}
	hi, lo := id.words()
	if base == MaxBase {
		return appendPadded62(dst, hi, lo), nil
	}
	var buf [128]byte
	first, padded := put(&buf, hi, lo, base), len(buf)-radixes[base].width
	for i := padded; i < first; i++ {
		buf[i] = '0'
	}
	return append(dst, buf[padded:]...), nil
}

// String gives the id as 22 digits of base 62: texts that sort as ids do.
func (id ID) String() string {
	var buf [22]byte
	hi, lo := id.words()
	return string(appendPadded62(buf[:0], hi, lo))
}

// put writes (hi, lo) to the end of buf without leading zeros, a word of digits
// at a time, and gives the place of the first digit.
func put(buf *[128]byte, hi, lo uint64, base int) int {
	r, at := radixes[base], len(buf)
	for hi != 0 {
		var rest uint64
		hi, lo, rest = divide(hi, lo, r.power)
		for range r.chunk {
			at--
			buf[at] = digits[rest%uint64(base)]
			rest /= uint64(base)
		}
	}
	for {
		at--
		buf[at] = digits[lo%uint64(base)]
		if lo /= uint64(base); lo == 0 {
			return at
		}
	}
}
