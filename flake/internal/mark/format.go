package mark

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"math/big"
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
// with single spaces and a line feed at the end. There is one way to write a
// mark: a file that differs from it by a byte is corrupt.
const (
	magic   = "flake-mark "
	version = "1"

	// Max is the highest mark, in the year 6429: the last millisecond that a
	// generator has.
	Max = 1<<47 - 2

	// maxSize is more than any mark takes, and all that is read of a file.
	maxSize = 256
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendMark appends the file for a mark up to Max.
func appendMark(dst []byte, milli uint64) []byte {
	start := len(dst)
	dst = append(dst, magic+version+" "...)
	dst = strconv.AppendUint(dst, milli, 10)
	dst = append(dst, ' ')
	dst = time.UnixMilli(int64(milli)).UTC().AppendFormat(dst, "2006-01-02T15:04:05.000Z")
	dst = append(dst, ' ')
	return fmt.Appendf(dst, "%08x\n", crc32.Checksum(dst[start:], castagnoli))
}

// Parse reads the content of a mark's file, or says what else it is.
func Parse(data []byte) (milli uint64, err error) {
	if len(data) == 0 {
		return 0, errors.New("it is empty")
	}
	rest, ok := strings.CutPrefix(string(data), magic)
	if !ok {
		return 0, foreign(data)
	}
	fields := strings.SplitN(rest, " ", 3)
	if number, err := strconv.ParseUint(fields[0], 10, 32); err == nil && fields[0] != version {
		return 0, fmt.Errorf("it is of version %d of its format, and this program knows version %s", number, version)
	}
	if len(fields) < 3 {
		return 0, fmt.Errorf("it is cut short, at %d bytes", len(data))
	}
	if milli, err = strconv.ParseUint(fields[1], 10, 64); err != nil || milli > Max {
		return 0, errors.New("it is damaged: its time cannot be read")
	}
	if want := appendMark(nil, milli); !bytes.Equal(data, want) {
		return 0, errors.New("it is damaged: its checksum does not fit")
	}
	return milli, nil
}

// foreign tells what a file that is no mark is: perhaps the Erlang server's, an
// integer in the External Term Format (131, 110, length, sign, little-endian).
func foreign(data []byte) error {
	if len(data) > 4 && data[0] == 131 && data[1] == 110 && data[3] == 0 && int(data[2]) == len(data)-4 {
		big := new(big.Int).SetBytes(reversed(data[4:]))
		if big.IsUint64() && big.Uint64() <= Max {
			last := time.UnixMilli(int64(big.Uint64())).UTC().Format(time.RFC3339)
			return fmt.Errorf("it is the Erlang server's, which last wrote it at %s", last)
		}
	}
	return fmt.Errorf("it is not a mark: it begins with %q", data[:min(len(data), 24)])
}

func reversed(b []byte) []byte {
	b = slices.Clone(b)
	slices.Reverse(b)
	return b
}
