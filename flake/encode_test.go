package flake

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestEncodings(t *testing.T) {
	for _, id := range someIDs() {
		if data, err := id.MarshalBinary(); !bytes.Equal(data, id[:]) || err != nil {
			t.Errorf("bytes of %v: %x, %v", id, data, err)
		}
		if back, err := Parse(id.UUID()); back != id || err != nil {
			t.Errorf("UUID of %v: %s, %v, %v", id, id.UUID(), back, err)
		}
		if back, err := Parse(strings.ToUpper(id.UUID())); back != id || err != nil {
			t.Errorf("UUID of %v in upper case: %v, %v", id, back, err)
		}
	}
}

func TestUUIDForm(t *testing.T) {
	id, _ := ParseBase("0123456789ABCDEF0123456789ABCDEF", 16)
	if got := id.UUID(); got != "01234567-89ab-cdef-0123-456789abcdef" {
		t.Error(got)
	}
	for text, at := range map[string]int{
		"":                                        0,
		"01234567-89ab-cdef-0123-456789abcdef ":   0,
		"01234567_89ab-cdef-0123-456789abcdef":    8,
		"01234567-89ab-cdef-0123-456789abcdeg":    35,
		"0123456G-89ab-cdef-0123-456789abcdef":    7,
		"01234567-89ab-cdef-0123-45678\x00abcdef": 29,
	} {
		var where *ParseError
		if id, err := Parse(text); !errors.As(err, &where) || where.At != at || id != (ID{}) {
			t.Errorf("%q: %v, %v, want an error at %d", text, id, err, at)
		}
	}
}

func TestSQL(t *testing.T) {
	id := Make(1_700_000_000_000, 0x020000000001, 7)
	if v, err := id.Value(); v != id.UUID() || err != nil {
		t.Errorf("value %v, %v", v, err)
	}
	for _, src := range []any{id.UUID(), []byte(id.UUID()), id[:], [16]byte(id), id.String(), []byte(id.String())} {
		var got ID
		if err := got.Scan(src); got != id || err != nil {
			t.Errorf("scanned %v: %v, %v", src, got, err)
		}
	}
	for _, src := range []any{1, id[:15], strings.Repeat("0", 36), strings.Repeat("x", 1<<20)} {
		got := id
		if err := got.Scan(src); err == nil || got != id || len(err.Error()) > 250 {
			t.Errorf("scanned %T: %v, %v", src, got, err)
		}
	}
}

func FuzzUUID(f *testing.F) {
	f.Add(ID{}.UUID())
	f.Add("01234567-89ab-CDEF-0123-456789abcdef")
	f.Fuzz(func(t *testing.T, text string) {
		if id, err := Parse(text); err == nil && len(text) == uuidLen && id.UUID() != strings.ToLower(text) {
			t.Errorf("%q comes back as %q", text, id.UUID())
		}
	})
}

func FuzzScan(f *testing.F) {
	id := Make(1_700_000_000_000, 1, 7)
	f.Add([]byte(id.UUID()))
	f.Add([]byte(id.String()))
	f.Add(id[:])
	f.Fuzz(func(t *testing.T, src []byte) {
		var id ID
		if err := id.Scan(src); err != nil {
			return
		}
		if s := string(src); s != string(id[:]) && s != id.String() && strings.ToLower(s) != id.UUID() {
			t.Errorf("%q is taken for %v", src, id)
		}
	})
}
