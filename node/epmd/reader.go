package epmd

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// FormatError says where a message is malformed.
type FormatError struct {
	Message string // the chapter's name for it
	Field   string
	Cause   string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("epmd: %s: %s: %s", e.Message, e.Field, e.Cause)
}

// reader takes fields off src. Its first failure sticks; later fields are zero.
type reader struct {
	message string
	src     []byte
	err     error
}

func newReader(src []byte, want Tag) *reader {
	r := &reader{message: want.String(), src: src}
	if got := Tag(r.uint8("tag")); got != want && r.err == nil {
		r.fail("tag", fmt.Sprintf("%s instead", got))
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
		r.fail(field, fmt.Sprintf("%d bytes wanted, %d left", n, len(r.src)))
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

// name takes the next n bytes as a node's name.
func (r *reader) name(n int) string {
	name := string(r.bytes("name", n))
	if r.err == nil {
		if cause := badName(name); cause != "" {
			r.fail("name", cause)
		}
	}
	return name
}

// badName returns what is wrong with a node's name, or "". The real daemon accepts control
// characters, with which a name can forge lines of NAMES_RESP.
func badName(name string) string {
	switch {
	case name == "":
		return "empty"
	case len(name) > maxName:
		return fmt.Sprintf("%d bytes, at most %d allowed", len(name), maxName)
	case !utf8.ValidString(name):
		return fmt.Sprintf("%q is not UTF-8", name)
	case strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Sprintf("%q holds a control character", name)
	}
	return ""
}
