package original

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/flake-go/flake/internal/files"
	"github.com/flake-go/flake/node/etf"
)

// State is what a dets file shows about the time of the original's last id.
type State struct {
	Last     uint64    // the time in the file, in ms since 1970, or 0. The original may have made later ids
	Modified time.Time // when the file was last written
	Closed   bool      // whether dets closed it; even then, Last may be out of date
}

// Margin is added by [State.Mark], because the original passes a time to dets each second, and dets writes it up
// to 3 s later.
const Margin = 5 * time.Second

// Mark returns a time, in ms since 1970, that no id of the original is later than.
func (s State) Mark() uint64 {
	return max(s.Last, uint64(max(s.Modified.UnixMilli(), 0))) + uint64(Margin/time.Millisecond)
}

// MaxFile is the size of the largest file that is read. The original's dets file is 6 kB.
const MaxFile = 1 << 20

// ReadDets reads the original's dets file. It fails if the file is anything else, even a different dets file.
func ReadDets(path string) (s State, err error) {
	data, info, err := files.Read(path, MaxFile)
	if err == nil {
		s.Modified = info.ModTime()
		s.Last, s.Closed, err = parseDets([]byte(data))
	}
	if err != nil {
		return State{}, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// A dets file of version 9 begins with a header of big-endian 32-bit words, at the offsets below.
// The header is followed by pointers to the parts of an array, which hold pointers to segments. Each
// segment has 256 slots, and each slot a size and a pointer. A slot is for the keys whose hash is the slot's
// number, and points to their collection: a size, a status, and the objects, each preceded by its size.
//
// The original's table has 256 slots, so one part and one segment cover it. Its only object is
// {last_timestamp, T}.
const (
	cookieAt    = 4
	closedAt    = 8
	typeAt      = 12
	versionAt   = 16
	slotsAt     = 20
	keyPosAt    = 28
	objectsAt   = 32
	hashAt      = 48
	splitAt     = 52
	partsAt     = 0x138
	slotsBegin  = partsAt + 4*256
	cookie      = 0x00abcdef
	version     = 9
	set         = 1
	slots       = 256
	phash2      = 1
	active      = 0x12345678
	slot        = 160 // erlang:phash2(last_timestamp) band 255
	latestTime  = 1<<47 - 2
	lastTimeKey = etf.Atom("last_timestamp")
)

func parseDets(data []byte) (last uint64, closed bool, err error) {
	r := detsReader{data: data}
	if len(data) < slotsBegin || r.word(cookieAt) != cookie {
		return 0, false, errors.New("not a dets file; it must be the original's, which its timestamp_path names")
	}
	for _, field := range []struct {
		at, want uint64
		what     string
	}{
		{versionAt, version, "version"}, {typeAt, set, "type"}, {keyPosAt, 1, "position of the key"},
		{slotsAt, slots, "number of slots"},
		{hashAt, phash2, "hash function"}, {splitAt, 0, "number of slots that are split"},
	} {
		if got := r.word(field.at); got != field.want {
			return 0, false, fmt.Errorf("a dets file, but not the original's: its %s is %d instead of %d",
				field.what, got, field.want)
		}
	}
	status := r.word(closedAt)
	if status > 1 {
		return 0, false, fmt.Errorf("a damaged dets file: its closed flag is %d", status)
	}
	entry := r.word(r.word(partsAt)) + slot*8
	size, at := r.word(entry), r.word(entry+4)
	if r.err == nil && at == 0 {
		if n := r.word(objectsAt); n > 0 {
			return 0, false, fmt.Errorf("a dets file, but not the original's: "+
				"it has %d objects, and none is {last_timestamp, T}", n)
		}
		return 0, status == 1, nil
	}
	last = r.collection(at, size)
	return last, status == 1, r.err
}

// detsReader reads words of a file. It keeps the first error; a word outside the file is 0.
type detsReader struct {
	data []byte
	err  error
}

func (r *detsReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("a damaged dets file: "+format, args...)
	}
}

// bytes returns a part of the file. Sums of words are 64-bit, so that none overflows.
func (r *detsReader) bytes(from, to uint64) []byte {
	if from > to || to > uint64(len(r.data)) {
		r.fail("bytes %d to %d of %d are not a valid range", from, to, len(r.data))
		return nil
	}
	return r.data[from:to]
}

func (r *detsReader) word(at uint64) uint64 {
	if b := r.bytes(at, at+4); len(b) == 4 {
		return uint64(binary.BigEndian.Uint32(b))
	}
	return 0
}

// collection returns the time in a collection's object whose key is last_timestamp.
func (r *detsReader) collection(at, size uint64) uint64 {
	if status := r.word(at + 4); status != active {
		r.fail("the status of its object is %#x", status)
	}
	for end, object := at+size, at+8; object < end; {
		next := object + r.word(object)
		if next > end {
			r.fail("an object ends at byte %d, its collection at %d", next, end)
			return 0
		}
		term, err := etf.Decode(cut(r.bytes(object+4, next)))
		if err != nil {
			r.fail("its object is not a term: %v", err)
			return 0
		}
		if pair, _ := term.(etf.Tuple); len(pair) == 2 && pair[0] == lastTimeKey {
			if t, _ := pair[1].(int64); 0 < t && t <= latestTime {
				return uint64(t)
			}
			r.fail("its time is %.40s", etf.Format(nil, pair[1]))
			return 0
		}
		object = next
	}
	r.fail("slot %d has no last_timestamp", slot)
	return 0
}

// cut removes the version byte from a term.
func cut(term []byte) []byte {
	if len(term) > 0 && term[0] == etf.VersionMagic {
		return term[1:]
	}
	return nil
}
