package mark

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
)

// The file is two slots of equal size. Each has a header, the content as JSON, and padding:
//
//	flake-mark 1 17 4096 00c0ffee00c0ffee a1352394
//	|          | |  |    |                |
//	|          | |  |    |                CRC-32C of the rest of the slot, 8 hexadecimal digits
//	|          | |  |    writer: a random number of the [File] that saved it, 16 hexadecimal digits
//	|          | |  size of the slot, in bytes
//	|          | sequence: 1 at first, and higher with each save
//	|          version of the format
//	the magic
//	{"marks":{"orders":{"milli":1700000000000,"latest":1700000000000,"words":[0,1]}}}
//
// The padding is spaces. The header, the content and the padding each end with a line feed. A save
// writes the same to both slots. If they differ, the intact one with the highest sequence is
// current. Content has only one encoding: a slot that differs from it in any byte is not intact.
const (
	magic   = "flake-mark "
	version = 1

	// Max is the highest possible mark, in the year 6429: the last millisecond that a
	// generator can use.
	Max = 1<<47 - 2

	// MaxWords is the maximum number of words in a mark.
	MaxWords = 6

	// The size of a slot is a multiple of block, so that the two slots never share a block
	// on the disk.
	block = 4096

	// maxSize is the limit on the size of a file: enough for thousands of marks.
	maxSize = 1 << 23
)

// Content is the content of a file.
type Content struct {
	Marks   map[string]Mark   `json:"marks,omitempty"` // by name; a mark without a name has the empty name
	Number  *Number           `json:"number,omitempty"`
	Workers map[string]Worker `json:"workers,omitempty"` // by name
}

// Mark is the mark of a generator.
type Mark struct {
	Milli  uint64   `json:"milli"`           // an upper bound on ids, in ms since 1970-01-01 UTC; at most Max
	Latest uint64   `json:"latest"`          // an upper bound on all ids ever made under this name; Milli may be lower
	Words  []uint64 `json:"words,omitempty"` // the caller's; at most MaxWords
}

// Number is a claimed number of a store, as package workers describes.
type Number struct {
	Cluster    string `json:"cluster"`
	Prefix     string `json:"prefix"`
	Number     uint64 `json:"number"`
	Generation uint64 `json:"generation"`
	Token      uint64 `json:"token"`
	After      uint64 `json:"after"`
	Floor      uint64 `json:"floor"`
	Mark       uint64 `json:"mark"` // the highest mark that may have been written for it
}

// Worker is a random worker id and, if known, the id of the machine that drew it.
type Worker struct {
	Worker  uint64 `json:"worker"`
	Machine string `json:"machine,omitempty"`
}

// An image is the bytes of a file and the position of its current slot.
type image struct {
	data     []byte // nil if the file does not exist
	size     int    // the size of a slot
	slot     int    // the current slot, 0 or 1
	sequence uint64 // the sequence of the current slot
	damaged  bool   // whether the other slot is not intact
}

func (m image) at(i int) []byte { return m.data[i*m.size:][:m.size] }

// in reports whether the current slot is in data, a file of the same size.
func (m image) in(data []byte) bool {
	return len(data) == len(m.data) && bytes.Equal(data[m.slot*m.size:][:m.size], m.at(m.slot))
}

// has reports whether data is one of the slots.
func (m image) has(data []byte) bool {
	return bytes.Equal(data, m.at(0)) || bytes.Equal(data, m.at(1))
}

