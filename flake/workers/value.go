package workers

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/flake-go/flake/internal/escape"
)

// Value is what the store holds for a number.
type Value struct {
	Mark       uint64 // no id with the number is later, but for Spent; milliseconds since 1970-01-01 UTC
	Generation uint64 // how often the number was claimed
	Token      uint64 // random, of the claim
	Free       bool   // it was given back
	Name       string // whose it is, or was, for people
	After      uint64 // ids with the number are later; 0: not known
	Hold       uint64 // its owner's, in milliseconds; 0: not known
	Nonce      uint64 // random, of the write; 0: not known
	Base       uint64 // no id is between this and After; 0: not known
	Spent      Span   // a time that no claim may enter
}

// Span is the time after one millisecond, up to another. The zero Span is empty.
type Span struct{ After, Mark uint64 }

// meets reports whether a claim whose clock says now would come into the span.
func (s Span) meets(now, hold uint64) bool { return s.Mark > 0 && now+hold > s.After }

// The text of a value:
//
//	1 1700000600000 12 9f86d081884c7d65 held flake@10.0.0.1 after=1699999900000 hold=600000 nonce=...
//	| |             |  |                |    |              |
//	| |             |  |                |    |              what nodes of before flake 0.2
//	| |             |  |                |    |              take for part of the name
//	| |             |  |                |    the name
//	| |             |  |                held, or free
//	| |             |  the token
//	| |             the generation
//	| the mark
//	version of the format
//
// If Base or Spent is known, the first mark is the highest of Mark and Spent, which keeps
// nodes of before away until then, and " base=... mark=... spent=..." is in front of
// " after=", where nodes of before take it for part of the name too.
const (
	version = "1"
	held    = "held"
	free    = "free"
)

func (v Value) String() string {
	state := held
	if v.Free {
		state = free
	}
	text := fmt.Sprintf("%s %d %d %016x %s %s", version, max(v.Mark, v.Spent.Mark), v.Generation, v.Token, state, v.Name)
	if v.Base > 0 || v.Spent.Mark > 0 {
		text += fmt.Sprintf(split, v.Base, v.Mark, v.Spent.After)
	}
	if v.After > 0 || v.Hold > 0 {
		text += fmt.Sprintf(tail, v.After, v.Hold, v.Nonce)
	}
	return text
}

const (
	split = " base=%d mark=%d spent=%d"
	tail  = " after=%d hold=%d nonce=%016x"
)

var errForeign = errors.New("not the mark of a worker")

func parseValue(text string) (v Value, err error) {
	fields := strings.SplitN(text, " ", 6)
	if len(fields) != 6 {
		return v, errForeign
	}
	// What is not of this version, or cannot be parsed, does not give the text again.
	v.Mark, _ = strconv.ParseUint(fields[1], 10, 64)
	v.Generation, _ = strconv.ParseUint(fields[2], 10, 64)
	v.Token, _ = strconv.ParseUint(fields[3], 16, 64)
	v.Free, v.Name = fields[4] == free, fields[5]
	if i := strings.LastIndex(v.Name, " after="); i >= 0 {
		if n, _ := fmt.Sscanf(v.Name[i:], tail, &v.After, &v.Hold, &v.Nonce); n == 3 {
			v.Name = v.Name[:i]
		}
	}
	if i := strings.LastIndex(v.Name, " base="); i >= 0 {
		top := v.Mark
		if n, _ := fmt.Sscanf(v.Name[i:], split, &v.Base, &v.Mark, &v.Spent.After); n == 3 {
			v.Name = v.Name[:i]
		}
		if v.Spent.After > 0 {
			v.Spent.Mark = top
		}
	}
	if v.String() != text {
		return v, errForeign
	}
	v.Name = escape.Text(v.Name) // whoever can write to the store can write any
	return v, nil
}

// Floor is what the store holds for all numbers, after it was restored.
type Floor struct {
	Since uint64 // later than all clocks before the restore
	Mark  uint64 // no id was later; those of claims from here on are
	Nonce uint64 // random
}

// withdraws reports whether the floor takes another back, which was a mistake.
func (f Floor) withdraws(other Floor) bool { return f.Nonce == ^other.Nonce }

// String returns the floor's text, which is empty if there is none.
func (f Floor) String() string {
	if f == (Floor{}) {
		return ""
	}
	return fmt.Sprintf("%s %d %d %016x", version, f.Since, f.Mark, f.Nonce)
}

func parseFloor(text string) (f Floor, err error) {
	fmt.Sscanf(text, version+" %d %d %x", &f.Since, &f.Mark, &f.Nonce)
	if f.String() != text {
		err = errForeign
	}
	return f, err
}

// keys are the keys in the store.
type keys struct{ prefix string }

func (k keys) floor() string { return k.prefix + "/floor" }

// number is of one width, so that no key is the beginning of another.
func (k keys) number(n uint64) string { return fmt.Sprintf("%s%012x", k.numbers(), n) }
func (k keys) numbers() string        { return k.prefix + "/n/" }

// parse returns the number of a key.
func (k keys) parse(key string) (n uint64, err error) {
	n, err = strconv.ParseUint(strings.TrimPrefix(key, k.numbers()), 16, 48)
	if k.number(n) != key {
		err = errForeign
	}
	return n, err
}
