package snowflake

import (
	"encoding/base64"
	"encoding/hex"
	"math/bits"
	"strconv"
	"strings"

	"github.com/flake-go/flake/flake/internal/digits"
)

var size = digits.NewSize(64)

// Width returns the length of [ID.Padded] in a base from 2 to 62: 64 in base 2, 16 in base 16, 11 in base 62.
// For any other base it returns 0.
func Width(base int) int { return size.Width(base) }

// String returns the id in decimal, without leading zeros.
func (id ID) String() string { return strconv.FormatUint(uint64(id), 10) }

// AppendText appends to dst what [ID.String] returns. The error is always nil.
func (id ID) AppendText(dst []byte) ([]byte, error) {
	return strconv.AppendUint(dst, uint64(id), 10), nil
}

// Text returns the id as a number in a base from 2 to 62, without leading zeros, like [flake.ID.Text].
// For the digits of other libraries, see [Base32], [Base36] and [Base58].
func (id ID) Text(base int) (string, error) { return digits.Text(0, uint64(id), base) }

// AppendBase appends to dst what [ID.Text] returns. If it fails, it returns dst unchanged.
func (id ID) AppendBase(dst []byte, base int) ([]byte, error) {
	return digits.Append(dst, 0, uint64(id), base)
}

// Padded returns the id as a number in a base from 2 to 62, padded with leading zeros to [Width]
// digits, like [flake.ID.Padded].
func (id ID) Padded(base int) (string, error) { return size.Padded(0, uint64(id), base) }

// Parse parses what [ID.String] returns, with or without leading zeros, up to 20 digits. For any
// other text it returns a [*flake.ParseError].
func Parse(text string) (ID, error) { return ParseBase(text, 10) }

// ParseBase parses what [ID.Text] and [ID.Padded] return, like [flake.ParseBase].
func ParseBase(text string, base int) (ID, error) {
	_, id, err := size.Parse(text, base)
	return ID(id), err
}

// MustParse is like [Parse] but panics on an error. It is for ids in source code. No function
// detects the base of a string, because most are valid in several bases.
func MustParse(text string) ID { return digits.Must(Parse(text)) }

// Hex returns the id's bytes as 16 hexadecimal digits, lower case.
func (id ID) Hex() string {
	b, text := id.Bytes(), [16]byte{}
	hex.Encode(text[:], b[:])
	return string(text[:])
}

// ParseHex parses what [ID.Hex] returns, in either case, and with or without 0x and leading
// zeros, because programs write flake-idgen's ids in different ways. For any other text it
// returns a [*flake.ParseError].
func ParseHex(text string) (ID, error) {
	skip := 0
	if strings.HasPrefix(text, "0x") {
		skip = 2
	}
	if n := len(text) - skip; n < 1 || n > 16 {
		return 0, digits.Errorf(text, 0, "%d bytes; must be 1 to 16 hexadecimal digits", len(text))
	}
	_, n, err := digits.ParseHex(text, skip)
	return ID(n), err
}

// binaryLen is the length of 64 digits in groups of four, separated by spaces.
const binaryLen = 64 + 15

// Binary returns the id's 64 bits in groups of four, highest first: 0000 0010 0011 and so on.
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

// ParseBinary parses what [ID.Binary] returns, and fails with a [*flake.ParseError] on any other text.
func ParseBinary(text string) (id ID, err error) {
	if len(text) != binaryLen {
		return 0, digits.Errorf(text, 0, "%d bytes; must be %d, for 16 groups of 4 bits",
			len(text), binaryLen)
	}
	for i := range len(text) {
		c := text[i]
		switch {
		case i%5 == 4 && c == ' ':
		case i%5 != 4 && (c == '0' || c == '1'):
			id = id<<1 | ID(c-'0')
		default:
			return 0, digits.Errorf(text, i, "%q instead of a bit, or a space after four bits", c)
		}
	}
	return id, nil
}

// Encoding is a text form of ids with its own digits: the number without leading zeros, highest
// digit first. The zero Encoding has no digits: Parse fails, and other methods panic.
type Encoding struct {
	alphabet string
	values   [256]byte // 255 if the byte is not a digit
	width    int       // number of digits of the highest id
}

