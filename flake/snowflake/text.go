package snowflake

import (
	"strconv"
	"strings"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/internal/digits"
)

var size = digits.NewSize(64)

// Width is the number of digits of the highest id in a base from 2 to 62, and
// so of every padded text in it: 64 for 2, 16 for 16, 11 for 62. It is 0 for any
// other base.
func Width(base int) int { return size.Width(base) }

// String is the id in decimal, without leading zeros.
func (id ID) String() string { return strconv.FormatUint(uint64(id), 10) }

// AppendText appends what [ID.String] returns to dst. The error is always nil.
func (id ID) AppendText(dst []byte) ([]byte, error) {
	return strconv.AppendUint(dst, uint64(id), 10), nil
}

// Text is the id as a number in a base from 2 to 62, digits 0-9A-Za-z in that order,
// without leading zeros, as package flake has it. Any other base is [flake.ErrBase].
// For the digits of others see [Base32], [Base36] and [Base58].
func (id ID) Text(base int) (string, error) { return digits.Text(0, uint64(id), base) }

// AppendBase appends what [ID.Text] returns to dst. On [flake.ErrBase] dst comes back
// as it was.
func (id ID) AppendBase(dst []byte, base int) ([]byte, error) {
	return digits.Append(dst, 0, uint64(id), base)
}

// Padded is the id in a base from 2 to 62 with leading zeros to [Width] digits:
// in any one base such texts sort, as bytes, as the ids do. Any other base is
// [flake.ErrBase].
func (id ID) Padded(base int) (string, error) { return size.Padded(0, uint64(id), base) }

// Parse reads what [ID.String] returns. Anything else is a [*flake.ParseError].
func Parse(text string) (ID, error) {
	if len(text) > 1 && text[0] == '0' {
		return 0, digits.Errorf[flake.ParseError](text, 0, "a leading zero")
	}
	return ParseBase(text, 10)
}

// ParseBase reads an id written in a base from 2 to 62, with any number of leading
// zeros up to [Width] digits: the reverse of [ID.Text] and [ID.Padded]. Letters
// of the other case are other digits, in every base. Any other base is
// [flake.ErrBase]; text that is empty, too long, above the highest id, or has
// anything but digits of the base is a [*flake.ParseError].
func ParseBase(text string, base int) (ID, error) {
	_, id, err := size.Parse(text, base)
	if err != nil {
		return 0, digits.As[flake.ParseError](err)
	}
	return ID(id), nil
}

// MustParse is [Parse] that panics where that returns an error: for ids that are
// written in a program. There is no function that finds the form out, as most texts
// could be of several.
func MustParse(text string) ID { return digits.Must(Parse(text)) }

// Hex is the id's bytes as 16 hexadecimal digits, lower case.
func (id ID) Hex() string {
	const lower = "0123456789abcdef"
	var text [16]byte
	for i := len(text) - 1; i >= 0; i-- {
		text[i] = lower[id&0xf]
		id >>= 4
	}
	return string(text[:])
}

// ParseHex reads what [ID.Hex] returns, in either case, with 0x before it, and without
// leading zeros, as flake-idgen's ids are formatted. Anything else is a [*flake.ParseError].
func ParseHex(text string) (ID, error) {
	skip := 0
	if strings.HasPrefix(text, "0x") {
		skip = 2
	}
	if n := len(text) - skip; n < 1 || n > 16 {
		return 0, digits.Errorf[flake.ParseError](text, 0, "%d bytes where 1 to 16 hexadecimal digits belong", len(text))
	}
	_, n, err := digits.ParseHex(text, skip)
	return ID(n), digits.As[flake.ParseError](err)
}

// binaryLen is 64 digits, split in fours by spaces.
const binaryLen = 64 + 15

// Binary is the id's 64 bits in groups of four, the highest first: 0000 0010
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

// ParseBinary reads what [ID.Binary] returns. Anything else is a [*flake.ParseError].
func ParseBinary(text string) (id ID, err error) {
	if len(text) != binaryLen {
		return 0, digits.Errorf[flake.ParseError](text, 0, "%d bytes where 16 groups of 4 bits have %d", len(text), binaryLen)
	}
	for i := range len(text) {
		c := text[i]
		switch {
		case i%5 == 4 && c == ' ':
		case i%5 != 4 && (c == '0' || c == '1'):
			id = id<<1 | ID(c-'0')
		default:
			return 0, digits.Errorf[flake.ParseError](text, i, "%q where a bit or the space after four belongs", c)
		}
	}
	return id, nil
}
