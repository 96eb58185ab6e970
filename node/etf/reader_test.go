package etf

import (
	"errors"
	"math"
	"testing"
)

func TestReaderValues(t *testing.T) {
	for _, n := range []int64{0, 1, 255, 256, -1, math.MaxInt32, math.MaxInt32 + 1, math.MinInt32, math.MinInt32 - 1,
		math.MaxInt64, math.MinInt64} {
		r := NewReader(AppendInt(nil, n))
		if got := r.Int(); got != n || r.Finish() != nil {
			t.Errorf("Int: %d, %v, want %d", got, r.Err(), n)
		}
	}
	for _, n := range []uint64{0, 255, 1 << 31, math.MaxInt64, 1 << 63, math.MaxUint64} {
		r := NewReader(AppendUint64(nil, n))
		if got := r.Uint64(); got != n || r.Finish() != nil {
			t.Errorf("Uint64: %d, %v, want %d", got, r.Err(), n)
		}
		if n <= math.MaxInt64 && string(AppendUint64(nil, n)) != string(AppendInt(nil, int64(n))) {
			t.Errorf("AppendUint64: %x for %d", AppendUint64(nil, n), n)
		}
	}
	r := NewReader([]byte("j" + "k\x00\x02ab" + "m\x00\x00\x00\x01c" + "s\x02\xe9a" + "t\x00\x00\x00\x01jj" +
		"n\x01\x01\x00"))
	r.Nil()
	if s := r.StringExt(); string(s) != "ab" {
		t.Errorf("string %q", s)
	}
	if b := r.Binary(); string(b) != "c" {
		t.Errorf("binary %q", b)
	}
	if a := r.Atom(); string(a) != "éa" {
		t.Errorf("atom %q", a)
	}
	if n := r.Map(); n != 1 {
		t.Errorf("%d pairs", n)
	}
	r.Nil()
	r.Nil()
	r.Uint64() // -0
	if err := r.Finish(); err != nil {
		t.Error(err)
	}
}

func TestReaderErrors(t *testing.T) {
	for _, test := range []struct {
		name string
		src  string
		read func(r *Reader)
		want string
	}{
		{"empty", "", func(r *Reader) { r.Raw() }, "etf: byte 0: truncated"},
		{"no version", "\x70", (*Reader).Version, "etf: byte 0: NEW_FUN_EXT: no version byte"},
		{"trailing", "jj", (*Reader).Nil, "etf: byte 1: NIL_EXT: trailing bytes"},
		{"tuple", "aj", func(r *Reader) { r.Tuple() }, "etf: byte 0: SMALL_INTEGER_EXT: not a tuple"},
		{"list", "j", func(r *Reader) { r.ListHeader() }, "etf: byte 0: NIL_EXT: not a list"},
		{"nil", "a", (*Reader).Nil, "etf: byte 0: SMALL_INTEGER_EXT: not the empty list"},
		{"map", "j", func(r *Reader) { r.Map() }, "etf: byte 0: NIL_EXT: not a map"},
		{"binary", "j", func(r *Reader) { r.Binary() }, "etf: byte 0: NIL_EXT: not a binary"},
		{"string", "j", func(r *Reader) { r.StringExt() }, "etf: byte 0: NIL_EXT: not a string"},
		{"atom", "j", func(r *Reader) { r.Atom() }, "etf: byte 0: NIL_EXT: not an atom"},
		{"int", "j", func(r *Reader) { r.Int() }, "etf: byte 0: NIL_EXT: not an integer"},
		{"int of 2^63", "n\x08\x00\x00\x00\x00\x00\x00\x00\x00\x80", func(r *Reader) { r.Int() },
			"etf: byte 0: SMALL_BIG_EXT: integer out of range"},
		{"int of -2^63-1", "n\x08\x01\x01\x00\x00\x00\x00\x00\x00\x80", func(r *Reader) { r.Int() },
			"etf: byte 0: SMALL_BIG_EXT: integer out of range"},
		{"uint64 of 2^64", "n\x09\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01", func(r *Reader) { r.Uint64() },
			"etf: byte 0: SMALL_BIG_EXT: integer out of range"},
		{"uint64 of -1", "b\xff\xff\xff\xff", func(r *Reader) { r.Uint64() },
			"etf: byte 0: INTEGER_EXT: integer out of range"},
		{"pid", "h\x01j", func(r *Reader) { r.Tuple(); r.Pid() }, "etf: byte 2: NIL_EXT: not a pid"},
		{"reference", "j", func(r *Reader) { r.Ref() }, "etf: byte 0: NIL_EXT: not a reference"},
		{"pid of no node", "Xj", func(r *Reader) { r.Pid() }, "etf: byte 1: NIL_EXT: not an atom"},
		{"pid cut", "Xw\x01a\x00", func(r *Reader) { r.Pid() }, "etf: byte 0: NEW_PID_EXT: truncated"},
		{"after a leaf", "h\x03a\x01a", func(r *Reader) { r.Raw() }, "etf: byte 2: SMALL_INTEGER_EXT: truncated"},
		{"elements", "h\x03jj", func(r *Reader) { r.Tuple() }, "etf: byte 0: SMALL_TUPLE_EXT: count exceeds the bytes left"},
		{"pairs", "t\x00\x00\x00\x02jjj", func(r *Reader) { r.Map() }, "etf: byte 0: MAP_EXT: count exceeds the bytes left"},
		{"second element", "h\x02a\x01w\x05a", func(r *Reader) { r.Tuple(); r.Int(); r.Atom() },
			"etf: byte 4: SMALL_ATOM_UTF8_EXT: truncated"},
	} {
		r := NewReader([]byte(test.src))
		test.read(&r)
		var syntax *syntaxError
		if err := r.Finish(); !errors.As(err, &syntax) || err.Error() != test.want {
			t.Errorf("%s: %v, want %s", test.name, err, test.want)
		}
	}
}

func TestFirstFailureSticks(t *testing.T) {
	r := NewReader([]byte("ja\x05w\x01am\x00\x00\x00\x00"))
	r.Int()
	first := r.Err()
	r.Version()
	r.Nil()
	got := []any{r.Tuple(), r.ListHeader(), r.Map(), len(r.Atom()), r.Int(), r.Uint64(), len(r.Raw()), len(r.Pid()),
		len(r.Ref()), len(r.Binary()), len(r.Rest()), r.Peek()}
	for i, v := range []any{0, 0, 0, 0, int64(0), uint64(0), 0, 0, 0, 0, 0, Tag(0)} {
		if got[i] != v {
			t.Errorf("%d: %v after a failure", i, got[i])
		}
	}
	if err := r.Finish(); first == nil || err.Error() != first.Error() {
		t.Errorf("the first error is %v, the last %v", first, err)
	}
}