// maxWidth is the width of Base32, the widest of all encodings.
const maxWidth = 13

// The encodings of bwmarrin/snowflake.
var (
	// Base32 uses the digits of z-base-32, which are easy to read aloud.
	Base32 = newEncoding("ybndrfg8ejkmcpqxot1uwisza345h769")
	// Base36 uses 0-9a-z, as the built-in conversions of most languages do.
	Base36 = newEncoding("0123456789abcdefghijklmnopqrstuvwxyz")
	// Base58 uses 1-9a-zA-Z without l, I and O.
	Base58 = newEncoding("123456789abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ")
)

// Base64 returns the base64 form of bwmarrin/snowflake, which encodes not the number but its
// decimal digits. It is padded, and has up to 28 characters.
func (id ID) Base64() string { return string(id.AppendBase64(nil)) }

// AppendBase64 appends to dst what [ID.Base64] returns.
func (id ID) AppendBase64(dst []byte) []byte {
	var decimal [20]byte
	return base64.StdEncoding.AppendEncode(dst, strconv.AppendUint(decimal[:0], uint64(id), 10))
}

// ParseBase64 parses what [ID.Base64] returns, and fails with a [*flake.ParseError] on any other text.
func ParseBase64(text string) (ID, error) {
	decimal, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || strings.ContainsAny(text, "\r\n") { // DecodeString skips these
		return 0, digits.Errorf(text, 0, "not base64")
	}
	id, err := Parse(string(decimal))
	if err != nil || len(decimal) > 1 && decimal[0] == '0' {
		return 0, digits.Errorf(text, 0, "not the base64 encoding of a decimal number up to the highest id")
	}
	return id, nil
}

func newEncoding(alphabet string) *Encoding {
	return &Encoding{alphabet, digits.Values(alphabet), Width(len(alphabet))}
}

// Text returns an id's text.
func (e *Encoding) Text(id ID) string {
	var buf [maxWidth]byte
	return string(buf[e.put(&buf, id):])
}

// Append appends an id's text to dst.
func (e *Encoding) Append(dst []byte, id ID) []byte {
	var buf [maxWidth]byte
	return append(dst, buf[e.put(&buf, id):]...)
}

// put writes an id's text to the end of buf and returns the index of its first digit. It
// divides by constants, which is much faster than dividing by a variable.
func (e *Encoding) put(buf *[maxWidth]byte, id ID) int {
	at, alphabet := len(buf)-1, e.alphabet
	switch len(alphabet) {
	case 58:
		for ; id >= 58; at-- {
			buf[at] = alphabet[id%58]
			id /= 58
		}
	case 36:
		for ; id >= 36; at-- {
			buf[at] = alphabet[id%36]
			id /= 36
		}
	case 32:
		for ; id >= 32; at-- {
			buf[at] = alphabet[id%32]
			id /= 32
		}
	default:
		panic("flake: a snowflake.Encoding without digits: use Base32, Base36 or Base58")
	}
	buf[at] = alphabet[id]
	return at
}

// Parse parses what [Encoding.Text] returns. It also accepts leading zeros, as digits of the
// encoding, up to the length of the highest id's text. It returns a [*flake.ParseError] if the
// text is empty, too long, above the highest id, or contains anything but digits of the encoding.
func (e *Encoding) Parse(text string) (ID, error) {
	base := uint64(len(e.alphabet))
	if len(text) == 0 || len(text) > e.width {
		return 0, digits.Wrong(text, len(e.alphabet), e.width, &e.values)
	}
	// A number with one digit fewer than the highest id always fits in 64 bits.
	head, last := text[:len(text)-1], uint64(e.values[text[len(text)-1]])
	id, all := uint64(0), last // all is the OR of the values
	for i := range len(head) {
		value := uint64(e.values[head[i]])
		all |= value
		id = id*base + value
	}
	over, id := bits.Mul64(id, base)
	id, carry := bits.Add64(id, last, 0)
	if all == 255 || over|carry != 0 {
		return 0, digits.Wrong(text, len(e.alphabet), e.width, &e.values)
	}
	return ID(id), nil
}
