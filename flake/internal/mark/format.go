package mark

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The file is two slots of equal size. Each has a header, the content as JSON, and padding:
//
//	flake-mark 4 17 4096 1c776ec7
//	|          | |  |    |
//	|          | |  |    CRC-32C of the rest of the slot, 8 hexadecimal digits
//	|          | |  size of the slot, in bytes
//	|          | sequence: 1 at first, and one more with each save
//	|          version of the format
//	the magic
//	{"marks":{"orders":{"milli":1700000000000,"latest":1700000000000,"words":[0,1]}}}
//
// The padding is spaces. The header, the content and the padding each end with a line feed. Of
// the intact slots, the one with the highest sequence is current. Content has only one encoding:
// a slot that differs from it in any byte is not intact.
//
// Parse also reads versions 1 to 3. Versions 1 and 2 have one mark, without a name; version 2 has
// words. Version 3 has several marks:
//
//	flake-mark 1 1700000000000 2023-11-14T22:13:20.000Z d0ddde30
//
//	flake-mark 3 by name
//	 1700000000000 2023-11-14T22:13:20.000Z
//	orders 1700000000000 2023-11-14T22:13:20.000Z 0 1
//	532bb895
const (
	magic   = "flake-mark "
	version = 4

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
	size     int    // the size of a slot; 0 for an earlier version, without slots
	slot     int    // the current slot, 0 or 1
	sequence uint64 // the sequence of the current slot
}

func (m image) at(i int) []byte { return m.data[i*m.size:][:m.size] }

// newImage returns an image that has text in its first slot. The slots have room to grow, and
// their size is at least the given number of bytes.
func newImage(sequence uint64, text []byte, least int) image {
	const header = 64
	size := max(least, (2*(len(text)+header)/block+1)*block)
	data := append(newSlot(sequence, text, size), bytes.Repeat([]byte{' '}, size)...)
	return image{data, size, 0, sequence}
}

