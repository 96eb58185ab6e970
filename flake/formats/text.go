package formats

import (
	"errors"
	"strconv"
	"strings"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/snowflake"
)

// MaxText is the length of the longest text of an id: 128 bits in base 2.
const MaxText = 128

// Bases of a text besides 2 to 62.
const (
	Octets    = 0  // the bytes of the id
	Canonical = -1 // the format's own text
)

const canonical = "canonical"

// text is a way to write ids of 64 bits, from other snowflake libraries.
type text struct {
	name   string
	append func(dst []byte, id snowflake.ID) []byte
	parse  func(text string) (snowflake.ID, error)
}

// texts are those of bwmarrin/snowflake, with its names. Their bases are the numbers
// below Canonical.
var texts = [...]text{
	{"base32", snowflake.Base32.Append, snowflake.Base32.Parse},
	{"base36", snowflake.Base36.Append, snowflake.Base36.Parse},
	{"base58", snowflake.Base58.Append, snowflake.Base58.Parse},
	{"base64", func(dst []byte, id snowflake.ID) []byte { return id.AppendBase64(dst) }, snowflake.ParseBase64},
}

// textOf returns the text of a base, or nil.
func textOf(base int) *text {
	if i := Canonical - 1 - base; 0 <= i && i < len(texts) {
		return &texts[i]
	}
	return nil
}

// BaseOf returns the base with a name: canonical, or base32, base36, base58 and base64,
// which only ids of 64 bits have.
func BaseOf(name string) (base int, ok bool) {
	if name == canonical {
		return Canonical, true
	}
	for i := range texts {
		if texts[i].name == name {
			return Canonical - 1 - i, true
		}
	}
	return 0, false
}

// TextBases returns the bases of the texts that only ids of 64 bits have.
func TextBases() (bases []int) {
	for i := range texts {
		bases = append(bases, Canonical-1-i)
	}
	return bases
}

// NameOf returns the name of a base: "base 62", "base58".
func NameOf(base int) string {
	if t := textOf(base); t != nil {
		return t.name
	}
	return "base " + strconv.Itoa(base)
}

// HasBase reports whether ids of the format can be written in a valid base.
func (f *Format) HasBase(base int) bool { return textOf(base) == nil || f.Size == 8 }

// BaseNames returns the names of the bases of the format that are not numbers.
func (f *Format) BaseNames() []string {
	names := []string{canonical}
	for i := range texts {
		if f.HasBase(Canonical - 1 - i) {
			names = append(names, texts[i].name)
		}
	}
	return names
}

// Append appends an id in a base: its bytes, the format's own text, or digits.
func (f *Format) Append(dst []byte, id Number, base int) []byte {
	switch base {
	case Octets:
		return id.AppendOctets(dst, f.Size)
	case Canonical:
		return f.append(dst, id)
	}
	if t := textOf(base); t != nil {
		return t.append(dst, snowflake.ID(id.Lo))
	}
	return id.AppendDigits(dst, base)
}

// Width returns the length of the longest id in a base.
func (f *Format) Width(base int) int { return len(f.Append(nil, highest(f.Size), base)) }

var errText = errors.New("flake: not an id of the format")

// Parse parses what Append returns: digits in the base; with Canonical, any of the
// format's own texts, or the id in base 16 as other programs write it; with Octets, the
// bytes of the id or, if the length differs, as with Canonical.
func (f *Format) Parse(text string, base int) (id Number, err error) {
	switch {
	case base == Octets && len(text) == f.Size:
		return NumberOf(text), nil
	case base == Octets || base == Canonical:
		if id, err = f.parse(text); err != nil {
			id, err = parseHex(text, f.Size)
		}
	case textOf(base) != nil && f.HasBase(base):
		var number snowflake.ID
		number, err = textOf(base).parse(text)
		id = Number{Lo: uint64(number)}
	default:
		id, err = parseDigits(text, base, f.Size)
	}
	if err == nil {
		_, err = f.parse(string(f.append(nil, id))) // fails for a UUID of another version
	}
	if err != nil {
		return Number{}, errText
	}
	return id, nil
}

// IsOwn reports whether a text is one of the format's own texts, not digits in a base.
func (f *Format) IsOwn(text string) bool {
	_, err := f.parse(text)
	return err == nil
}

// parseDigits parses what AppendDigits returns; in base 16 also lower case, and after
// 0x. A number that does not fit size bytes is an error.
func parseDigits(text string, base, size int) (Number, error) {
	if base == 16 {
		text = strings.ToUpper(strings.TrimPrefix(text, "0x"))
	}
	id, err := flake.ParseBase(text, base)
	n := of128(id)
	if n.Compare(highest(size)) > 0 {
		err = errText
	}
	return n, err
}

// parseHex parses unambiguous base 16: after 0x; with a letter among the digits; or a
// whole id, also after the \x of Postgres. For ids of flake that includes a UUID without
// hyphens.
func parseHex(text string, size int) (Number, error) {
	digits, bytea := strings.CutPrefix(text, `\x`)
	whole := len(digits) == 2*size
	if !whole && (bytea || !strings.HasPrefix(text, "0x") && !strings.ContainsAny(text, "abcdefABCDEF")) {
		return Number{}, errText
	}
	return parseDigits(digits, 16, size)
}
