// Package escape makes text of other programs safe to show: in a line it starts no other, and a terminal
// obeys nothing in it.
package escape

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns text with escapes of Go, such as \n or \x1b, for what is not printable. Applied twice it
// changes nothing more.
func Text(text string) string { return escape(text, "") }

// Lines is like Text, for text of several lines that were made here: it keeps line feeds and tabs.
func Lines(text string) string { return escape(text, "\n\t") }

// Safe reports whether Text changes nothing.
func Safe(text string) bool { return Text(text) == text }

// Err returns err with a text that went through Text.
func Err(err error) error { return escaped{err} }

type escaped struct{ error }

func (e escaped) Error() string { return Text(e.error.Error()) }
func (e escaped) Unwrap() error { return e.error }

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