// next returns the image after m, which has text in both slots, and whether its slots have the
// same size as those of m. If not, they are larger, and have room to grow.
func (m image) next(writer uint64, text []byte) (next image, fits bool) {
	const header = 80
	slot := newSlot(m.sequence+1, writer, text, m.size)
	if fits = len(slot) == m.size; !fits {
		size := max(m.size, (2*(len(text)+header)/block+1)*block)
		slot = newSlot(m.sequence+1, writer, text, size)
	}
	return image{data: bytes.Repeat(slot, 2), size: len(slot), sequence: m.sequence + 1}, fits
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(parts ...[]byte) (sum uint32) {
	for _, part := range parts {
		sum = crc32.Update(sum, castagnoli, part)
	}
	return sum
}

// newSlot returns a slot. If text does not fit, the slot is longer than size.
func newSlot(sequence, writer uint64, text []byte, size int) []byte {
	start := fmt.Appendf(nil, "%s%d %d %d %016x ", magic, version, sequence, size, writer)
	rest := fmt.Appendf(nil, "\n%s\n", text)
	if left := size - len(start) - len("00000000") - len(rest); left > 0 {
		rest = append(append(rest, bytes.Repeat([]byte{' '}, left-1)...), '\n')
	}
	return slices.Concat(start, fmt.Appendf(nil, "%08x", checksum(start, rest)), rest)
}

// parseSlot returns what is in a slot, or false if the slot is not intact.
func parseSlot(slot []byte) (sequence, writer uint64, text []byte, ok bool) {
	header, rest, _ := bytes.Cut(slot, []byte{'\n'})
	text, _, _ = bytes.Cut(rest, []byte{'\n'})
	// The comparison detects failures.
	fmt.Sscanf(string(header), magic+"%d %d %d %x", new(int), &sequence, new(int), &writer)
	return sequence, writer, text, bytes.Equal(slot, newSlot(sequence, writer, text, len(slot)))
}

// text returns the content as JSON.
func (c Content) text() []byte {
	text, _ := json.Marshal(c) // cannot fail for these types
	return text
}

var errLarge = fmt.Errorf("it has %d bytes or more", maxSize)

// Parse returns the content of a file, or an error that says what the file is.
func Parse(data []byte) (Content, error) {
	c, _, err := parse(data)
	return c, err
}

// versionError is the error for a file of another version.
type versionError uint64

func (v versionError) Error() string {
	return fmt.Sprintf("its format is version %d, and this program reads version %d", uint64(v), version)
}

func parse(data []byte) (c Content, m image, err error) {
	switch {
	case len(data) == 0:
		return c, m, errors.New("it is empty")
	case len(data) >= maxSize:
		return c, m, errLarge
	}
	if len(data)%(2*block) == 0 {
		var text []byte
		intact := 0
		for i := range 2 {
			one := image{data: data, size: len(data) / 2, slot: i}
			sequence, _, its, ok := parseSlot(one.at(i))
			if !ok {
				continue
			}
			intact++
			if one.sequence = sequence; sequence > m.sequence {
				m, text = one, its
			}
		}
		if m.data != nil {
			if m.damaged = intact < 2; !m.damaged && m.contradicts() {
				return c, m, errors.New("two nodes have written to it at the same time")
			}
			c, err = parseContent(text)
			return c, m, err
		}
	}
	return c, m, describe(data)
}

// contradicts reports whether both slots are current. Each is then from another process, and only
// one of the two has saved it in both slots.
func (m image) contradicts() bool {
	other, _, _, _ := parseSlot(m.at(1 - m.slot))
	return other == m.sequence && !bytes.Equal(m.at(0), m.at(1))
}

// parseContent parses the content of an intact slot.
func parseContent(text []byte) (c Content, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return Content{}, fmt.Errorf("it was written by a later version of this program (%w)", err)
	}
	if !bytes.Equal(c.text(), text) {
		return Content{}, errors.New("it is damaged: its content is not in the canonical form")
	}
	for name, m := range c.Marks {
		if m.Milli > m.Latest || m.Latest > Max || len(m.Words) > MaxWords {
			return Content{}, fmt.Errorf("it is damaged: the mark of %q is impossible", name)
		}
	}
	return c, nil
}

// describe returns an error that says what data without an intact slot is.
func describe(data []byte) error {
	rest, ours := bytes.CutPrefix(data, []byte(magic))
	switch {
	case bytes.HasPrefix(data[min(len(data), 4):], []byte{0, 0xab, 0xcd, 0xef}): // the cookie of dets
		return errDets
	case !ours:
		return fmt.Errorf("it is not a mark: it begins with %q", data[:min(len(data), 24)])
	}
	number, _, _ := bytes.Cut(rest, []byte{' '})
	if v, err := strconv.ParseUint(string(number), 10, 32); err == nil && v != version {
		return versionError(v)
	}
	return errors.New("it is damaged: the checksums of both halves are wrong")
}

// errDets means that the file was written by the Erlang server; "flake import" reads it.
var errDets = errors.New("it is the dets file of boundary/flake, the Erlang server")
