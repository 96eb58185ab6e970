package snowflake

import (
	"strconv"
	"strings"

	"github.com/flake-go/flake/flake/internal/digits"
)

// MinBase and MaxBase are the lowest and the highest base of an id's text.
const (
	MinBase = digits.MinBase
	MaxBase = digits.MaxBase
)

var size = digits.NewSize(64)

// Width is the number of digits of the highest id in a base from 2 to 62, and
// so of every padded text in it: 64 for 2, 16 for 16, 11 for 62. It is 0 for any
// other base.
func Width(base int) int { return size.Width(base) }

// Text gives the id as a number in a base from 2 to 62, digits 0-9A-Za-z in that
// order, without leading zeros, as package flake does. Any other base gives
// [ErrBase]. For the digits of others see [Base32], [Base36] and [Base58].
func (id ID) Text(base int) (string, error) {
	var buf [64]byte
	text, err := id.AppendText(buf[:0], base)
	return string(text), err
}

// AppendText appends what [ID.Text] gives to dst. On [ErrBase] dst comes back
// as it was.
func (id ID) AppendText(dst []byte, base int) ([]byte, error) {
	return digits.Append(dst, 0, uint64(id), base)
}

// Padded gives the id in a base from 2 to 62 with leading zeros to [Width]
// digits: in any one base such texts sort, as bytes, as the ids do. Any other
// base gives [ErrBase].
func (id ID) Padded(base int) (string, error) {
	var buf [64]byte
	text, err := id.AppendPadded(buf[:0], base)
	return string(text), err
}

// AppendPadded appends what [ID.Padded] gives to dst. On [ErrBase] dst comes
// back as it was.
func (id ID) AppendPadded(dst []byte, base int) ([]byte, error) {
	return size.AppendPadded(dst, 0, uint64(id), base)
}

// Parse reads an id written in a base from 2 to 62, with any number of leading
// zeros up to [Width] digits: the reverse of [ID.Text] and [ID.Padded]. Letters
// of the other case are other digits, in every base. It gives [ErrBase] for any
// other base, and a [*ParseError] for text that is empty, too long, above the
// highest id, or has anything but digits of the base.
func Parse(text string, base int) (ID, error) {
	_, id, err := size.Parse(text, base)
	if err != nil {
		return 0, ours(err)
	}
	return ID(id), nil
}

// MustParse reads what [ID.String] gives, and panics with a [*ParseError] if it is
// anything else: for ids that are written in a program. There is no function that
// finds the form out, as most texts could be of several.
func MustParse(text string) (id ID) {
	if err := id.UnmarshalText([]byte(text)); err != nil {
		panic(err)
	}
	return id
}

// String gives the id in decimal, without leading zeros.
func (id ID) String() string { return strconv.FormatUint(uint64(id), 10) }

// Hex gives the id's bytes as 16 hexadecimal digits, lower case.
func (id ID) Hex() string {
	const lower = "0123456789abcdef"
	var text [16]byte
	for i := len(text) - 1; i >= 0; i-- {
		text[i] = lower[id&0xf]
		id >>= 4
	}
	return string(text[:])
}

// ParseHex reads what [ID.Hex] gives, in either case, with 0x before it, and without
// leading zeros, as flake-idgen's ids are formatted. Anything else is a [*ParseError].
func ParseHex(text string) (id ID, err error) {
	skip := 0
	if strings.HasPrefix(text, "0x") {
		skip = 2
	}
	if n := len(text) - skip; n < 1 || n > 16 {
		return 0, errorf(text, 0, "%d bytes where 1 to 16 hexadecimal digits belong", len(text))
	}
	for i := skip; i < len(text); i++ {
		nibble := digits.HexValue(text[i])
		if nibble > 15 {
			return 0, errorf(text, i, "%q, no hexadecimal digit,", text[i])
		}
		id = id<<4 | ID(nibble)
	}
	return id, nil
}

// binaryLen is 64 digits, split in fours by spaces.
const binaryLen = 64 + 15

// Binary gives the id's 64 bits in groups of four, the highest first: 0000 0010
// 0011 and so on.
func (id ID) Binary() string {
	var text [binaryLen]byte
	for i := range text {
		if i%5 == 4 {
			text[i] = ' '
			continue
		}
		text[i] = '0' + byte(id>>63)
		id <<= 1
	}
	return string(text[:])
}

// ParseBinary reads what [ID.Binary] gives. Anything else is a [*ParseError].
func ParseBinary(text string) (id ID, err error) {
	if len(text) != binaryLen {
		return 0, errorf(text, 0, "%d bytes where 16 groups of 4 bits have %d", len(text), binaryLen)
	}
	for i := range len(text) {
		c := text[i]
		switch {
		case i%5 == 4 && c == ' ':
		case i%5 != 4 && (c == '0' || c == '1'):
			id = id<<1 | ID(c-'0')
		default:
			return 0, errorf(text, i, "%q where a bit or the space after four belongs", c)
		}
	}
	return id, nil
}
