package mark

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"strings"
	"time"
)

// The file is two slots of one size. A save writes the one that does not hold what was saved
// last, so a write that is torn changes nothing. What counts is the slot with the higher
// sequence. A slot is text, with spaces up to its end:
//
//	flake-mark 4 17 4096 532bb895
//	|          | |  |    |
//	|          | |  |    CRC-32C of all before it and of the line that follows
//	|          | |  the size of a slot
//	|          | the sequence, which tells which slot it is by its lowest bit
//	|          version of the format
//	what it is
//	{"marks":{"":{"milli":1700000000000}}}
const (
	magic   = "flake-mark "
	version = "4"

	// Max is the highest mark, in the year 6429: the last millisecond that a
	// generator has.
	Max = 1<<47 - 2

	// MaxWords is how many words a mark may have.
	MaxWords = 6

	// maxSize is more than thousands of marks take, and all that is read of a file.
	maxSize = 1 << 20

	block = 4096 // a slot is some of these
	slack = 512  // bytes that a slot has left when its file is made, for what becomes longer
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Content is what a file keeps.
type Content struct {
	Marks   map[string]Mark   `json:"marks"` // by name; one that is alone has the empty one
	Number  *Number           `json:"number,omitempty"`
	Workers map[string]Worker `json:"workers,omitempty"` // by the name of the mark
}

// Mark is that of a generator. Times are milliseconds since 1970-01-01 UTC, up to Max.
type Mark struct {
	Milli  uint64   `json:"milli"`
	Latest uint64   `json:"latest,omitempty"` // that of earlier passes through time, if it is later
	Words  []uint64 `json:"words,omitempty"`  // what else the generator keeps, up to MaxWords
}

// Number is a number that a store has dealt out: see package workers.
type Number struct {
	Cluster    string `json:"cluster,omitempty"` // of the store, if it tells
	Prefix     string `json:"prefix"`            // of its keys
	Number     uint64 `json:"number"`
	Generation uint64 `json:"generation"`
	Token      uint64 `json:"token"`
	After      uint64 `json:"after"` // ids are later
	Floor      uint64 `json:"floor"` // the nonce of the one that the claim knew
	Mark       uint64 `json:"mark"`  // the highest that may have been written
}

// Worker is a worker that was made up.
type Worker struct {
	Worker  uint64 `json:"worker"`
	Machine string `json:"machine,omitempty"` // what tells the machine from others
}

// slot returns the slot of a content, or nil if that is longer than size.
func (c Content) slot(sequence uint64, size int) []byte {
	body, err := json.Marshal(c)
	if err != nil {
		panic(err) // it is numbers and strings
	}
	head := fmt.Appendf(nil, "%s%s %d %d ", magic, version, sequence, size)
	text := fmt.Appendf(head, "%08x\n%s\n", sum(head, body), body)
	if len(text) > size {
		return nil
	}
	return append(text, bytes.Repeat([]byte{' '}, size-len(text))...)
}

func sum(head, body []byte) uint32 {
	return crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, body)
}

// file returns a whole file with one slot in use.
func (c Content) file(sequence uint64) []byte {
	size := block
	for c.slot(sequence, size-slack) == nil {
		size += block
	}
	data := bytes.Repeat([]byte{' '}, 2*size)
	copy(data[offset(sequence, size):], c.slot(sequence, size))
	return data
}

func offset(sequence uint64, size int) int64 { return int64(sequence%2) * int64(size) }

var errSum = errors.New("it is damaged: its checksum does not fit")

// parseSlot reads a slot.
func parseSlot(data []byte) (c Content, sequence uint64, err error) {
	head, rest, _ := bytes.Cut(data, []byte{'\n'})
	body, _, _ := bytes.Cut(rest, []byte{'\n'})
	var size int
	var want uint32
	if n, _ := fmt.Sscanf(string(head), magic+version+" %d %d %x", &sequence, &size, &want); n != 3 || size != len(data) {
		return c, 0, errSum
	}
	if summed := head[:bytes.LastIndexByte(head, ' ')+1]; sum(summed, body) != want || string(head) != fmt.Sprintf("%s%08x", summed, want) {
		return c, 0, errSum
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return c, sequence, fmt.Errorf("a later version of this program wrote it: %w", err)
	}
	return c, sequence, c.check()
}

func (c Content) check() error {
	for name, m := range c.Marks {
		if m.Milli > Max || m.Latest > Max || len(m.Words) > MaxWords {
			return fmt.Errorf("it is damaged: the mark %q cannot be", name)
		}
	}
	return nil
}

// Parse reads a file of marks, of any version up to this one, or says what else it is.
func Parse(data []byte) (Content, error) {
	c, _, err := parse(data)
	return c, err
}

