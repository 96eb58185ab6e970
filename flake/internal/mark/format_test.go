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

// writer is the number of another process.
const writer = 0xC0FFEE00C0FFEE

// imageOf returns the image of a new file.
func imageOf(t testing.TB, c Content) image {
	t.Helper()
	return image{}.saving(t, c)
}

// saving returns the image after saving the contents, one after another.
func (m image) saving(t testing.TB, all ...Content) image {
	t.Helper()
	for _, c := range all {
		next, fits := m.next(writer, c.text())
		if !fits && m.data != nil {
			t.Fatal("the content does not fit")
		}
		m = next
	}
	return m
}

// half returns the image after a save of c that ended after one slot.
func (m image) half(t testing.TB, slot int, c Content) image {
	t.Helper()
	next := m.saving(t, c)
	copy(next.at(1-slot), m.at(1-slot))
	next.slot = slot
	return next
}

func fileOf(t testing.TB, milli uint64) []byte { return imageOf(t, alone(milli)).data }

func TestFormat(t *testing.T) {
	// As documented in format.go; the checksum is from another program.
	c := Content{Marks: map[string]Mark{"orders": {1_700_000_000_000, 1_700_000_000_000, []uint64{0, 1}}}}
	want := "flake-mark 1 17 4096 00c0ffee00c0ffee a1352394\n" +
		`{"marks":{"orders":{"milli":1700000000000,"latest":1700000000000,"words":[0,1]}}}` + "\n"
	got := string(newSlot(17, writer, c.text(), 4096))
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
		for _, m := range []image{m, m.half(t, 0, c), m.half(t, 1, c)} {
			back, again, err := parse(m.data)
			if !reflect.DeepEqual(back, c) || !reflect.DeepEqual(again, m) || err != nil {
				t.Errorf("%v is read as %v, %v", c, back, err)
			}
		}
	}
}

// damaged returns the content of a file, or fails.
func damaged(t *testing.T, data []byte) Content {
	t.Helper()
	c, m, err := parse(data)
	if err != nil || !m.damaged {
		t.Fatalf("%v, %v, damaged %v", c, err, m.damaged)
	}
	return c
}

// A single bit that flips in a slot is detected, and the other slot has the same content.
func TestFlips(t *testing.T) {
	m := imageOf(t, alone(1000)).saving(t, alone(2000), alone(3000))
	for slot := range 2 {
		t.Run(fmt.Sprint(slot), func(t *testing.T) {
			t.Parallel()
			data := bytes.Clone(m.data)
			for bit := range m.size * 8 {
				at, mask := slot*m.size+bit/8, byte(1)<<(bit%8)
				data[at] ^= mask
				if c := damaged(t, data); !reflect.DeepEqual(c, alone(3000)) {
					t.Fatalf("bit %d of slot %d: %v", bit, slot, c)
				}
				data[at] ^= mask
			}
		})
	}
}

// Whatever happens to one slot, the content is not older than the last that Save returned for. It
// is the same if the slots are swapped.
func TestSlots(t *testing.T) {
	zeros := func([]byte) []byte { return make([]byte, block) }
	first := imageOf(t, alone(1000))
	old := first.saving(t, alone(1500)).at(0)
	older := func([]byte) []byte { return old }
	settled := first.saving(t, alone(2000), alone(3000))
	for name, c := range map[string]struct {
		image
		lost int // the slot that changes
		to   func(slot []byte) []byte
		want uint64
		seen bool
	}{
		"zeros in the first":              {settled, 0, zeros, 3000, true},
		"zeros in the second":             {settled, 1, zeros, 3000, true},
		"an old first":                    {settled, 0, older, 3000, false},
		"an old second":                   {settled, 1, older, 3000, false},
		"half saved, the newer is lost":   {settled.half(t, 0, alone(4000)), 0, zeros, 3000, true},
		"half saved, the older is lost":   {settled.half(t, 0, alone(4000)), 1, zeros, 4000, true},
		"half saved, the newer is lost 2": {settled.half(t, 1, alone(4000)), 1, zeros, 3000, true},
		"half saved, the newer is old":    {settled.half(t, 1, alone(4000)), 1, older, 3000, false},
	} {
		data := bytes.Clone(c.data)
		copy(data[c.lost*block:], c.to(data[c.lost*block:][:block]))
		for range 2 {
			got, m, err := parse(data)
			if got.Marks[""].Milli != c.want || m.damaged != c.seen || err != nil {
				t.Errorf("%s: %v, damaged %v, %v", name, got, m.damaged, err)
			}
			data = append(data[block:], data[:block]...)
		}
	}
	torn := append(make([]byte, block), old...)
	torn[block+20] ^= 1
	if c, err := Parse(torn); err == nil {
		t.Errorf("both slots damaged: %v", c)
	}
	other := image{sequence: settled.sequence - 1}.saving(t, alone(1))
	if c, err := Parse(append(bytes.Clone(settled.at(0)), other.at(1)...)); err == nil ||
		!strings.Contains(err.Error(), "two nodes") {
		t.Errorf("two slots with the same sequence: %v, %v", c, err)
	}
}

