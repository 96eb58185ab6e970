// Package digits formats and parses numbers of up to 128 bits in the bases 2 to 62, the text
// forms that all id formats share.
//
// A [Size] holds the highest number of a format and the width of its padded text. A number is
// two halves, hi and lo.
package digits

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// alphabet has the digits of boundary/flake. They ascend in ASCII, so strings of the same width
// sort in the order of their numbers.
const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// MinBase and MaxBase are the lowest and the highest base.
const (
	MinBase = 2
	MaxBase = 62
)

// ErrBase means that a base is not in the range 2 to 62.
var ErrBase = errors.New("flake: a base must be from 2 to 62")

// A radix holds a base's power, base^chunk, and what replaces divisions by it. A number is up to
// three words, each below the power. Words are kept shifted, as the divisor is.
//
// One division takes 35 ns on an Intel Cascade Lake. On an AMD EPYC, appending an id of package
// flake took, in ns:
//
//	base                2    10    16    36    62
//	with divisions    295    88    70    54    14
//	without           124    43    38    35    15
type radix struct {
	base, power uint64 // the highest power below 2^63
	chunk       int    // number of digits of a word
	shift       int    // number of leading zeros of the power
	divisor     uint64 // power << shift
	inverse     uint64 // floor((2^128-1) / divisor) - 2^64
}

var radixes = makeRadixes()

func makeRadixes() (all [MaxBase + 1]radix) {
	for base := uint64(MinBase); base <= MaxBase; base++ {
		r := radix{base: base, power: base, chunk: 1}
		for r.power < 1<<63/base {
			r.power, r.chunk = r.power*base, r.chunk+1
		}
		r.shift = bits.LeadingZeros64(r.power)
		r.divisor = r.power << r.shift
		r.inverse, _ = bits.Div64(^r.divisor, ^uint64(0), r.divisor)
		all[base] = r
	}
	return all
}

// split returns the words of (hi, lo).
func (r *radix) split(hi, lo uint64) (top, mid, low uint64) {
	left, right := r.shift&63, -r.shift&63
	rest := hi<<left | lo>>right
	if hi >= r.power {
		top, rest = r.divide(hi>>right, rest)
	}
	mid, low = r.divide(rest, lo<<left)
	if top == 0 && mid < r.power {
		return 0, mid << left, low
	}
	top, mid = r.divide(top<<left|mid>>right, mid<<left)
	return top << left, mid, low
}

// divide returns the quotient and the remainder of (hi, lo) by the divisor; hi must be below the
// divisor. It is algorithm 4 of Möller and Granlund, "Improved division by invariant integers".
func (r *radix) divide(hi, lo uint64) (quotient, rest uint64) {
	q, fraction := bits.Mul64(r.inverse, hi)
	fraction, carry := bits.Add64(fraction, lo, 0)
	q += hi + carry + 1
	rest = lo - q*r.divisor
	if rest > fraction {
		q--
		rest += r.divisor
	}
	if rest >= r.divisor {
		q++
		rest -= r.divisor
	}
	return q, rest
}

// fraction returns word/divisor in units of 2^-64. Multiplied by the base, it yields the first digit
// and the fraction of the others. It is too large by at most 2, but numbers are 2^64/power apart,
// more than 2, so all digits are exact.
func (r *radix) fraction(word uint64) uint64 {
	more, _ := bits.Mul64(word, r.inverse)
	return word + more + 2
}

// Size describes the size of a format's ids.
type Size struct {
	high   uint64             // upper half of the highest number; the lower half is all ones
	widths [MaxBase + 1]uint8 // number of digits of the highest number, by base
}

// NewSize returns the Size of ids with the given number of bits, 64 to 128.
func NewSize(bits int) *Size {
	s := &Size{high: ^uint64(0) >> (128 - bits)}
	for base := MinBase; base <= MaxBase; base++ {
		var buf [maxDigits]byte
		s.widths[base] = uint8(len(buf) - put(&buf, s.high, ^uint64(0), base))
	}
	return s
}

