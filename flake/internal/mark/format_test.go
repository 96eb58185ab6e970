package mark

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func alone(milli uint64) Content {
	return Content{Marks: map[string]Mark{"": {Milli: milli, Latest: milli}}}
}

// imageOf returns the image of a new file.
func imageOf(t testing.TB, c Content) image {
	t.Helper()
	return newImage(1, c.text(), 0)
}

// saving returns the image after saving the contents, one after another.
func (m image) saving(t testing.TB, all ...Content) image {
	t.Helper()
	for _, c := range all {
		next, fits := m.with(c.text())
		if !fits {
			t.Fatal("the content does not fit")
		}
		m = next
	}
	return m
}

func fileOf(t testing.TB, milli uint64) []byte { return imageOf(t, alone(milli)).data }

func TestFormat(t *testing.T) {
	// As documented in format.go; the checksum is from another program.
	c := Content{Marks: map[string]Mark{"orders": {1_700_000_000_000, 1_700_000_000_000, []uint64{0, 1}}}}
	want := "flake-mark 4 17 4096 1c776ec7\n" +
		`{"marks":{"orders":{"milli":1700000000000,"latest":1700000000000,"words":[0,1]}}}` + "\n"
	got := string(newSlot(17, c.text(), 4096))
	if len(got) != 4096 || strings.TrimRight(got[:4095], " ") != want || got[4095] != '\n' {
		t.Errorf("%q, want %q", got, want)
	}
	if got := time.UnixMilli(Max).UTC().Year(); got != 6429 {
		t.Errorf("the highest mark is in the year %d", got)
	}
}

func TestContentComesBack(t *testing.T) {
	words := slices.Repeat([]uint64{math.MaxUint64}, MaxWords)
	for _, c := range []Content{
		{}, alone(0), alone(1), alone(Max),
		{Marks: map[string]Mark{"a": {1, Max, words}, "": {}, `<">ä`: {Latest: 1}}},
		{Number: &Number{}},
		{
			Number:  &Number{"a", "/b/", math.MaxUint64, 2, 3, 4, 5, 6},
			Workers: map[string]Worker{"": {}, "a": {math.MaxUint64, "somewhere"}},
		},
	} {
		m := imageOf(t, c)
		if len(m.data) != 2*block || m.size != block || m.slot != 0 {
			t.Errorf("%d bytes, %d per slot", len(m.data), m.size)
		}
		m = m.saving(t, alone(7), c)
		back, again, err := parse(m.data)
		if !reflect.DeepEqual(back, c) || !reflect.DeepEqual(again, m) || err != nil {
			t.Errorf("%v is read as %v, %v", c, back, err)
		}
	}
}

// Versions 1 to 3, as earlier releases wrote them.
func TestEarlierVersions(t *testing.T) {
	const at = 1_700_000_000_000
	for text, want := range map[string]Content{
		"flake-mark 1 1700000000000 2023-11-14T22:13:20.000Z d0ddde30\n": alone(at),
		"flake-mark 2 1700000000000 2023-11-14T22:13:20.000Z 0 18446744073709551615 b2d007bd\n": {
			Marks: map[string]Mark{"": {at, Max, []uint64{0, math.MaxUint64}}},
		},
		"flake-mark 3 by name\n 1700000000000 2023-11-14T22:13:20.000Z\norders 1700000000000 " +
			"2023-11-14T22:13:20.000Z 0 1\n532bb895\n": {
			Marks: map[string]Mark{"": {Milli: at, Latest: at}, "orders": {at, at, []uint64{0, 1}}},
		},
		summed("flake-mark 1 140737488355326 6429-10-17T02:45:55.326Z "): alone(Max),
		summed("flake-mark 2 7 1970 1 2 3 4 5 6 "): {Marks: map[string]Mark{"": {7, 7,
			[]uint64{1, 2, 3, 4, 5, 6}}}},
		summed("flake-mark 3 by name\n/worker 0 1970-01-01T00:00:00.000Z 7\na 17000 1970-01-01T00:00:17.000Z 5\n"): {
			Marks:   map[string]Mark{"a": {17000, 17000, []uint64{5}}},
			Workers: map[string]Worker{"": {Worker: 7}},
		},
		summed("flake-mark 3 by name\n/worker 0 1970-01-01T00:00:00.000Z 7\na 17000 1970-01-01T00:00:17.000Z 5 " +
			"18000\na/worker 0 1970-01-01T00:00:00.000Z 8\n"): {
			Marks:   map[string]Mark{"a": {17000, 18000, []uint64{5, 18000}}},
			Workers: map[string]Worker{"": {Worker: 7}, "a": {Worker: 8}},
		},
	} {
		if c, err := Parse([]byte(text)); err != nil || fmt.Sprint(c) != fmt.Sprint(want) {
			t.Errorf("%q is read as %v, %v", text, c, err)
		}
		damage(t, []byte(text))
	}
}

// summed appends the checksum of versions 1 to 3 to text.
func summed(text string) string { return fmt.Sprintf("%s%08x\n", text, checksum([]byte(text))) }