// parse returns the sequence too; 0: the file is of a version before.
func parse(data []byte) (c Content, sequence uint64, err error) {
	rest, ok := strings.CutPrefix(string(data), magic)
	number, rest, _ := strings.Cut(rest, " ")
	switch {
	case len(data) == 0:
		return c, 0, errors.New("it is empty")
	case len(data) >= maxSize:
		return c, 0, fmt.Errorf("it has %d bytes or more", maxSize)
	case ok && slices.Contains([]string{"1", "2", "3"}, number):
		c, err = parseText(data, rest, number == "3")
		return c, 0, err
	case len(data)%(2*block) == 0:
		first, one, firstErr := parseSlot(data[:len(data)/2])
		second, two, secondErr := parseSlot(data[len(data)/2:])
		if firstErr != errSum && (secondErr == errSum || one > two) {
			return first, one, firstErr
		}
		if secondErr != errSum {
			return second, two, secondErr
		}
	}
	switch {
	case !ok && !bytes.Contains(data, []byte(magic+version)): // it may be in the second slot
		return c, 0, foreign(data)
	case ok && number != version:
		return c, 0, fmt.Errorf("it is of version %.20s of its format, and this program knows versions 1 to %s", number, version)
	}
	return c, 0, errSum
}

// parseText reads a file of versions 1 to 3, which are a line for each mark:
//
//	flake-mark 1 1700000000000 2023-11-14T22:13:20.000Z d0ddde30
//
// with the mark in milliseconds, again for people, and the CRC-32C of all before it. Version 2
// has words before the sum. Version 3 has a name before each mark, and the sum in a line of
// its own:
//
//	flake-mark 3 by name
//	 1700000000000 2023-11-14T22:13:20.000Z
//	orders 1700000000000 2023-11-14T22:13:20.000Z 0 1
//	orders/worker 0 1970-01-01T00:00:00.000Z 2199023255553
//	532bb895
func parseText(data []byte, rest string, named bool) (c Content, err error) {
	const tail = len("00000000\n")
	var want uint32
	if end := len(data) - tail; end < 0 || data[len(data)-1] != '\n' {
		return c, errSum
	} else if _, err := fmt.Sscanf(string(data[end:]), "%08x\n", &want); err != nil || crc32.Checksum(data[:end], castagnoli) != want {
		return c, errSum
	}
	rest = rest[:len(rest)-tail]
	lines := []string{" " + strings.TrimSuffix(rest, " ")}
	if named {
		_, rest, _ = strings.Cut(rest, "\n")
		lines = strings.Split(strings.TrimSuffix(rest, "\n"), "\n")
	}
	c.Marks = map[string]Mark{}
	for _, line := range lines {
		name, fields, _ := strings.Cut(line, " ")
		m, err := parseFields(strings.Fields(fields))
		if err != nil {
			return c, err
		}
		if of, ok := strings.CutSuffix(name, "/worker"); ok && len(m.Words) == 1 {
			if c.Workers == nil {
				c.Workers = map[string]Worker{}
			}
			c.Workers[of] = Worker{Worker: m.Words[0]}
			continue
		}
		c.Marks[name] = m
	}
	return c, c.check()
}

// parseFields reads a mark. The words of sno, which alone had some, have the latest time of
// its ids among them; all others are less.
func parseFields(fields []string) (m Mark, err error) {
	for i, field := range fields {
		var word uint64
		switch n, err := fmt.Sscanf(field, "%d", &word); {
		case i == 1: // the time for people
			continue
		case n != 1 || err != nil || len(m.Words) == MaxWords:
			return m, fmt.Errorf("it is damaged: %.40q stands where a number belongs", field)
		case i == 0:
			m.Milli = word
		default:
			m.Words = append(m.Words, word)
		}
	}
	for _, word := range m.Words {
		m.Latest = max(m.Latest, min(word, Max))
	}
	return m, nil
}

// errDets is a file of the Erlang server, which flake import reads.
var errDets = errors.New("it is the dets file of boundary/flake, the Erlang server")

// foreign tells what a file that is no mark is: perhaps the dets file of the Erlang server, with its cookie at byte 4,
// or an integer in the External Term Format (131, 110, length, sign, little-endian), which has 6 bytes for any time
// since 2004.
func foreign(data []byte) error {
	if len(data) > 8 && bytes.Equal(data[4:8], []byte{0, 0xab, 0xcd, 0xef}) {
		return errDets
	}
	if number, ok := bytes.CutPrefix(data, []byte{131, 110, 6, 0}); ok && len(number) == 6 {
		milli := binary.LittleEndian.Uint64(append(number, 0, 0))
		last := time.UnixMilli(int64(min(milli, math.MaxInt64))).UTC().Format(time.RFC3339)
		return fmt.Errorf("it is the Erlang server's, which last wrote it at %s", last)
	}
	return fmt.Errorf("it is not a mark: it begins with %q", data[:min(len(data), 24)])
}
