package idserver

import (
	"cmp"
	"encoding/binary"
	"iter"
	"math"
	"math/bits"
	"runtime"
	"strings"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/snowflake"
)

// Number is an id of any format as one unsigned number of 128 bits. Its bytes
// are those of the number, big-endian, as many as the format has.
type Number struct{ Hi, Lo uint64 }

// maxOctets is the size of the largest id.
const maxOctets = 16

// numberOf reads big-endian bytes, 16 at most.
func numberOf(octets string) Number {
	var b [maxOctets]byte
	copy(b[maxOctets-len(octets):], octets)
	return fromFlake(b)
}

func fromFlake(id flake.ID) Number {
	return Number{binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:])}
}

func (n Number) flake() (id flake.ID) {
	binary.BigEndian.PutUint64(id[:8], n.Hi)
	binary.BigEndian.PutUint64(id[8:], n.Lo)
	return id
}

// Plus is the number i after n.
func (n Number) Plus(i int) Number {
	lo, carry := bits.Add64(n.Lo, uint64(i), 0)
	return Number{n.Hi + carry, lo}
}

// Compare returns -1, 0 or 1 as n is less than, equal to or greater than m.
func (n Number) Compare(m Number) int {
	return cmp.Or(cmp.Compare(n.Hi, m.Hi), cmp.Compare(n.Lo, m.Lo))
}

// AppendOctets appends the last size bytes of the number, 16 at most.
func (n Number) AppendOctets(dst []byte, size int) []byte {
	id := n.flake()
	return append(dst, id[maxOctets-size:]...)
}

// AppendDigits appends the number in a base from 2 to 62, digits 0-9A-Za-z in
// that order, without padding. Another base panics.
func (n Number) AppendDigits(dst []byte, base int) []byte {
	dst, err := n.flake().AppendBase(dst, base)
	if err != nil {
		panic(err)
	}
	return dst
}

// MaxText is the length of the longest text of an id: 128 bits in base 2.
const MaxText = 128

// Bases of a text besides 2 to 62.
const (
	Octets    = 0  // an id as it is
	Canonical = -1 // the format's own text
)

// AppendID appends an id in a base: as bytes, as the format's own text, or as digits.
func AppendID(dst []byte, f Format, id Number, base int) []byte {
	switch base {
	case Octets:
		return id.AppendOctets(dst, f.Size())
	case Canonical:
		return f.AppendCanonical(dst, id)
	}
	if t := textOf(base); t != nil {
		return t.append(dst, snowflake.ID(id.Lo))
	}
	return id.AppendDigits(dst, base)
}

// Width returns the length of the longest id that AppendID appends in a base.
func Width(f Format, base int) int { return len(AppendID(nil, f, highest(f.Size()), base)) }

// Parse reads an id that AppendID has written: digits in the base; with Canonical any of
// the format's own texts, or the id in base 16 as others write it; with Octets the
// id itself, or if it is not of an id's size, as Canonical. Anything else is
// ErrBadArgument.
func Parse(f Format, text string, base int) (id Number, err error) {
	switch {
	case base == Octets && len(text) == f.Size():
		return numberOf(text), nil
	case base == Octets || base == Canonical:
		if id, err = f.Parse(text); err != nil {
			id, err = parseHex(text, f.Size())
		}
	case textOf(base) != nil && HasBase(f, base):
		var number snowflake.ID
		number, err = textOf(base).parse(text)
		id = Number{Lo: uint64(number)}
	default:
		id, err = parseDigits(text, base, f.Size())
	}
	if err == nil {
		_, err = f.Parse(string(f.AppendCanonical(nil, id))) // not so with a UUID of another version
	}
	if err != nil {
		return Number{}, ErrBadArgument
	}
	return id, nil
}

// parseDigits reads what AppendDigits gives, in base 16 also with small letters and
// with 0x before it. A number that does not fit so many bytes is an error.
func parseDigits(text string, base, size int) (Number, error) {
	if base == 16 {
		text = strings.ToUpper(strings.TrimPrefix(text, "0x"))
	}
	id, err := flake.ParseBase(text, base)
	n := fromFlake(id)
	if n.Compare(highest(size)) > 0 {
		err = ErrBadArgument
	}
	return n, err
}

// parseHex reads base 16 that is sure to be such: after 0x; of a whole id, also
// after the \x of Postgres; or with a letter among the digits. Of flake's ids that is
// a UUID without hyphens, too.
func parseHex(text string, size int) (Number, error) {
	digits, bytea := strings.CutPrefix(text, `\x`)
	whole := len(digits) == 2*size
	if !whole && (bytea || !strings.HasPrefix(text, "0x") && !strings.ContainsAny(text, "abcdefABCDEF")) {
		return Number{}, ErrBadArgument
	}
	return parseDigits(digits, 16, size)
}

// highest is the highest number of so many bytes, 8 to 16.
func highest(size int) Number { return Number{1<<(8*(size-8)) - 1, math.MaxUint64} }

// Run is ids that follow each other by sequence: First and the Count-1 after it.
type Run struct {
	First  Number
	Count  int
	Halves *Halves // nil: they are the numbers after First
}

// At returns the id at place i, 0 <= i < Count, with random bits of its own, if its
// format has such: so it is asked for but once.
func (r Run) At(i int) Number {
	if r.Halves == nil {
		return r.First.Plus(i)
	}
	return r.Halves.fresh(r.Halves.at(r.First, i))
}

// followed tells whether another run goes on where this one ends, so that both are one.
func (r Run) followed(next Run) bool {
	if r.Halves == nil {
		return r.First.Plus(r.Count) == next.First
	}
	return r.Halves.follows(r.Halves.at(r.First, r.Count-1), next.First)
}

// All yields the ids of runs. After each MaxInline others go first.
func All(runs []Run) iter.Seq[Number] {
	return func(yield func(Number) bool) {
		n := 0
		for _, run := range runs {
			for i := range run.Count {
				if n++; n%MaxInline == 0 {
					runtime.Gosched()
				}
				if !yield(run.At(i)) {
					return
				}
			}
		}
	}
}
