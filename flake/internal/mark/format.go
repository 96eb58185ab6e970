package mark

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The file is one line of text:
//
//	flake-mark 1 1700000000000 2023-11-14T22:13:20.000Z d0ddde30
//	|          | |             |                        |
//	|          | |             |                        CRC-32C of all before it,
//	|          | |             |                        8 hexadecimal digits
//	|          | |             the mark again, for people
//	|          | the mark: milliseconds since 1970-01-01 UTC
//	|          version of the format
//	what it is
//
// with single spaces and a line feed at the end. Version 2 has, between the time
// for people and the sum, up to [MaxWords] numbers that a format of ids keeps
// besides; a mark with none is of version 1.
//
// Version 3 has several marks, a line each, with the name before it, sorted. A
// mark without a name begins with the space:
//
//	flake-mark 3 by name
//	 1700000000000 2023-11-14T22:13:20.000Z
//	orders 1700000000000 2023-11-14T22:13:20.000Z 0 1
//	532bb895
//
// There is one way to write marks: a file that differs from it by a byte is
// corrupt.
const (
	magic  = "flake-mark "
	plain  = "1"
	wordy  = "2"
	named  = "3"
	header = named + " by name\n"

	// Max is the highest mark, in the year 6429: the last millisecond that a
	// generator has.
	Max = 1<<47 - 2

	// MaxWords is how many words a mark may have.
	MaxWords = 6

	// maxSize is more than thousands of marks take, and all that is read of a file.
	maxSize = 1 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Mark is what a file keeps.
type Mark struct {
	Milli uint64   // milliseconds since 1970-01-01 UTC, up to Max
	Words []uint64 // what else, up to MaxWords; nil if there are none
}

// Marks are what a file keeps, by name. A name has no space in it; a mark that is
// alone in its file has the empty one.
type Marks map[string]Mark

// append appends the file for marks.
func (m Marks) append(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, magic...)
	if own, ok := m[""]; ok && len(m) == 1 {
		version := plain
		if len(own.Words) > 0 {
			version = wordy
		}
		dst = append(own.append(append(dst, version...)), ' ')
	} else {
		dst = append(dst, header...)
		for _, name := range slices.Sorted(maps.Keys(m)) {
			dst = append(m[name].append(append(dst, name...)), '\n')
		}
	}
	return fmt.Appendf(dst, "%08x\n", crc32.Checksum(dst[start:], castagnoli))
}

// append appends the fields of a mark, a space before each.
func (m Mark) append(dst []byte) []byte {
	dst = strconv.AppendUint(append(dst, ' '), m.Milli, 10)
	dst = time.UnixMilli(int64(m.Milli)).UTC().AppendFormat(dst, " 2006-01-02T15:04:05.000Z")
	for _, word := range m.Words {
		dst = strconv.AppendUint(append(dst, ' '), word, 10)
	}
	return dst
}

// Parse reads the content of a file of marks, or says what else it is.
func Parse(data []byte) (Marks, error) {
	switch {
	case len(data) == 0:
		return nil, errors.New("it is empty")
	case len(data) >= maxSize:
		return nil, fmt.Errorf("it has %d bytes or more", maxSize)
	}
	rest, ok := strings.CutPrefix(string(data), magic)
	if !ok {
		return nil, foreign(data)
	}
	version, rest, _ := strings.Cut(rest, " ")
	if number, err := strconv.ParseUint(version, 10, 32); err == nil && version != plain && version != wordy && version != named {
		return nil, fmt.Errorf("it is of version %d of its format, and this program knows versions %s to %s", number, plain, named)
	}
	lines := strings.Split(rest, "\n")
	if version == named {
		lines = lines[1:max(len(lines)-2, 1)] // without what is before and behind them
	} else {
		lines = []string{" " + rest[:max(strings.LastIndexByte(rest, ' '), 0)]} // without the sum
	}
	marks := make(Marks, len(lines))
	for _, line := range lines {
		name, fields, _ := strings.Cut(line, " ")
		m, err := parseMark(strings.Split(fields, " "))
		if err != nil {
			return nil, err
		}
		marks[name] = m
	}
	if want := marks.append(nil); !bytes.Equal(data, want) {
		return nil, errors.New("it is damaged: its checksum does not fit")
	}
	if len(marks) == 0 {
		return nil, errors.New("it has no marks")
	}
	return marks, nil
}

func parseMark(fields []string) (m Mark, err error) {
	if len(fields) < 2 {
		return m, errors.New("it is cut short")
	}
	if m.Milli, err = strconv.ParseUint(fields[0], 10, 64); err != nil || m.Milli > Max {
		return m, errors.New("it is damaged: its time cannot be read")
	}
	for _, field := range fields[2:] {
		word, err := strconv.ParseUint(field, 10, 64)
		if err != nil || len(m.Words) == MaxWords {
			return m, errors.New("it is damaged: what stands beside its time cannot be read")
		}
		m.Words = append(m.Words, word)
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
		last := time.UnixMilli(int64(milli)).UTC().Format(time.RFC3339)
		return fmt.Errorf("it is the Erlang server's, which last wrote it at %s", last)
	}
	return fmt.Errorf("it is not a mark: it begins with %q", data[:min(len(data), 24)])
}
