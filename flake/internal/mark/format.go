package mark

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
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
// besides; a mark with none is of version 1. There is one way to write a mark: a
// file that differs from it by a byte is corrupt.
const (
	magic = "flake-mark "
	plain = "1"
	wordy = "2"

	// Max is the highest mark, in the year 6429: the last millisecond that a
	// generator has.
	Max = 1<<47 - 2

	// MaxWords is how many words a mark may have.
	MaxWords = 6

	// maxSize is more than any mark takes, and all that is read of a file.
	maxSize = 256
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Mark is what a file keeps.
type Mark struct {
	Milli uint64   // milliseconds since 1970-01-01 UTC, up to Max
	Words []uint64 // what else, up to MaxWords; nil if there are none
}

// append appends the file for a mark.
func (m Mark) append(dst []byte) []byte {
	start, version := len(dst), plain
	if len(m.Words) > 0 {
		version = wordy
	}
	dst = append(dst, magic+version+" "...)
	dst = strconv.AppendUint(dst, m.Milli, 10)
	dst = append(dst, ' ')
	dst = time.UnixMilli(int64(m.Milli)).UTC().AppendFormat(dst, "2006-01-02T15:04:05.000Z")
	dst = append(dst, ' ')
	for _, word := range m.Words {
		dst = append(strconv.AppendUint(dst, word, 10), ' ')
	}
	return fmt.Appendf(dst, "%08x\n", crc32.Checksum(dst[start:], castagnoli))
}

// Parse reads the content of a mark's file, or says what else it is.
func Parse(data []byte) (Mark, error) {
	if len(data) == 0 {
		return Mark{}, errors.New("it is empty")
	}
	rest, ok := strings.CutPrefix(string(data), magic)
	if !ok {
		return Mark{}, foreign(data)
	}
	fields := strings.Split(rest, " ")
	if number, err := strconv.ParseUint(fields[0], 10, 32); err == nil && fields[0] != plain && fields[0] != wordy {
		return Mark{}, fmt.Errorf("it is of version %d of its format, and this program knows versions %s and %s", number, plain, wordy)
	}
	if len(fields) < 4 { // version, mark, the mark again, sum
		return Mark{}, fmt.Errorf("it is cut short, at %d bytes", len(data))
	}
	var m Mark
	var err error
	if m.Milli, err = strconv.ParseUint(fields[1], 10, 64); err != nil || m.Milli > Max {
		return Mark{}, errors.New("it is damaged: its time cannot be read")
	}
	for _, field := range fields[3 : len(fields)-1] {
		word, err := strconv.ParseUint(field, 10, 64)
		if err != nil || len(m.Words) == MaxWords {
			return Mark{}, errors.New("it is damaged: what stands beside its time cannot be read")
		}
		m.Words = append(m.Words, word)
	}
	if want := m.append(nil); !bytes.Equal(data, want) {
		return Mark{}, errors.New("it is damaged: its checksum does not fit")
	}
	return m, nil
}

// foreign tells what a file that is no mark is: perhaps the Erlang server's, an
// integer in the External Term Format (131, 110, length, sign, little-endian),
// which has 6 bytes for any time since 2004.
func foreign(data []byte) error {
	if number, ok := bytes.CutPrefix(data, []byte{131, 110, 6, 0}); ok && len(number) == 6 {
		milli := binary.LittleEndian.Uint64(append(number, 0, 0))
		last := time.UnixMilli(int64(milli)).UTC().Format(time.RFC3339)
		return fmt.Errorf("it is the Erlang server's, which last wrote it at %s", last)
	}
	return fmt.Errorf("it is not a mark: it begins with %q", data[:min(len(data), 24)])
}
