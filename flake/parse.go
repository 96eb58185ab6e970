package flake

import (
	"fmt"
	"math/bits"
	"strings"
)

// ParseError tells why a text is not an id. The text is cut short if it is
// longer than any id's.
type ParseError struct {
	Text string // what was to be an id
	At   int    // the byte where it goes wrong
	What string // what is wrong there
}

func (e *ParseError) Error() string {
	return fmt.Sprintf("flake: %s is not an id: %s at byte %d", quote(e.Text), e.What, e.At)
}

func parseError(text string, at int, format string, args ...any) error {
	// The text is copied, so as not to keep alive, or alias, a caller's buffer.
	return &ParseError{strings.Clone(text[:min(len(text), 130)]), at, fmt.Sprintf(format, args...)}
}

// values are the digits' values by byte; 255 marks what is not a digit.
var values = makeValues()

func makeValues() (all [256]byte) {
	for i := range all {
		all[i] = 255
	}
	for i := range len(digits) {
		all[digits[i]] = byte(i)
	}
	return all
}

// Parse reads an id written in a base from 2 to 62, with any number of leading
// zeros up to [Width] digits: the reverse of [ID.Text] and [ID.Padded]. Letters
// of the other case are other digits, in every base. It gives [ErrBase] for any
// other base, and a [*ParseError] for text that is empty, too long, above the
// highest id, or has anything but digits of the base.
func Parse(text string, base int) (ID, error) {
	if base < MinBase || base > MaxBase {
		return ID{}, ErrBase
	}
	r := &radixes[base]
	if len(text) == 0 || len(text) > r.width {
		return ID{}, parseError(text, 0, "%d digits where base %d has 1 to %d", len(text), base, r.width)
	}
	// The first word of digits may be a short one; those after it are full.
	first := (len(text)-1)%r.chunk + 1
	lo, ok := word(text[:first], base)
	var hi uint64
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
			return ID{}, parseError(text, 0, "a number above the highest id, in base %d,", base)
		}
	}
	if !ok {
		return ID{}, badDigit(text, base)
	}
	return fromWords(hi, lo), nil
}

// word gives the value of digits that fit a word; not ok if one of them is none.
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
			return parseError(text, i, "%q, no digit of base %d,", text[i], base)
		}
	}
	return nil
}