// A flipped bit or an unwritten sector in a slot is detected, and the other slot is then current. A
// lost or added byte is detected too.
func TestDamageIsSeen(t *testing.T) {
	before, now := alone(1_700_000_000_000), Content{Marks: map[string]Mark{}}
	for i := range 36 { // several sectors of text
		now.Marks[fmt.Sprint("name", i)] = Mark{Milli: 1, Latest: 1_800_000_000_000}
	}
	first := imageOf(t, before)
	for _, m := range []image{first.saving(t, now), first.saving(t, before, now)} {
		older := first.saving(t, before)
		if m.slot == 1 {
			older = first
		}
		torn, size := bytes.Clone(m.data), m.size
		at := m.slot * size
		for i := at; i < at+size; i++ {
			torn[i] ^= 1 << (i % 8)
			if c, err := Parse(torn); !reflect.DeepEqual(c, before) || err != nil {
				t.Fatalf("with byte %d damaged: %v, %v", i, c, err)
			}
			torn[i] = m.data[i]
		}
		for sectors := range 1 << 4 { // bit i is set if sector i was written
			torn := bytes.Clone(m.data)
			for i := range 4 {
				if sector := at + i*512; sectors>>i&1 == 0 {
					copy(torn[sector:][:512], older.data[sector:])
				}
			}
			want := before
			if sectors == 1<<4-1 {
				want = now
			}
			if c, err := Parse(torn); !reflect.DeepEqual(c, want) || err != nil {
				t.Errorf("sectors %b written: %v, %v", sectors, c, err)
			}
		}
		torn[20] ^= 1
		torn[size+20] ^= 1
		if c, err := Parse(torn); err == nil || !strings.Contains(err.Error(), "both halves") {
			t.Errorf("both slots damaged: %v, %v", c, err)
		}
		for _, size := range []int{size - 1, size, size + 1, 2*size - 1} {
			if c, err := Parse(m.data[:size]); err == nil {
				t.Errorf("the first %d bytes: %v", size, c)
			}
		}
		if c, err := Parse(append(bytes.Clone(m.data), 0)); err == nil {
			t.Errorf("one byte too many: %v", c)
		}
	}
}

func damage(t *testing.T, data []byte) {
	for i := range data {
		for bit := range 8 {
			bad := bytes.Clone(data)
			bad[i] ^= 1 << bit
			if c, err := Parse(bad); err == nil {
				t.Errorf("%q is read as %v", bad, c)
			}
		}
		if c, err := Parse(data[:i]); err == nil {
			t.Errorf("%q is read as %v", data[:i], c)
		}
	}
	if _, err := Parse(append(bytes.Clone(data), 0)); err == nil {
		t.Error("an additional byte is not detected")
	}
}

// Only the canonical encoding of a slot is accepted, even with a correct checksum.
func TestSlotWrittenOtherwise(t *testing.T) {
	good := newSlot(2, []byte("{}"), block)
	full := newSlot(2, bytes.Repeat([]byte{'x'}, block-len("flake-mark 4 2 4096 00000000\n\n")), block)
	for name, c := range map[string]struct {
		slot     []byte
		old, new string
		intact   bool
	}{
		"as it is":           {good, "", "", true},
		"full":               {full, "", "", true},
		"another magic":      {good, "flake-mark", "flake_mark", false},
		"another version":    {good, "mark 4", "mark 5", false},
		"a sequence of zero": {good, " 2 4096", " 0 4096", true},
		"another size":       {good, "4096", "8192", false},
		"a size with a plus": {good, "4096", "+096", false},
		"other padding":      {good, "    \n", "  x \n", false},
		"two line feeds":     {good, "    \n", "  \n \n", false},
		"no line feed":       {good, "    \n", "     ", false},
		"full, no line feed": {full, "xx\n", "xxx", false},
	} {
		slot := bytes.Replace(c.slot, []byte(c.old), []byte(c.new), 1)
		header, _, _ := bytes.Cut(slot, []byte{'\n'})
		start := header[:len(header)-8]
		copy(header[len(start):], fmt.Sprintf("%08x", checksum(start, slot[len(header):])))
		if _, _, intact := parseSlot(slot); intact != c.intact {
			t.Errorf("%s: intact %v", name, intact)
		}
	}
	if c, err := Parse(append(newSlot(0, []byte("{}"), block), good[:block-1]...)); err == nil {
		t.Errorf("a sequence of zero is read as %v", c)
	}
}

// Content of a later version is refused, even if an older slot is intact.
func TestUnknownField(t *testing.T) {
	m := imageOf(t, alone(1))
	for text, says := range map[string]string{
		`{"marks":{"":{"milli":2,"latest":2}},"more":1}`:      `"more"`,
		`{"marks":{"":{"milli":2,"latest":2,"more":1}}}`:      `"more"`,
		`{"marks":{"":{"milli":2,"latest":"soon"}}}`:          "later version",
		`{"marks":{"":{"latest":2,"milli":2}}}`:               "canonical",
		`{"Marks":{"":{"milli":2,"latest":2}}}`:               "canonical",
		`{"marks":{"":{"milli":2,"latest":2}}} `:              "canonical",
		`{"marks":{"a":{"milli":2,"latest":1}}}`:              `mark of "a"`,
		`{"marks":{"":{"milli":1,"latest":140737488355327}}}`: `mark of ""`,
	} {
		later, fits := m.with([]byte(text))
		if !fits {
			t.Fatal(text)
		}
		if c, err := Parse(later.data); err == nil || !strings.Contains(err.Error(), says) || c.Marks != nil {
			t.Errorf("%s: %v, %v", text, c, err)
		}
	}
}

