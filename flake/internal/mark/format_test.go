package mark

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func alone(m Mark) Marks { return Marks{"": m} }

func TestFormat(t *testing.T) {
	// As documented in format.go; another program made the sum.
	want := "flake-mark 1 1700000000000 2023-11-14T22:13:20.000Z d0ddde30\n"
	if got := string(alone(Mark{Milli: 1_700_000_000_000}).append(nil)); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	want = "flake-mark 2 1700000000000 2023-11-14T22:13:20.000Z 0 18446744073709551615 b2d007bd\n"
	if got := string(alone(Mark{1_700_000_000_000, []uint64{0, 1<<64 - 1}}).append(nil)); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	want = "flake-mark 3 by name\n 1700000000000 2023-11-14T22:13:20.000Z\norders 1700000000000 2023-11-14T22:13:20.000Z 0 1\n532bb895\n"
	if got := string(Marks{"orders": {1_700_000_000_000, []uint64{0, 1}}, "": {Milli: 1_700_000_000_000}}.append(nil)); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, m := range []Mark{
		{Milli: 0}, {Milli: 1}, {Milli: 1_700_000_000_001}, {Milli: Max},
		{Milli: 1, Words: []uint64{0}},
		{Milli: Max, Words: slices.Repeat([]uint64{1<<64 - 1}, MaxWords)},
	} {
		for _, marks := range []Marks{alone(m), {"": m, "a": m}, {"a": m, "b": {}}, {"a": m}} {
			data := marks.append(nil)
			if back, err := Parse(data); !reflect.DeepEqual(back, marks) || err != nil {
				t.Errorf("%q is %v, %v", data, back, err)
			}
		}
	}
	if got := time.UnixMilli(Max).UTC().Year(); got != 6429 {
		t.Errorf("the last mark is of the year %d", got)
	}
}

// Any bit that flips, any byte that is lost or added is seen.
func TestDamageIsSeen(t *testing.T) {
	m, wordy := Mark{Milli: 1_700_000_000_000}, Mark{1_700_000_000_000, []uint64{1, 1_700_000_000_000}}
	for _, marks := range []Marks{alone(m), alone(wordy), {"": m, "events": wordy, "orders": m}} {
		damage(t, marks.append(nil))
	}
}

func damage(t *testing.T, data []byte) {
	for i := range data {
		for bit := range 8 {
			bad := []byte(string(data))
			bad[i] ^= 1 << bit
			if m, err := Parse(bad); err == nil {
				t.Errorf("%q is taken for %v", bad, m)
			}
		}
		if m, err := Parse(data[:i]); err == nil {
			t.Errorf("%q is taken for %v", data[:i], m)
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
		"\x83n\x07\x00\x00\x68\xe5\xcf\x8b\x01":                        "not a mark", // cut
		"\x83n\x06\x01\x00\x68\xe5\xcf\x8b\x01":                        "not a mark", // negative
		"\x83n\x06\x00\x00\x68\xe5\xcf\x8b":                            "not a mark",
		"flake-mark x 17000 1970 0":                                    "checksum",
		"flake-mark 4 whatever comes then":                             "version 4 of its format",
		"flake-mark 3 by name\na 17000 1970-01-01T00:00:17.000Z\n":     "checksum",
		"flake-mark 3 by name\na 17000\n0\n":                           "cut short",
		"flake-mark 3 by name\n09758753\n":                             "no marks",
		"flake-mark 3":                                                 "checksum",
		"flake-mark 2 17000 1970 x 0":                                  "beside its time",
		"flake-mark 2 17000 1970 1 2 3 4 5 6 7 0":                      "beside its time",
		"flake-mark 1 17000":                                           "cut short",
		"flake-mark 1 x 2023-11-14T22:13:20.000Z 00000000\n":           "time cannot be read",
		"flake-mark 1 140737488355327 6429-10-17T02:45:55.327Z 0000\n": "time cannot be read",
		"flake-mark 1 1700000000000 2023-11-14T22:13:20.000Z 0\n":      "checksum",
		"<html>": `begins with "<html>"`,
	} {
		if m, err := Parse([]byte(data)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v, want %q", data, m, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(alone(Mark{}).append(nil))
	f.Add(alone(Mark{Milli: Max}).append(nil))
	f.Add(alone(Mark{1, []uint64{2, 3}}).append(nil))
	f.Add(Marks{"": {}, "orders": {1, []uint64{2, 3}}}.append(nil))
	f.Add([]byte("\x83n\x06\x00\x00\x68\xe5\xcf\x8b\x01"))
	f.Add([]byte("flake-mark 2 1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if m, err := Parse(data); err == nil && string(m.append(nil)) != string(data) {
			t.Errorf("%q is taken for %v", data, m)
		}
	})
}
