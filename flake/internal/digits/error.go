package digits

import (
	"fmt"
	"strings"
)

// maxQuoted is how much is kept of a text that is no id: more than any id has.
const maxQuoted = 130

// Wrong is why a text is no id. [As] makes it the error that users of the formats
// see, flake.ParseError, which is declared where go doc shows its fields.
type Wrong struct {
	Text string // what was to be an id, cut short if it is longer than any
	At   int    // the byte where it goes wrong
	What string // what is wrong there
}

func (e *Wrong) Error() string {
	return fmt.Sprintf("flake: %s is not an id: %s at byte %d", Quote(e.Text), e.What, e.At)
}

// like is a [Wrong] under another name. A pointer to it has to be an error.
type like interface {
	~struct {
		Text string
		At   int
		What string
	}
}

// As returns err as a *E, if it is a [*Wrong].
func As[E like](err error) error {
	wrong, ok := err.(*Wrong)
	if !ok {
		return err
	}
	e := E(*wrong)
	return any(&e).(error)
}

// Errorf returns a *E that says where.
func Errorf[E like, T string | []byte](text T, at int, format string, args ...any) error {
	return As[E](wrong(text, at, format, args...))
}

// wrong copies the text, so as not to keep alive, or alias, a caller's buffer.
func wrong[T string | []byte](text T, at int, format string, args ...any) *Wrong {
	return &Wrong{strings.Clone(string(text[:min(len(text), maxQuoted)])), at, fmt.Sprintf(format, args...)}
}

// Quote shows text that came from outside, cut to a length fit for a log line.
func Quote(text string) string {
	if len(text) > 64 {
		return fmt.Sprintf("%q... (%d bytes)", text[:64], len(text))
	}
	return fmt.Sprintf("%q", text)
}

// ScanError is the error of a Scan method, of a value of the database's that is no id in
// any form: neither bytes nor text.
type ScanError struct{ Value any }

func (e *ScanError) Error() string {
	if e.Value == nil {
		return "flake: cannot scan NULL into an id: scan into a sql.Null of it"
	}
	return fmt.Sprintf("flake: cannot scan %T into an id", e.Value)
}

// CannotScan returns a [*ScanError].
func CannotScan(src any) error { return &ScanError{src} }

// Must returns an id that was read, and panics with the error if it was not.
func Must[ID any](id ID, err error) ID {
	if err != nil {
		panic(err)
	}
	return id
}
