package mark

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func alone(m Mark) Content { return Content{Marks: map[string]Mark{"": m}} }

func written(m Mark) []byte {
	return alone(m).file(1)
}

// Files that versions before have written.
const (
	version1 = "flake-mark 1 1700000000000 2023-11-14T22:13:20.000Z d0ddde30\n"
	version2 = "flake-mark 2 1700000000000 2023-11-14T22:13:20.000Z 0 18446744073709551615 b2d007bd\n"
	version3 = "flake-mark 3 by name\n 1700000000000 2023-11-14T22:13:20.000Z\norders 1700000000000 2023-11-14T22:13:20.000Z 0 1\n532bb895\n"
)

func TestVersionsBefore(t *testing.T) {
	const milli = 1_700_000_000_000
	for text, want := range map[string]Content{
		version1: alone(Mark{Milli: milli}),
		version2: alone(Mark{Milli: milli, Latest: Max, Words: []uint64{0, 1<<64 - 1}}),
		version3: {Marks: map[string]Mark{"": {Milli: milli}, "orders": {Milli: milli, Latest: 1, Words: []uint64{0, 1}}}},
		summed("flake-mark 3 by name\n/worker 0 1970-01-01T00:00:00.000Z 7\na 5 1970-01-01T00:00:00.005Z\na/worker 0 1970-01-01T00:00:00.000Z 8\n"): {
			Marks: map[string]Mark{"a": {Milli: 5}}, Workers: map[string]Worker{"": {Worker: 7}, "a": {Worker: 8}},
		},
	} {
		if got, err := Parse([]byte(text)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
		damage(t, []byte(text))
	}
}

func summed(text string) string { return fmt.Sprintf("%s%08x\n", text, sum([]byte(text), nil)) }

func TestFormat(t *testing.T) {
	for _, c := range []Content{
		{Marks: map[string]Mark{}},
		alone(Mark{Milli: Max, Latest: Max, Words: slices.Repeat([]uint64{1<<64 - 1}, MaxWords)}),
		{
			Marks:   map[string]Mark{"": {}, "a name\nof \"lines\"": {Milli: 1}},
			Number:  &Number{"c", "p q", 1, 2, 1<<64 - 1, 4, 1<<64 - 1, 6},
			Workers: map[string]Worker{"": {1 << 47, "m"}, "a": {}},
		},
	} {
		for sequence := range uint64(4) {
			data := c.file(sequence + 1)
			got, back, err := parse(data)
			if err != nil || back != sequence+1 || len(data)%(2*block) != 0 || !reflect.DeepEqual(got, c) {
				t.Errorf("%q is %+v, %d, %v", data, got, back, err)
			}
		}
	}
	// As documented in format.go; another program made the sum.
	data := written(Mark{Milli: 1_700_000_000_000})
	if want := "flake-mark 4 1 4096 7c4f426d\n{\"marks\":{\"\":{\"milli\":1700000000000}}}\n "; !bytes.HasPrefix(data[block:], []byte(want)) {
		t.Errorf("%q", data[block:block+len(want)])
	}
	if got := time.UnixMilli(Max).UTC().Year(); got != 6429 {
		t.Errorf("the last mark is of the year %d", got)
	}
}

// The slot that was written last counts, and the other if that one is torn.
func TestSlots(t *testing.T) {
	data := written(Mark{Milli: 1})
	for sequence := uint64(2); sequence < 20; sequence++ {
		slot := alone(Mark{Milli: sequence}).slot(sequence, block)
		for cut := 0; cut < len(slot); cut += 7 {
			torn := bytes.Clone(data)
			copy(torn[offset(sequence, block):], slot[:cut])
			c, err := Parse(torn)
			if got := c.Marks[""].Milli; err != nil || got != sequence-1 && got != sequence || cut == 0 && got != sequence-1 {
				t.Fatalf("cut at %d: %d, %v", cut, got, err)
			}
		}
		copy(data[offset(sequence, block):], slot)
		if c, err := Parse(data); err != nil || c.Marks[""].Milli != sequence {
			t.Fatalf("%d: %+v, %v", sequence, c, err)
		}
	}
}

// Any bit of a slot in use that flips, any byte that is lost or added is seen.
func TestDamageIsSeen(t *testing.T) {
	data := written(Mark{Milli: 1_700_000_000_000, Words: []uint64{1, 1_700_000_000_000}})
	text := bytes.TrimRight(data[block:], " ")
	for i := range text {
		for bit := range 8 {
			bad := bytes.Clone(data)
			bad[block+i] ^= 1 << bit
			if c, err := Parse(bad); err == nil {
				t.Errorf("%q is taken for %v", bad[block:block+len(text)], c)
			}
		}
	}
	for _, size := range []int{0, 1, block, 2*block - 1} {
		if c, err := Parse(data[:size]); err == nil {
			t.Errorf("%d bytes of it are taken for %v", size, c)
		}
	}
	if c, err := Parse(append(data, ' ')); err == nil {
		t.Errorf("a byte more: %v", c)
	}
}

func damage(t *testing.T, data []byte) {
	t.Helper()
	for i := range data {
		bad := bytes.Clone(data)
		bad[i] ^= 1
		if c, err := Parse(bad); err == nil {
			t.Errorf("%q is taken for %v", bad, c)
		}
		if c, err := Parse(data[:i]); err == nil {
			t.Errorf("%q is taken for %v", data[:i], c)
		}
	}
	if _, err := Parse(append(bytes.Clone(data), 0)); err == nil {
		t.Error("a byte more is not seen")
	}
}

func TestParseSaysWhatItIs(t *testing.T) {
	later := func(body string) string {
		head := "flake-mark 4 1 4096 "
		slot := fmt.Sprintf("%s%08x\n%s\n", head, sum([]byte(head), []byte(body)), body)
		return strings.Repeat(" ", block) + slot + strings.Repeat(" ", block-len(slot))
	}
	for data, want := range map[string]string{
		"":                                      "empty",
		"\x83n\x06\x00\x00\x68\xe5\xcf\x8b\x01": "the Erlang server's, which last wrote it at 2023-11-14T22:13:20Z",
		"\x83n\x09\x00\x00\x68\xe5\xcf\x8b\x01\x00\x00\x01":        "not a mark",
		"\x83n\x07\x00\x00\x68\xe5\xcf\x8b\x01":                    "not a mark", // cut
		"\x83n\x06\x01\x00\x68\xe5\xcf\x8b\x01":                    "not a mark", // negative
		"\x83n\x06\x00\x00\x68\xe5\xcf\x8b":                        "not a mark",
		"flake-mark 5 whatever comes then":                         "version 5 of its format",
		"flake-mark 4 whatever comes then":                         "checksum",
		"flake-mark 3":                                             "checksum",
		summed("flake-mark 2 17000 1970 1 2 3 4 5 6 7 "):           "a number belongs",
		summed("flake-mark 1 x 2023-11-14T22:13:20.000Z "):         "a number belongs",
		summed("flake-mark 1 140737488355327 6429-10-17T02:45:5 "): "cannot be",
		later(`{"marks":{"":{"milli":1}},"new":1}`):                "a later version",
		later(`{"marks":{"":{"milli":140737488355327}}}`):          "cannot be",
		strings.Repeat("?", 2*block):                               "not a mark",
		strings.Repeat(" ", maxSize):                               "bytes or more",
		"<html>":                                                   `begins with "<html>"`,
	} {
		if c, err := Parse([]byte(data)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, %v, want %q", data, c, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{version1, version2, version3, "\x83n\x06\x00\x00\x68\xe5\xcf\x8b\x01", "flake-mark 2 1"} {
		f.Add([]byte(text))
	}
	f.Add(written(Mark{}))
	f.Add(written(Mark{Milli: Max, Words: []uint64{2, 3}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse(data)
		if err != nil {
			return
		}
		if back, err := Parse(c.file(1)); err != nil || len(back.Marks) != len(c.Marks) {
			t.Errorf("%q is %v, and that %v, %v", data, c, back, err)
		}
	})
}