// with returns an image that has text in the other slot, or false if text does not fit.
func (m image) with(text []byte) (image, bool) {
	slot := newSlot(m.sequence+1, text, m.size)
	if len(slot) > m.size {
		return image{}, false
	}
	m = image{slices.Clone(m.data), m.size, 1 - m.slot, m.sequence + 1}
	copy(m.at(m.slot), slot)
	return m, true
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(parts ...[]byte) (sum uint32) {
	for _, part := range parts {
		sum = crc32.Update(sum, castagnoli, part)
	}
	return sum
}

// newSlot returns a slot. If text does not fit, the slot is longer than size.
func newSlot(sequence uint64, text []byte, size int) []byte {
	start := fmt.Appendf(nil, "%s%d %d %d ", magic, version, sequence, size)
	rest := fmt.Appendf(nil, "\n%s\n", text)
	if left := size - len(start) - len("00000000") - len(rest); left > 0 {
		rest = append(append(rest, bytes.Repeat([]byte{' '}, left-1)...), '\n')
	}
	return slices.Concat(start, fmt.Appendf(nil, "%08x", checksum(start, rest)), rest)
}

// parseSlot returns the sequence and the content of a slot, or false if the slot is not intact.
func parseSlot(slot []byte) (sequence uint64, text []byte, ok bool) {
	header, rest, _ := bytes.Cut(slot, []byte{'\n'})
	text, _, _ = bytes.Cut(rest, []byte{'\n'})
	fmt.Sscanf(string(header), magic+"%d %d", new(int), &sequence) // the comparison detects failures
	return sequence, text, bytes.Equal(slot, newSlot(sequence, text, len(slot)))
}

// text returns the content as JSON.
func (c Content) text() []byte {
	text, _ := json.Marshal(c) // cannot fail for these types
	return text
}

var errLarge = fmt.Errorf("it has %d bytes or more", maxSize)

// Parse returns the content of a file of any version, or an error that says what the file is.
func Parse(data []byte) (Content, error) {
	c, _, err := parse(data)
	return c, err
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
		for i := range 2 {
			one := image{data, len(data) / 2, i, 0}
			sequence, its, intact := parseSlot(one.at(i))
			if one.sequence = sequence; intact && sequence > m.sequence {
				m, text = one, its
			}
		}
		if m.data != nil {
			c, err = parseContent(text)
			return c, m, err
		}
	}
	c, err = parseEarlier(data)
	return c, image{data: data}, err
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

// parseEarlier parses a file of version 1 to 3. If data is not such a file, the error says what
// it is.
func parseEarlier(data []byte) (c Content, err error) {
	if !bytes.HasPrefix(data, []byte(magic)) {
		return c, foreign(data)
	}
	const sum = 9 // size of the checksum and its line feed
	text := string(data[:max(len(data)-sum, 0)])
	number, rest, _ := strings.Cut(strings.TrimPrefix(text, magic), " ")
	v, err := strconv.ParseUint(number, 10, 32)
	switch {
	case v == version:
		return c, errors.New("it is damaged: the checksums of both halves are wrong")
	case err == nil && (v < 1 || v > version):
		return c, fmt.Errorf("its format is version %d, and this program reads versions 1 to %d", v, version)
	case err != nil || string(data[len(text):]) != fmt.Sprintf("%08x\n", checksum([]byte(text))):
		return c, errors.New("it is damaged: its checksum is wrong")
	case v == 3:
		rest = strings.TrimPrefix(rest, "by name\n")
	default:
		rest = " " + rest // no name
	}
	c = Content{Marks: map[string]Mark{}, Workers: map[string]Worker{}}
	for line := range strings.Lines(rest) {
		name, fields, _ := strings.Cut(line, " ")
		m, err := parseMark(strings.Fields(fields))
		if err != nil {
			return Content{}, err
		}
		if own, found := strings.CutSuffix(name, "/worker"); found && len(m.Words) == 1 {
			c.Workers[own] = Worker{Worker: m.Words[0]}
		} else {
			c.Marks[name] = m
		}
	}
	if len(c.Marks)+len(c.Workers) == 0 {
		return Content{}, errors.New("it has no marks")
	}
	return c, nil
}

// parseMark parses the fields of a mark of version 1 to 3. Latest is the highest of the time and
// the words: if the time of ids was ever set back, one of the words is the time of the latest id,
// and the other words are lower.
func parseMark(fields []string) (m Mark, err error) {
	for i, field := range fields {
		number, wrong := strconv.ParseUint(field, 10, 64)
		switch {
		case i == 1: // the same time as text
			continue
		case i == 0:
			m.Milli = number
		default:
			m.Words = append(m.Words, number)
		}
		err = cmp.Or(err, wrong)
	}
	m.Latest = min(slices.Max(append([]uint64{m.Milli}, m.Words...)), Max)
	if err != nil || len(fields) < 2 || m.Milli > Max || len(m.Words) > MaxWords {
		return m, errors.New("it is damaged: a mark in it cannot be read")
	}
	return m, nil
}

// errDets means that the file was written by the Erlang server; "flake import" reads it.
var errDets = errors.New("it is the dets file of boundary/flake, the Erlang server")

// foreign returns an error that describes data without a mark. The data may be the dets file of
// the Erlang server, which has its cookie at byte 4. It may also be an integer in the External
// Term Format: 131, 110, the length, the sign and the little-endian value, which has 6 bytes for
// any time since 2004.
func foreign(data []byte) error {
	if bytes.HasPrefix(data[min(len(data), 4):], []byte{0, 0xab, 0xcd, 0xef}) {
		return errDets
	}
	if number, ok := bytes.CutPrefix(data, []byte{131, 110, 6, 0}); ok && len(number) == 6 {
		milli := binary.LittleEndian.Uint64(append(number, 0, 0))
		last := time.UnixMilli(int64(milli)).UTC().Format(time.RFC3339)
		return fmt.Errorf("it is a file of the Erlang server, last written at %s", last)
	}
	return fmt.Errorf("it is not a mark: it begins with %q", data[:min(len(data), 24)])
}