// Width returns the length of padded text in a base from 2 to 62: the number of digits of the
// highest number. For any other base it returns 0.
func (s *Size) Width(base int) int {
	if base < MinBase || base > MaxBase {
		return 0
	}
	return int(s.widths[base])
}

// Append appends (hi, lo) in a base from 2 to 62, without leading zeros. If it fails, it
// returns dst unchanged.
func Append(dst []byte, hi, lo uint64, base int) ([]byte, error) {
	if base < MinBase || base > MaxBase {
		return dst, ErrBase
	}
	if base == MaxBase {
		return append62(dst, hi, lo), nil
	}
	var buf [maxDigits]byte
	return append(dst, buf[put(&buf, hi, lo, base):]...), nil
}

// AppendPadded is like [Append], but pads (hi, lo), which must fit in the size, with leading
// zeros to [Size.Width] digits.
func (s *Size) AppendPadded(dst []byte, hi, lo uint64, base int) ([]byte, error) {
	if base < MinBase || base > MaxBase {
		return dst, ErrBase
	}
	n, width := len(dst), int(s.widths[base])
	switch {
	case base == MaxBase && width == 22:
		dst = slices.Grow(dst, 22)[:n+22]
		put62((*[22]byte)(dst[n:]), hi, lo)
		return dst, nil
	case base == MaxBase && width == 11:
		dst = slices.Grow(dst, 11)[:n+11]
		put62of64((*[11]byte)(dst[n:]), lo)
		return dst, nil
	}
	var buf [maxDigits]byte
	first, padded := put(&buf, hi, lo, base), len(buf)-width
	for i := padded; i < first; i++ {
		buf[i] = '0'
	}
	return append(dst, buf[padded:]...), nil
}

// Text returns (hi, lo) in a base from 2 to 62, without leading zeros. For any other base it
// returns [ErrBase].
func Text(hi, lo uint64, base int) (string, error) {
	var buf [128]byte
	text, err := Append(buf[:0], hi, lo, base)
	return string(text), err
}

// Padded returns (hi, lo), which must fit in the size, in a base from 2 to 62, padded with
// leading zeros to [Size.Width] digits. For any other base it returns [ErrBase].
func (s *Size) Padded(hi, lo uint64, base int) (string, error) {
	var buf [128]byte
	text, err := s.AppendPadded(buf[:0], hi, lo, base)
	return string(text), err
}

// maxDigits is the number of digits of three words in base 2, which has the longest.
const maxDigits = 3 * 62

// put writes (hi, lo) to the end of buf without leading zeros, and returns the index of the
// first digit.
func put(buf *[maxDigits]byte, hi, lo uint64, base int) int {
	r := &radixes[base]
	top, mid, low := r.split(hi, lo)
	at := len(buf) - r.chunk
	r.write(buf[at:], low)
	if top|mid != 0 {
		at -= r.chunk
		r.write(buf[at:at+r.chunk], mid)
	}
	if top != 0 {
		at -= r.chunk
		r.write(buf[at:at+r.chunk], top)
	}
	for buf[at] == '0' && at < len(buf)-1 {
		at++
	}
	return at
}

// write writes the digits of a word, with leading zeros.
func (r *radix) write(to []byte, word uint64) {
	fraction, base := r.fraction(word), r.base
	for i := range to {
		var digit uint64
		digit, fraction = bits.Mul64(fraction, base)
		to[i] = alphabet[digit]
	}
}

var values = Values(alphabet)

// Values returns the value of each byte as a digit of one of the alphabets, or 255 if it is
// not a digit.
func Values(alphabets ...string) (all [256]byte) {
	for i := range all {
		all[i] = 255
	}
	for _, alphabet := range alphabets {
		for i := range len(alphabet) {
			all[alphabet[i]] = byte(i)
		}
	}
	return all
}

// HexValue returns the value of a hexadecimal digit in either case, or a value above 15 for any
// other byte.
func HexValue(digit byte) byte {
	if digit >= 'a' {
		digit -= 'a' - 'A'
	}
	return values[digit]
}

