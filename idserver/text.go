package idserver

import (
	"strconv"

	"github.com/flake-go/flake/flake/snowflake"
)

// text is a way to write ids of 64 bits that other snowflakes have.
type text struct {
	name   string
	append func(dst []byte, id snowflake.ID) []byte
	parse  func(text string) (snowflake.ID, error)
}

// texts are those of bwmarrin/snowflake, by its names. The first has the base below
// Canonical, the next the one below that.
var texts = [...]text{
	{"base32", snowflake.Base32.Append, snowflake.Base32.Parse},
	{"base36", snowflake.Base36.Append, snowflake.Base36.Parse},
	{"base58", snowflake.Base58.Append, snowflake.Base58.Parse},
	{"base64", func(dst []byte, id snowflake.ID) []byte { return id.AppendBase64(dst) }, snowflake.ParseBase64},
}

const canonical = "canonical"

// textOf returns the text of a base, or nil.
func textOf(base int) *text {
	if i := Canonical - 1 - base; 0 <= i && i < len(texts) {
		return &texts[i]
	}
	return nil
}

// BaseOf returns the base that has a name instead of a number: canonical, or one that
// only ids of 64 bits have: base32, base36, base58 or base64.
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

// NamesOf are those of the bases that a format has besides numbers.
func NamesOf(f Format) []string {
	names := []string{canonical}
	for i := range texts {
		if HasBase(f, Canonical-1-i) {
			names = append(names, texts[i].name)
		}
	}
	return names
}

// TextBases are the bases of those that only ids of 64 bits have.
func TextBases() (bases []int) {
	for i := range texts {
		bases = append(bases, Canonical-1-i)
	}
	return bases
}

// NameOf returns a base in words: "base 62", "base58".
func NameOf(base int) string {
	if t := textOf(base); t != nil {
		return t.name
	}
	return "base " + strconv.Itoa(base)
}

// HasBase tells whether ids of a format can be written in a base that there is.
func HasBase(f Format, base int) bool { return textOf(base) == nil || f.Size() == 8 }
