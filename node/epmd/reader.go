package epmd

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// FormatError is the error for a malformed message.
type FormatError struct {
	Message string // the name in the chapter
	Field   string
	Cause   string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("epmd: %s: %s: %s", e.Message, e.Field, e.Cause)
}

// reader reads fields from src. Its first failure sticks; later fields are zero.
type reader struct {
	message string
	src     []byte
	err     error
}

func newReader(src []byte, want Tag) *reader {
	r := &reader{message: want.String(), src: src}
	if got := Tag(r.uint8("tag")); got != want && r.err == nil {
		r.fail("tag", fmt.Sprintf("got %s", got))
	}
	return r
}

func (r *reader) fail(field, cause string) {
	if r.err == nil {
		r.err = &FormatError{r.message, field, cause}
	}
}

func (r *reader) bytes(field string, n int) []byte {
	if len(r.src) < n {
		r.fail(field, fmt.Sprintf("%d bytes needed, but only %d left", n, len(r.src)))
	}
	if r.err != nil {
		return nil
	}
	b := r.src[:n]
	r.src = r.src[n:]
	return b
}

func (r *reader) uint8(field string) byte {
	if b := r.bytes(field, 1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) uint16(field string) uint16 {
	if b := r.bytes(field, 2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (r *reader) uint32(field string) uint32 {
	if b := r.bytes(field, 4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// name reads a node's name of n bytes.
func (r *reader) name(n int) string {
	name := string(r.bytes("name", n))
	if r.err == nil {
		if cause := badName(name); cause != "" {
			r.fail("name", cause)
		}
	}
	return name
}

// badName returns the error in a node's name, or "". It refuses control characters, with which
// a name could forge lines of NAMES_RESP; the real daemon accepts them.
func badName(name string) string {
	switch {
	case name == "":
		return "empty"
	case len(name) > maxName:
		return fmt.Sprintf("%d bytes, at most %d allowed", len(name), maxName)
	case !utf8.ValidString(name):
		return fmt.Sprintf("%q is not UTF-8", name)
	case strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Sprintf("%q contains a control character", name)
	}
	return ""
}
