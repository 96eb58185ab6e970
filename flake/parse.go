package flake

import "github.com/flake-go/flake/flake/internal/digits"

// ParseError tells why a text is not an id: in Text what was to be one, cut
// short if it is longer than any, in At the byte where it goes wrong, in What
// what is wrong there.
type ParseError = digits.ParseError

// Parse reads an id written in a base from 2 to 62, with any number of leading
// zeros up to [Width] digits: the reverse of [ID.Text] and [ID.Padded]. Letters
// of the other case are other digits, in every base. It gives [ErrBase] for any
// other base, and a [*ParseError] for text that is empty, too long, above the
// highest id, or has anything but digits of the base.
func Parse(text string, base int) (id ID, err error) {
	hi, lo, err := size.Parse(text, base)
	id.set(hi, lo)
	return id, err
}
