package digits

import (
	"fmt"
	"strings"
)

// maxQuoted is how much is kept of a text that is no id: more than any id has.
const maxQuoted = 130

// ParseError tells why a text is not an id. The text is cut short if it is
// longer than any id's. The packages of formats convert it to one of their own.
type ParseError struct {
	Text string // what was to be an id
	At   int    // the byte where it goes wrong
	What string // what is wrong there
}

func (e *ParseError) Error() string {
	return fmt.Sprintf("flake: %s is not an id: %s at byte %d", Quote(e.Text), e.What, e.At)
}

// Errorf gives an error that says where. The text is copied, so as not to keep alive, or
// alias, a caller's buffer.
func Errorf[T string | []byte](text T, at int, format string, args ...any) *ParseError {
	return &ParseError{strings.Clone(string(text[:min(len(text), maxQuoted)])), at, fmt.Sprintf(format, args...)}
}

// Quote shows text that came from outside, cut to a length fit for a log line.
func Quote(text string) string {
	if len(text) > 64 {
		return fmt.Sprintf("%q... (%d bytes)", text[:64], len(text))
	}
	return fmt.Sprintf("%q", text)
}