// A slot has room to grow, is a whole number of blocks, and never shrinks.
func TestSlotSize(t *testing.T) {
	for _, c := range []struct{ text, least, size int }{
		{2, 0, block}, {1900, 0, block}, {2000, 0, 2 * block}, {2, 3 * block, 3 * block}, {20_000, block, 10 * block},
	} {
		m := newImage(1, bytes.Repeat([]byte{'x'}, c.text), c.least)
		if m.size != c.size || len(m.data) != 2*c.size {
			t.Errorf("%d bytes of text: slots of %d, %d in all", c.text, m.size, len(m.data))
		}
	}
	m := newImage(1, nil, 0)
	room := block - len("flake-mark 4 2 4096 00000000\n\n")
	for n, want := range map[int]bool{room - 1: true, room: true, room + 1: false} {
		next, fits := m.with(bytes.Repeat([]byte{'x'}, n))
		if fits != want {
			t.Errorf("%d bytes fit: %v", n, fits)
		}
		if _, text, intact := parseSlot(newSlot(2, bytes.Repeat([]byte{'x'}, n), block)); fits &&
			(!intact || len(text) != n || len(next.data) != 2*block) {
			t.Errorf("%d bytes round-trip to %d, %v", n, len(text), intact)
		}
	}
}

func TestParseSaysWhatItIs(t *testing.T) {
	for data, want := range map[string]string{
		"":                                      "empty",
		"\x83n\x06\x00\x00\x68\xe5\xcf\x8b\x01": "it is a file of the Erlang server, last written at 2023-11-14T22:13:20Z",
		"\x83n\x09\x00\x00\x68\xe5\xcf\x8b\x01\x00\x00\x01": "not a mark",
		"\x83n\x07\x00\x00\x68\xe5\xcf\x8b\x01":             "not a mark", // cut off
		"\x83n\x06\x01\x00\x68\xe5\xcf\x8b\x01":             "not a mark", // negative
		"\x83n\x06\x00\x00\x68\xe5\xcf\x8b":                 "not a mark",
		summed("flake-mark x 17000 1970 "):                  "checksum",
		summed("flake-mark "):                               "checksum",
		"flake-mark 4 whatever comes then":                  "the checksums of both halves are wrong",
		"flake-mark 5 whatever comes then": "its format is version 5, and this program " +
			"reads versions 1 to 4",
		"flake-mark 0 whatever comes then": "its format is version 0",
		"flake-mark 3":                     "checksum",
		"flake-mark 1 1700000000000 2023-11-14T22:13:20.000Z 0\n":        "checksum",
		summed("flake-mark 3 by name\n"):                                 "no marks",
		summed("flake-mark 3 by name\na 17000\n"):                        "cannot be read",
		summed("flake-mark 3 by name\na/worker 0 1970\n"):                "",
		summed("flake-mark 2 17000 1970 x "):                             "cannot be read",
		summed("flake-mark 2 17000 1970 1 2 3 4 5 6 7 "):                 "cannot be read",
		summed("flake-mark 1 17000 "):                                    "cannot be read",
		summed("flake-mark 1 x 2023-11-14T22:13:20.000Z "):               "cannot be read",
		summed("flake-mark 1 140737488355327 6429-10-17T02:45:55.327Z "): "cannot be read",
		strings.Repeat("flake-mark 4 1 4096\n", 2*block):                 "the checksums of both halves are wrong",
		strings.Repeat(" ", 2*block):                                     "not a mark",
		"<html>":                                                         `begins with "<html>"`,
	} {
		if c, err := Parse([]byte(data)); want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, %v, want %q", data[:min(len(data), 60)], c, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(fileOf(f, 0))
	f.Add(imageOf(f, alone(Max)).saving(f, Content{Number: &Number{}, Workers: map[string]Worker{"a": {}}}).data)
	f.Add([]byte("flake-mark 3 by name\n 1700000000000 2023-11-14T22:13:20.000Z\norders 1700000000000 " +
		"2023-11-14T22:13:20.000Z 0 1\n532bb895\n"))
	f.Add([]byte("\x83n\x06\x00\x00\x68\xe5\xcf\x8b\x01"))
	f.Add([]byte("flake-mark 2 1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, m, err := parse(data)
		if err != nil || m.size == 0 {
			return
		}
		if !bytes.Equal(m.at(m.slot), newSlot(m.sequence, c.text(), m.size)) {
			t.Errorf("%q is read as %v", data, c)
		}
	})
}
