package workers

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/flake-go/flake/internal/escape"
)

// Value is the content of a number's key in the store.
type Value struct {
	Mark       uint64 // an upper bound on ids with the number, except those in Spent; ms since 1970-01-01 UTC
	Generation uint64 // incremented by each claim and each [Release]
	Token      uint64 // random, new with each claim
	Free       bool   // the number was returned or released
	Name       string // the owner's name, or the former owner's; for people
	After      uint64 // ids of the claim are later than this; 0 if unknown
	Hold       uint64 // the owner's hold, in ms; 0 if unknown
	Nonce      uint64 // random, new with each write; 0 if unknown
	Base       uint64 // no id is between Base and After; 0 if unknown
	Spent      Span   // a period that no claim may enter
}

// Span is the period later than After, up to and including Mark. The zero Span is empty.
type Span struct{ After, Mark uint64 }

// meets reports whether a claim at the time now would enter the span.
func (s Span) meets(now, hold uint64) bool { return s.Mark > 0 && now+hold > s.After }

// The text of a value:
//
//	1 1700000600000 12 9f86d081884c7d65 held flake@10.0.0.1 after=1699999900000 hold=600000 nonce=...
//	| |             |  |                |    |              |
//	| |             |  |                |    |              read as part of the name by
//	| |             |  |                |    |              nodes older than flake 0.2
//	| |             |  |                |    the name
//	| |             |  |                held, or free
//	| |             |  the token
//	| |             the generation
//	| the mark
//	the version of the format
//
// If Base or Spent is set, the mark above is the later of Mark and the end of Spent, so that
// older nodes do not claim the number before then. The text then has " base=... mark=...
// spent=..." before " after="; older nodes read this as part of the name too.
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
	// The comparison with String below detects other versions and failures to parse.
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
	v.Name = escape.Text(v.Name) // any program that can write to the store can choose it
	return v, nil
}

// Floor is a mark for all numbers, in a store that was restored.
type Floor struct {
	Since uint64 // later than any node's clock before the restore
	Mark  uint64 // no id of an earlier claim is above it, and every id of a later claim is
	Nonce uint64 // random
}

// withdraws reports whether the floor was written by [Withdraw] to replace other.
func (f Floor) withdraws(other Floor) bool { return f.Nonce == ^other.Nonce }

// String returns the floor's text, which is empty for the zero Floor.
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

type keys struct{ prefix string }

func (k keys) floor() string { return k.prefix + "/floor" }

// number returns the key of a number. Its width is fixed, so that no key is a prefix of another.
func (k keys) number(n uint64) string { return fmt.Sprintf("%s%012x", k.numbers(), n) }
func (k keys) numbers() string        { return k.prefix + "/n/" }

// parse returns the number that a key is for.
func (k keys) parse(key string) (n uint64, err error) {
	n, err = strconv.ParseUint(strings.TrimPrefix(key, k.numbers()), 16, 48)
	if k.number(n) != key {
		err = errForeign
	}
	return n, err
}
