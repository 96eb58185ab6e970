package mark

import (
	"strings"
	"testing"
	"time"
)

func TestFormat(t *testing.T) {
	// As documented in format.go; another program made the sum.
	want := "flake-mark 1 1700000000000 2023-11-14T22:13:20.000Z d0ddde30\n"
	if got := string(appendMark(nil, 1_700_000_000_000)); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, milli := range []uint64{0, 1, 1_700_000_000_001, Max} {
		data := appendMark(nil, milli)
		if back, err := Parse(data); back != milli || err != nil {
			t.Errorf("%q is %d, %v", data, back, err)
		}
		if len(data) > maxSize {
			t.Errorf("%d bytes, of which %d are read", len(data), maxSize)
		}
	}
	if got := time.UnixMilli(Max).UTC().Year(); got != 6429 {
		t.Errorf("the last mark is of the year %d", got)
	}
}

// Any bit that flips, any byte that is lost or added is seen.
func TestDamageIsSeen(t *testing.T) {
	data := appendMark(nil, 1_700_000_000_000)
	for i := range data {
		for bit := range 8 {
			bad := []byte(string(data))
			bad[i] ^= 1 << bit
			if milli, err := Parse(bad); err == nil {
				t.Errorf("%q is taken for %d", bad, milli)
			}
		}
		if milli, err := Parse(data[:i]); err == nil {
			t.Errorf("%q is taken for %d", data[:i], milli)
		}
	}
	if _, err := Parse(append(data, 0)); err == nil {
		t.Error("a byte more is not seen")
	}
}

func TestParseSaysWhatItIs(t *testing.T) {
	for data, want := range map[string]string{
		"":                                      "empty",
		"\x83n\x06\x00\x00\x68\xe5\xcf\x8b\x01": "the Erlang server's, which last wrote it at 2023-11-14T22:13:20Z",
		"\x83n\x09\x00\x00\x68\xe5\xcf\x8b\x01\x00\x00\x01":            "not a mark",
		"flake-mark 2 whatever comes then":                             "version 2 of its format",
		"flake-mark 1 17000":                                           "cut short",
		"flake-mark 1 x 2023-11-14T22:13:20.000Z 00000000\n":           "time cannot be read",
		"flake-mark 1 140737488355327 6429-10-17T02:45:55.327Z 0000\n": "time cannot be read",
		"flake-mark 1 1700000000000 2023-11-14T22:13:20.000Z 0\n":      "checksum",
		"<html>": `begins with "<html>"`,
	} {
		if milli, err := Parse([]byte(data)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %d, %v, want %q", data, milli, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(appendMark(nil, 0))
	f.Add(appendMark(nil, Max))
	f.Add([]byte("\x83n\x06\x00\x00\x68\xe5\xcf\x8b\x01"))
	f.Add([]byte("flake-mark 2 1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if milli, err := Parse(data); err == nil && string(appendMark(nil, milli)) != string(data) {
			t.Errorf("%q is taken for %d", data, milli)
		}
	})
}