// ParseHex parses text[from:], at most 32 hexadecimal digits in either case. If a byte is not
// a digit, it returns a *flake.ParseError.
func ParseHex(text string, from int) (hi, lo uint64, err error) {
	for i := from; i < len(text); i++ {
		nibble := HexValue(text[i])
		if nibble > 15 {
			return 0, 0, Errorf(text, i, "%q is not a hexadecimal digit", text[i])
		}
		hi, lo = hi<<4|lo>>60, lo<<4|uint64(nibble)
	}
	return hi, lo, nil
}

// each is a word whose bytes are all 1.
const each = 0x0101010101010101

// UUIDLen is the length of a UUID's text.
const UUIDLen = len("00000000-0000-0000-0000-000000000000")

// ParseUUID parses the text form of a UUID (RFC 9562 section 4), in either case. For any
// other text, ok is false.
func ParseUUID(text string) (hi, lo uint64, ok bool) {
	if len(text) != UUIDLen || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return 0, 0, false
	}
	a, ok1 := hex8(load4(text[0:4])<<32 | load4(text[4:8]))
	b, ok2 := hex8(load4(text[9:13])<<32 | load4(text[14:18]))
	c, ok3 := hex8(load4(text[19:23])<<32 | load4(text[24:28]))
	d, ok4 := hex8(load4(text[28:32])<<32 | load4(text[32:36]))
	return a<<32 | b, c<<32 | d, ok1 && ok2 && ok3 && ok4
}

// BareUUID returns the part of text in braces or after urn:uuid: that has the length of a UUID, and
// its index. For any other text it returns text and 0.
func BareUUID(text string) (bare string, at int) {
	const urn = "urn:uuid:"
	switch {
	case len(text) == UUIDLen+2 && text[0] == '{' && text[UUIDLen+1] == '}':
		return text[1 : UUIDLen+1], 1
	case len(text) == len(urn)+UUIDLen && strings.EqualFold(text[:len(urn)], urn):
		return text[len(urn):], len(urn)
	}
	return text, 0
}

// load4 is like [binary.BigEndian].Uint32, for a string.
func load4(s string) uint64 {
	return uint64(s[3]) | uint64(s[2])<<8 | uint64(s[1])<<16 | uint64(s[0])<<24
}

// hex8 returns the value of 8 hexadecimal digits, one per byte of text. ok is false if any byte
// is not a digit.
func hex8(text uint64) (value uint64, ok bool) {
	letters := text >> 6 & each // 1 in the bytes of letters
	v := text&(0xf*each) + 9*letters
	// Each value must convert back to its digit, and only letters may have values 10 to 15.
	ok = v+'0'*each+7*letters == text&^(letters<<5) && (v+6*each)>>4&each == letters && v&(16*each) == 0
	v = (v | v>>4) & 0x00ff00ff00ff00ff
	v = (v | v>>8) & 0x0000ffff0000ffff
	return (v | v>>16) & 0xffffffff, ok
}

// PutUUID writes (hi, lo) in the text form of a UUID, lower case.
func PutUUID(text *[UUIDLen]byte, hi, lo uint64) {
	b, c := hexOf(uint32(hi)), hexOf(uint32(lo>>32))
	binary.BigEndian.PutUint64(text[0:], hexOf(uint32(hi>>32)))
	binary.BigEndian.PutUint32(text[9:], uint32(b>>32))
	binary.BigEndian.PutUint32(text[14:], uint32(b))
	binary.BigEndian.PutUint32(text[19:], uint32(c>>32))
	binary.BigEndian.PutUint32(text[24:], uint32(c))
	binary.BigEndian.PutUint64(text[28:], hexOf(uint32(lo)))
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
}

// hexOf returns 8 hexadecimal digits, lower case, one per byte: the reverse of [hex8].
func hexOf(value uint32) uint64 {
	v := uint64(value)
	v = (v | v<<16) & 0x0000ffff0000ffff
	v = (v | v<<8) & 0x00ff00ff00ff00ff
	v = (v | v<<4) & (0xf * each)
	letters := (v + 6*each) >> 4 & each
	return v + '0'*each + ('a'-'9'-1)*letters
}

