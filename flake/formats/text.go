package formats

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/internal/digits"
	"github.com/flake-go/flake/flake/snowflake"
	"github.com/flake-go/flake/flake/ulid"
)

// MaxText is the length of the longest text of an id: 128 bits in base 2.
const MaxText = 128

// Special bases, in addition to the bases 2 to 62. Those with a text form of their own have negative
// numbers. The package of clients exports some of them.
const (
	Octets    = 0 // the bytes of the id
	Canonical = -iota
	UUID      // the form of a UUID, for 128-bit ids
	Crockford // Crockford's base 32, padded
	base32    // this and the following bases are for 64-bit ids
	base36
	base58
	base64
)

const canonical = "canonical"

// text is a text form of ids other than digits in a base.
type text struct {
	name   string
	size   int // size in bytes of the ids that have this form; 0 means any
	append func(dst []byte, id Number, size int) []byte
	parse  func(text string, size int) (Number, error)
}

// texts are the text forms, each at the index of its base's negative. base32 to base64 are those of
// bwmarrin/snowflake, under the same names.
var texts = [...]text{
	-UUID:      {"uuid", maxOctets, appendUUID, parseUUID},
	-Crockford: {"crockford", 0, appendCrockford, parseCrockford},
	-base32:    encoding("base32", snowflake.Base32),
	-base36:    encoding("base36", snowflake.Base36),
	-base58:    encoding("base58", snowflake.Base58),
	-base64: {"base64", 8, func(dst []byte, id Number, _ int) []byte { return snowflake.ID(id.Lo).AppendBase64(dst) },
		func(text string, _ int) (Number, error) { return ofSnowflake(snowflake.ParseBase64(text)) }},
}

func encoding(name string, e *snowflake.Encoding) text {
	return text{name, 8, func(dst []byte, id Number, _ int) []byte { return e.Append(dst, snowflake.ID(id.Lo)) },
		func(text string, _ int) (Number, error) { return ofSnowflake(e.Parse(text)) }}
}

func ofSnowflake(id snowflake.ID, err error) (Number, error) { return Number{Lo: uint64(id)}, err }

func appendUUID(dst []byte, id Number, _ int) []byte { return id.flake().AppendUUID(dst) }

func parseUUID(text string, _ int) (Number, error) {
	bare, _ := digits.BareUUID(text)
	if len(bare) != digits.UUIDLen {
		return Number{}, errText
	}
	return ofText128(flake.Parse(bare))
}

// crockfordZeros is the lowest 128-bit id in Crockford's base 32, which ULIDs use. An id's text
// is padded to the width of the highest id of its size.
const crockfordZeros = "00000000000000000000000000"

func crockfordWidth(size int) int { return (8*size + 4) / 5 } // 13, 16 or 26

func appendCrockford(dst []byte, id Number, size int) []byte {
	var buf [len(crockfordZeros)]byte
	text, _ := ulid.ID(id.flake()).AppendText(buf[:0])
	return append(dst, text[len(text)-crockfordWidth(size):]...)
}

func parseCrockford(text string, size int) (Number, error) {
	return ofText128(ulid.Parse(crockfordZeros[crockfordWidth(size):] + text))
}

// textOf returns the text form with the given base, or nil if there is none.
func textOf(base int) *text {
	if base >= Canonical || base <= -len(texts) {
		return nil
	}
	return &texts[-base]
}

// BaseOf returns the base with the given name: canonical; uuid, for 128-bit ids only; crockford;
// or base32, base36, base58 and base64, for 64-bit ids only.
func BaseOf(name string) (base int, ok bool) {
	if name == canonical {
		return Canonical, true
	}
	for _, base := range TextBases() {
		if textOf(base).name == name {
			return base, true
		}
	}
	return 0, false
}

// NameOf returns the name of a base: "base 62", "base58", "canonical".
func NameOf(base int) string {
	if t := textOf(base); t != nil {
		return t.name
	}
	if base == Canonical {
		return canonical
	}
	return "base " + strconv.Itoa(base)
}

// HasBase reports whether the format supports a base, which must be valid.
func (f *Format) HasBase(base int) bool {
	t := textOf(base)
	return t == nil || t.size == 0 || t.size == f.Size
}

