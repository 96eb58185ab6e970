package snowflake

import (
	"encoding/base64"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/internal/digits"
)

// Encoding is a text of ids with digits of its own: the number without leading
// zeros, the highest digit first. The zero value has no digits: it reads no text,
// and panics instead of returning one.
type Encoding struct {
	alphabet string
	values   [256]byte // 255: no digit
	width    int       // digits of the highest id
}

// The encodings that other snowflakes have, those of bwmarrin/snowflake.
var (
	// Base32 has the digits of z-base-32, which are easy to read out.
	Base32 = newEncoding("ybndrfg8ejkmcpqxot1uwisza345h769")
	// Base36 has 0-9a-z, as in most languages' own conversions.
	Base36 = newEncoding("0123456789abcdefghijklmnopqrstuvwxyz")
	// Base58 has 1-9a-zA-Z without l, I and O.
	Base58 = newEncoding("123456789abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ")
)

// Base64 is the id in base 64 as bwmarrin/snowflake has it: not of the number but of its
// decimal digits, padded, up to 28 characters.
func (id ID) Base64() string { return string(id.AppendBase64(nil)) }

// AppendBase64 appends what [ID.Base64] returns to dst.
func (id ID) AppendBase64(dst []byte) []byte {
	var decimal [20]byte
	return base64.StdEncoding.AppendEncode(dst, strconv.AppendUint(decimal[:0], uint64(id), 10))
}

// ParseBase64 reads what [ID.Base64] returns. Anything else is a [*flake.ParseError].
func ParseBase64(text string) (ID, error) {
	decimal, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || strings.ContainsAny(text, "\r\n") { // which are skipped
		return 0, digits.Errorf[flake.ParseError](text, 0, "no base 64")
	}
	id, err := Parse(string(decimal))
	if err != nil {
		return 0, digits.Errorf[flake.ParseError](text, 0, "base 64 of no decimal number up to the highest id")
	}
	return id, nil
}

func newEncoding(alphabet string) *Encoding {
	e := &Encoding{alphabet: alphabet, width: Width(len(alphabet))}
	for i := range e.values {
		e.values[i] = 255
	}
	for i := range len(alphabet) {
		e.values[alphabet[i]] = byte(i)
	}
	return e
}

// Text is an id's text.
func (e *Encoding) Text(id ID) string {
	var buf [16]byte
	return string(e.Append(buf[:0], id))
}

// Append appends an id's text to dst.
func (e *Encoding) Append(dst []byte, id ID) []byte {
	start, base := len(dst), ID(len(e.alphabet))
	if base == 0 {
		panic("flake: a snowflake.Encoding without digits: use Base32, Base36 or Base58")
	}
	for {
		dst = append(dst, e.alphabet[id%base])
		if id /= base; id == 0 {
			slices.Reverse(dst[start:])
			return dst
		}
	}
}

// Parse reads what [Encoding.Text] returns, and leading zeros of the encoding up
// to the width of the highest id. Text that is empty, too long, above the
// highest id, or has anything but its digits is a [*flake.ParseError].
func (e *Encoding) Parse(text string) (ID, error) {
	base := uint64(len(e.alphabet))
	if len(text) == 0 || len(text) > e.width {
		return 0, digits.Errorf[flake.ParseError](text, 0, "%d digits where base %d has 1 to %d", len(text), base, e.width)
	}
	// A digit less than the highest id has always fits.
	var id uint64
	var highest byte
	head := text[:min(len(text), e.width-1)]
	for i := range len(head) {
		value := e.values[head[i]]
		highest = max(highest, value)
		id = id*base + uint64(value)
	}
	high := false
	if len(text) == e.width {
		value := e.values[text[e.width-1]]
		highest = max(highest, value)
		high = id > (math.MaxUint64-uint64(value))/base
		id = id*base + uint64(value)
	}
	if highest == 255 {
		return 0, e.badDigit(text)
	}
	if high {
		return 0, digits.Errorf[flake.ParseError](text, 0, "a number above the highest id, in base %d,", base)
	}
	return ID(id), nil
}

func (e *Encoding) badDigit(text string) error {
	at := 0
	for e.values[text[at]] != 255 {
		at++
	}
	return digits.Errorf[flake.ParseError](text, at, "%q, no digit of base %d,", text[at], len(e.alphabet))
}
