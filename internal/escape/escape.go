// Package escape makes text from other programs safe for logs and terminals: it escapes line feeds and control
// sequences.
package escape

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns text with Go escapes, such as \n or \x1b, for characters that are not printable. Escaping its result
// again changes nothing.
func Text(text string) string { return escape(text, "") }

// Lines is like Text, but keeps line feeds and tabs, for text whose lines come from this program.
func Lines(text string) string { return escape(text, "\n\t") }

// Safe reports whether Text would leave text unchanged.
func Safe(text string) bool { return Text(text) == text }

// Err returns err with its message escaped by Text.
func Err(err error) error { return escaped{err} }

type escaped struct{ error }

func (e escaped) Error() string { return Text(e.error.Error()) }
func (e escaped) Unwrap() error { return e.error }

// URL returns the text of a URL, which need not be valid, with xxxxx in place of its password.
func URL(text string) string {
	u, err := url.Parse(text)
	end := strings.LastIndex(text, "@")
	switch {
	case err == nil && u.User != nil:
		return u.Redacted()
	case end < 0, err == nil && u.Host != "": // an @ in the path
		return text
	}
	return "xxxxx" + text[end:]
}

func escape(text, keep string) string {
	var b strings.Builder
	for i, r := range text {
		switch _, size := utf8.DecodeRuneInString(text[i:]); {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case unicode.IsPrint(r) || strings.ContainsRune(keep, r):
			b.WriteRune(r)
		default:
			quoted := fmt.Sprintf("%+q", r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}