// TextBases returns the bases that have a name, except canonical.
func TextBases() (bases []int) {
	for i := -UUID; i < len(texts); i++ {
		bases = append(bases, -i)
	}
	return bases
}

// BaseNames returns the names of the named bases that at least one of the formats supports.
func BaseNames(all ...*Format) []string {
	names := []string{canonical}
	for _, base := range TextBases() {
		if slices.ContainsFunc(all, func(f *Format) bool { return f.HasBase(base) }) {
			names = append(names, NameOf(base))
		}
	}
	return names
}

// Append appends an id in a base: its bytes, a text form, or digits.
func (f *Format) Append(dst []byte, id Number, base int) []byte {
	switch base {
	case Octets:
		return id.AppendOctets(dst, f.Size)
	case Canonical:
		dst, _ = f.append(dst, id)
		return dst
	}
	if t := textOf(base); t != nil {
		return t.append(dst, id, f.Size)
	}
	return id.appendDigits(dst, base)
}

// Width returns the length of the longest text that an id has in a base.
func (f *Format) Width(base int) int { return len(f.Append(nil, highest(f.Size), base)) }

var errText = errors.New("flake: not an id of the format")

// Parse parses what Append appends for the base, if it is an id of the format: no bit above the time
// is set, and fixed fields have their values. With Canonical it accepts any of the format's
// text forms, the id in base 16 as other programs write it and, for 128-bit ids, 26 Crockford
// digits that begin with 0. With Octets it accepts the bytes of the id, and reads text of any
// other length as with Canonical.
func (f *Format) Parse(text string, base int) (id Number, err error) {
	switch {
	case base == Octets && len(text) == f.Size:
		id = NumberOf(text)
	case base == Octets || base == Canonical:
		id, _, err = f.read(text)
	case textOf(base) != nil && f.HasBase(base):
		id, err = textOf(base).parse(text, f.Size)
	default:
		id, err = parseDigits(text, base)
	}
	if err == nil {
		_, err = f.parse(string(f.Append(nil, id, Canonical))) // fails if bits that are fixed have other values
	}
	if err != nil || id.Compare(highest(f.Size)) > 0 {
		return Number{}, errText
	}
	return id, nil
}

// ReadAs describes, for people, the form that Parse with Canonical recognizes in text.
func (f *Format) ReadAs(text string) string {
	_, as, _ := f.read(text)
	return cmp.Or(as, f.Name+"'s own text")
}

// read parses text as Parse does with Canonical. It returns the name of the text's form, or ""
// for the format's own.
func (f *Format) read(text string) (id Number, as string, err error) {
	if f.Size == maxOctets {
		text, _ = digits.BareUUID(text)
	}
	if id, err = f.parse(text); err == nil {
		return id, "", nil
	}
	// 26 digits with a leading 0 are Crockford's: as hexadecimal they would have needless zeros.
	if f.Size == maxOctets && len(text) == len(crockfordZeros) && text[0] == '0' && text[1]|' ' != 'x' {
		id, err = parseCrockford(text, f.Size)
		return id, "crockford", err
	}
	id, err = parseHex(text, f.Size)
	return id, "hexadecimal", err
}

// parseDigits parses what appendDigits appends and, in base 16, also lower case and a leading
// 0x. The number may be too large for the format.
func parseDigits(text string, base int) (Number, error) {
	if base == 16 {
		text = strings.ToUpper(strings.TrimPrefix(text, "0x"))
	}
	return ofText128(flake.ParseBase(text, base))
}

// parseHex parses text in base 16. To be recognized, the text must begin with 0x, have a letter
// among its digits, or have as many digits as an id, as a UUID without hyphens does. In the last
// case, \x may precede the digits, as in Postgres.
func parseHex(text string, size int) (Number, error) {
	number, bytea := strings.CutPrefix(text, `\x`)
	whole := len(number) == 2*size
	if !whole && (bytea || !strings.HasPrefix(text, "0x") && !strings.ContainsAny(text, "abcdefABCDEF")) {
		return Number{}, errText
	}
	return parseDigits(number, 16)
}
