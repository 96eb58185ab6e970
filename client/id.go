package client

import (
	"encoding"
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"strings"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/sno"
	"github.com/flake-go/flake/flake/snowflake"
	"github.com/flake-go/flake/flake/ulid"
	"github.com/flake-go/flake/flake/uuidv7"
)

// Format is the constraint of the id types: [flake.ID], [snowflake.ID], [sno.ID], [uuidv7.ID] and
// [ulid.ID]. The ids of flake-idgen are of type [snowflake.ID] too.
type Format interface {
	flake.ID | snowflake.ID | sno.ID | uuidv7.ID | ulid.ID
}

// Run is a run of consecutive ids: First and the Count-1 ids after it. If the format has
// random bits, all ids share those of First.
type Run[ID Format] struct {
	First ID
	Count int
}

// At returns the id at index i, 0 <= i < Count.
func (r Run[ID]) At(i int) ID {
	return idOf[ID](numberOf(r.First).plus(uint64(i)))
}

// All returns the ids in ascending order.
func (r Run[ID]) All() iter.Seq[ID] {
	return func(yield func(ID) bool) {
		first := numberOf(r.First)
		for i := range uint64(r.Count) {
			if !yield(idOf[ID](first.plus(i))) {
				return
			}
		}
	}
}

// numbers is a Run whose ids are numbers.
type numbers struct {
	first number
	count uint64
}

// number is an id as a 128-bit number.
type number struct{ hi, lo uint64 }

// plus returns the id that is i places after n in a run. In uuidv7 and ulid, the time and
// sequence are in the first half.
func (n number) plus(i uint64) number {
	if n.inHalves() {
		return number{n.hi + i, n.lo}
	}
	lo, carry := bits.Add64(n.lo, i, 0)
	return number{n.hi + carry, lo}
}

// inHalves reports whether n is a uuidv7 or a ulid. Their first two bytes are the high bits of
// the time; in a flake id those bytes are 0.
func (n number) inHalves() bool { return n.hi>>48 != 0 }

// likeUUID reports whether n has the version and variant of uuidv7.
func (n number) likeUUID() bool { return n.hi>>12&15 == 7 && n.lo>>62 == 2 }

// fresh returns n with new random bits, if its format has any: 14 bits if n has the version and
// variant of uuidv7, otherwise 16. So in a ulid that looks like a uuidv7, two random bits keep
// their values.
func (n number) fresh() number {
	width := 16
	switch {
	case !n.inHalves():
		return n
	case n.likeUUID():
		width = 14
	}
	n.lo ^= rand.Uint64() & (1<<width - 1)
	return n
}

func (n number) below(other number) bool {
	return n.hi < other.hi || n.hi == other.hi && n.lo < other.lo
}

// follows reports whether a generator whose latest id is last may return n next. It infers the
// format from last, because a program can request ids as text through an [IDs] of another format.
func (n number) follows(last number) bool {
	const belowTime = 22 // the maximum number of bits below the time in snowflake and flake-idgen; a node may use fewer
	switch {
	case last.below(n):
		return true
	case last.hi == 0: // 8 bytes: a millisecond's sequence may start at any value, and wraps around
		return n.lo>>belowTime == last.lo>>belowTime
	}
	// Of the longer ids, only those of sno, which have 10 bytes, may be lower: after the clock has
	// been set back, they continue with lower times. An id of 16 bytes begins with 64 or 48 bits
	// that count milliseconds since 1970, so its hi is higher than that of any sno id.
	return last.hi < 1<<16
}

func numberOf[ID Format](id ID) (n number) {
	switch id := any(&id).(type) {
	case *flake.ID:
		n.hi, n.lo = binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:])
	case *uuidv7.ID:
		return numberOf(flake.ID(*id))
	case *ulid.ID:
		return numberOf(flake.ID(*id))
	case *snowflake.ID:
		n.lo = uint64(*id)
	case *sno.ID:
		n.hi, n.lo = uint64(binary.BigEndian.Uint16(id[:2])), binary.BigEndian.Uint64(id[2:])
	}
	return n
}

func idOf[ID Format](n number) (id ID) {
	switch id := any(&id).(type) {
	case *flake.ID:
		binary.BigEndian.PutUint64(id[:8], n.hi)
		binary.BigEndian.PutUint64(id[8:], n.lo)
	case *uuidv7.ID:
		*id = uuidv7.ID(idOf[flake.ID](n))
	case *ulid.ID:
		*id = ulid.ID(idOf[flake.ID](n))
	case *snowflake.ID:
		*id = snowflake.ID(n.lo)
	case *sno.ID:
		binary.BigEndian.PutUint16(id[:2], uint16(n.hi))
		binary.BigEndian.PutUint64(id[2:], n.lo)
	}
	return id
}

// numberOfText returns the number of an id whose text is in a base, or in ID's own form.
func numberOfText[ID Format](text string, base int) (number, error) {
	if base != Canonical {
		id, err := parseBase(text, base)
		return numberOf(id), err
	}
	var id ID
	err := any(&id).(encoding.TextUnmarshaler).UnmarshalText([]byte(text))
	return numberOf(id), err
}

// parseBase parses an id of any format as a number. base must not be [Canonical].
func parseBase(text string, base int) (flake.ID, error) {
	switch base {
	case UUID:
		return flake.Parse(text)
	case Crockford:
		const digits = 26 // of 128 bits
		id, err := ulid.Parse(strings.Repeat("0", max(0, digits-len(text))) + text)
		return flake.ID(id), err
	}
	return flake.ParseBase(text, base)
}

func sizeOf[ID Format]() int { return int(reflect.TypeFor[ID]().Size()) }

// numberOfBytes returns the number of an id of any size.
func numberOfBytes(id []byte) number {
	var b flake.ID
	copy(b[max(0, len(b)-len(id)):], id)
	return numberOf(b)
}

// fromBytes returns the id in a node's answer. It fails if the size is wrong.
func fromBytes[ID Format](b []byte) (id ID, err error) {
	if size := sizeOf[ID](); len(b) != size {
		return id, fmt.Errorf("the generator has another format: its ids have %d bytes, but %T has %d",
			len(b), id, size)
	}
	return idOf[ID](numberOfBytes(b)), nil
}

// handedOut returns the first id of a run in a node's answer, and the maximum length of the run.
// All ids of a run share worker and time, so the sequence limits the length. How many bits a
// snowflake's sequence has depends on the node's configuration, so for snowflakes maxCount only
// keeps a run from overflowing. handedOut fails if no generator of the format could have made the
// id.
func handedOut[ID Format](b []byte) (n number, maxCount uint64, err error) {
	id, err := fromBytes[ID](b)
	if err != nil {
		return n, 0, err
	}
	n = numberOf(id)
	ok, sequence, width := true, n.lo, 16
	switch any(id).(type) {
	case flake.ID:
		ok = !n.inHalves()
	case snowflake.ID:
		return n, math.MaxUint64 - n.lo, nil
	case uuidv7.ID:
		ok, sequence, width = n.inHalves() && n.likeUUID(), n.hi, 12
	case ulid.ID:
		ok, sequence = n.inHalves(), n.hi
	}
	if !ok {
		return n, 0, fmt.Errorf("the generator has another format: %x is not a %T", b, id)
	}
	all := uint64(1) << width
	return n, all - sequence&(all-1), nil
}