// Each sector of a slot may be unwritten. A lost or added byte is detected too.
func TestTornSlots(t *testing.T) {
	before, now := alone(1_700_000_000_000), Content{Marks: map[string]Mark{}}
	for i := range 36 { // several sectors of text
		now.Marks[fmt.Sprint("name", i)] = Mark{Milli: 1, Latest: 1_800_000_000_000}
	}
	older := imageOf(t, before)
	for slot := range 2 {
		m := older.half(t, slot, now)
		for sectors := range 1 << 4 { // bit i is set if sector i was written
			torn := bytes.Clone(m.data)
			for i := range 4 {
				if sector := slot*m.size + i*512; sectors>>i&1 == 0 {
					copy(torn[sector:][:512], older.data[sector:])
				}
			}
			c, got, err := parse(torn)
			want := before
			if sectors == 1<<4-1 {
				want = now
			}
			if !reflect.DeepEqual(c, want) || got.damaged != (sectors > 0 && sectors < 1<<4-1) || err != nil {
				t.Errorf("sectors %b written: %v, %v", sectors, c, err)
			}
		}
		for _, size := range []int{m.size - 1, m.size, m.size + 1, 2*m.size - 1} {
			if c, err := Parse(m.data[:size]); err == nil {
				t.Errorf("the first %d bytes: %v", size, c)
			}
		}
		if c, err := Parse(append(bytes.Clone(m.data), 0)); err == nil {
			t.Errorf("one byte too many: %v", c)
		}
	}
}

// room is the number of bytes of text that fit in a slot of one block, with a sequence of one digit.
const room = block - len("flake-mark 1 2 4096 00c0ffee00c0ffee 00000000\n\n")

// Only the canonical encoding of a slot is accepted, even with a correct checksum.
func TestSlotWrittenOtherwise(t *testing.T) {
	good := newSlot(2, writer, []byte("{}"), block)
	full := newSlot(2, writer, bytes.Repeat([]byte{'x'}, room), block)
	for name, c := range map[string]struct {
		slot     []byte
		old, new string
		intact   bool
	}{
		"as it is":           {good, "", "", true},
		"full":               {full, "", "", true},
		"another magic":      {good, "flake-mark", "flake_mark", false},
		"another version":    {good, "mark 1", "mark 2", false},
		"a sequence of zero": {good, " 2 4096", " 0 4096", true},
		"another size":       {good, "4096", "8192", false},
		"a size with a plus": {good, "4096", "+096", false},
		"a short writer":     {good, " 00c0ffee00c0ffee", " c0ffee00c0ffee", false},
		"other padding":      {good, "    \n", "  x \n", false},
		"two line feeds":     {good, "    \n", "  \n \n", false},
		"no line feed":       {good, "    \n", "     ", false},
		"full, no line feed": {full, "xx\n", "xxx", false},
	} {
		slot := bytes.Replace(c.slot, []byte(c.old), []byte(c.new), 1)
		header, _, _ := bytes.Cut(slot, []byte{'\n'})
		start := header[:len(header)-8]
		copy(header[len(start):], fmt.Sprintf("%08x", checksum(start, slot[len(header):])))
		if _, _, _, intact := parseSlot(slot); intact != c.intact {
			t.Errorf("%s: intact %v", name, intact)
		}
	}
	if c, err := Parse(append(newSlot(0, writer, []byte("{}"), block), good[:block-1]...)); err == nil {
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
		later, fits := m.next(writer, []byte(text))
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
		m, _ := image{size: c.least}.next(writer, bytes.Repeat([]byte{'x'}, c.text))
		if m.size != c.size || len(m.data) != 2*c.size {
			t.Errorf("%d bytes of text: slots of %d, %d in all", c.text, m.size, len(m.data))
		}
	}
	m, _ := image{}.next(writer, nil)
	for n, want := range map[int]bool{room - 1: true, room: true, room + 1: false} {
		next, fits := m.next(writer, bytes.Repeat([]byte{'x'}, n))
		if fits != want || fits != (next.size == m.size) {
			t.Errorf("%d bytes fit: %v, in %d", n, fits, next.size)
		}
		if sequence, its, text, intact := parseSlot(next.at(1)); !intact || sequence != 2 || its != writer || len(text) != n {
			t.Errorf("%d bytes round-trip to %d, %v", n, len(text), intact)
		}
	}
}

func TestParseSaysWhatItIs(t *testing.T) {
	for data, want := range map[string]string{
		"":                                 "empty",
		"flake-mark 1 whatever comes then": "the checksums of both halves are wrong",
		"flake-mark x whatever comes then": "the checksums of both halves are wrong",
		"flake-mark ":                      "the checksums of both halves are wrong",
		"flake-mark 2 whatever comes then": "its format is version 2, and this program reads version 1",
		"flake-mark 0 whatever comes then": "its format is version 0",
		"flake-mark 4":                     "its format is version 4",
		strings.Repeat("flake-mark 1 1 4096\n", 2*block): "the checksums of both halves are wrong",
		strings.Repeat(" ", 2*block):                     "not a mark",
		"<html>":                                         `begins with "<html>"`,
	} {
		if c, err := Parse([]byte(data)); want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, %v, want %q", data[:min(len(data), 60)], c, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(fileOf(f, 0))
	f.Add(imageOf(f, alone(Max)).saving(f, Content{Number: &Number{}, Workers: map[string]Worker{"a": {}}}).data)
	f.Add([]byte("flake-mark 2 1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, m, err := parse(data)
		if err != nil || m.size == 0 {
			return
		}
		_, writer, _, _ := parseSlot(m.at(m.slot))
		if !bytes.Equal(m.at(m.slot), newSlot(m.sequence, writer, c.text(), m.size)) {
			t.Errorf("%q is read as %v", data, c)
		}
	})
}