// Parse parses a number in a base from 2 to 62, of at most [Size.Width] digits, with or
// without leading zeros. Upper and lower case are different digits in every base. It fails
// with [ErrBase] for any other base, and with a *flake.ParseError if the text is empty, too long,
// above the highest number, or contains anything but digits of the base.
func (s *Size) Parse(text string, base int) (hi, lo uint64, err error) {
	if base < MinBase || base > MaxBase {
		return 0, 0, ErrBase
	}
	if len(text) == 0 || len(text) > int(s.widths[base]) {
		return 0, 0, s.wrong(text, base)
	}
	r := &radixes[base]
	first := len(text) // the first word may have fewer digits than the others
	for first > r.chunk {
		first -= r.chunk
	}
	lo, ok := word(text[:first], r.base)
	for at := first; ok && at < len(text); at += r.chunk {
		var next uint64
		if next, ok = word(text[at:at+r.chunk], r.base); !ok {
			break
		}
		over, up := bits.Mul64(hi, r.power)
		carry, low := bits.Mul64(lo, r.power)
		var c uint64
		lo, c = bits.Add64(low, next, 0)
		if hi, c = bits.Add64(up, carry, c); over|c != 0 {
			return 0, 0, s.wrong(text, base)
		}
	}
	if !ok || hi > s.high {
		return 0, 0, s.wrong(text, base)
	}
	return hi, lo, nil
}

// word returns the number that text represents, which must fit in 64 bits. ok is false if any
// byte is not a digit of the base. Inlined in Parse, its loop would keep variables in memory.
//
//go:noinline
func word(text string, base uint64) (v uint64, ok bool) {
	var highest uint64
	for i := range len(text) {
		d := uint64(values[text[i]])
		highest = max(highest, d)
		v = v*base + d
	}
	return v, highest < base
}

func (s *Size) wrong(text string, base int) error { return Wrong(text, base, s.Width(base), &values) }

// Wrong returns the error for a string that is not a number of 1 to width digits in the base, where
// values holds the value of each digit. Wrong assumes that a string of 1 to width such digits is
// above the highest number.
func Wrong(text string, base, width int, values *[256]byte) error {
	if len(text) == 0 || len(text) > width {
		return Errorf(text, 0, "%d digits; must be 1 to %d in base %d", len(text), width, base)
	}
	for i := range len(text) {
		if int(values[text[i]]) >= base {
			return Errorf(text, i, "%q is not a digit of base %d", text[i], base)
		}
	}
	return Errorf(text, 0, "above the highest id, in base %d", base)
}

// maxQuoted is the maximum number of bytes of an invalid text that an error keeps. The text of
// any id is shorter.
const maxQuoted = 130

// NewParseError returns a *flake.ParseError. Package flake declares the type, so that go doc
// shows its fields to users. This package cannot import flake, which imports it, so flake sets
// this variable.
var NewParseError func(text string, at int, what string) error

// Errorf returns a *flake.ParseError that points to text[at]. It copies the text so that the
// error does not alias or retain the caller's buffer.
func Errorf[T string | []byte](text T, at int, format string, args ...any) error {
	return NewParseError(strings.Clone(string(text[:min(len(text), maxQuoted)])), at, fmt.Sprintf(format, args...))
}

// Quote quotes untrusted text, and shortens it to fit in a log line.
func Quote(text string) string {
	if len(text) > 64 {
		return fmt.Sprintf("%q... (%d bytes)", text[:64], len(text))
	}
	return fmt.Sprintf("%q", text)
}

// ScanError is the error of a Scan method for a database value whose type cannot hold an id.
type ScanError struct{ Value any }

func (e *ScanError) Error() string {
	if e.Value == nil {
		return "flake: cannot scan NULL into an id: scan into a sql.Null of it"
	}
	return fmt.Sprintf("flake: cannot scan %T into an id", e.Value)
}

// Must returns id, or panics with err if it is not nil.
func Must[ID any](id ID, err error) ID {
	if err != nil {
		panic(err)
	}
	return id
}
