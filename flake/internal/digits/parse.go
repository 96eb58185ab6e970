package digits

import "math/bits"

// values are the digits' values by byte; 255 marks what is not a digit.
var values = makeValues()

func makeValues() (all [256]byte) {
	for i := range all {
		all[i] = 255
	}
	for i := range len(alphabet) {
		all[alphabet[i]] = byte(i)
	}
	return all
}

// HexValue returns the value of a hexadecimal digit in either case; more than 15 for
// what is none.
func HexValue(digit byte) byte {
	if digit >= 'a' {
		digit -= 'a' - 'A'
	}
	return values[digit]
}

// ParseHex reads hexadecimal digits in either case, of 128 bits at most, from a place
// in text to its end. Anything else is a [*Wrong].
func ParseHex(text string, from int) (hi, lo uint64, err error) {
	for i := from; i < len(text); i++ {
		nibble := HexValue(text[i])
		if nibble > 15 {
			return 0, 0, wrong(text, i, "%q, no hexadecimal digit,", text[i])
		}
		hi, lo = hi<<4|lo>>60, lo<<4|uint64(nibble)
	}
	return hi, lo, nil
}

// Parse reads a number of the size in a base from 2 to 62, with any number of
// leading zeros up to [Size.Width] digits. Letters of the other case are other
// digits, in every base. Another base is [ErrBase]; text that is empty, too long,
// above the highest number, or has anything but digits of the base is a [*Wrong].
func (s *Size) Parse(text string, base int) (hi, lo uint64, err error) {
	if base < MinBase || base > MaxBase {
		return 0, 0, ErrBase
	}
	if len(text) == 0 || len(text) > int(s.widths[base]) {
		return 0, 0, wrong(text, 0, "%d digits where base %d has 1 to %d", len(text), base, s.widths[base])
	}
	r := &radixes[base]
	// The first word of digits may be a short one; those after it are full.
	first := (len(text)-1)%r.chunk + 1
	lo, ok := word(text[:first], base)
	for at := first; ok && at < len(text); at += r.chunk {
		var next uint64
		if next, ok = word(text[at:at+r.chunk], base); !ok {
			break
		}
		over, up := bits.Mul64(hi, r.power)
		carry, low := bits.Mul64(lo, r.power)
		var c uint64
		lo, c = bits.Add64(low, next, 0)
		if hi, c = bits.Add64(up, carry, c); over|c != 0 {
			return 0, 0, tooHigh(text, base)
		}
	}
	if !ok {
		return 0, 0, badDigit(text, base)
	}
	if hi > s.high {
		return 0, 0, tooHigh(text, base)
	}
	return hi, lo, nil
}

// word returns the value of digits that fit a word; not ok if one of them is none.
func word(text string, base int) (v uint64, ok bool) {
	var highest byte
	for i := range len(text) {
		d := values[text[i]]
		highest = max(highest, d)
		v = v*uint64(base) + uint64(d)
	}
	return v, int(highest) < base
}

func badDigit(text string, base int) error {
	for i := range len(text) {
		if int(values[text[i]]) >= base {
			return wrong(text, i, "%q, no digit of base %d,", text[i], base)
		}
	}
	return nil
}

func tooHigh(text string, base int) error {
	return wrong(text, 0, "a number above the highest id, in base %d,", base)
}
