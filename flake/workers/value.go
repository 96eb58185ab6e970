package workers

import (
	"errors"
	"fmt"
	"slices"
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
	After      uint64 // ids of the claim are later than this
	Hold       uint64 // the owner's hold, in ms
	Nonce      uint64 // random, new with each write
	Base       uint64 // no id is between Base and After; 0 if the number was released
	Spent      Span   // a period that no claim may enter
	Name       string // the owner's name, or the former owner's; for people
}

// Span is the period later than After, up to and including Mark. The zero Span is empty.
type Span struct{ After, Mark uint64 }

// meets reports whether a claim at the time now would enter the span.
func (s Span) meets(now, hold uint64) bool { return s.Mark > 0 && now+hold > s.After }

// The text of a value is one line, whose first word is the version, and whose last part is the name:
//
//	1 mark=1700000600000 generation=12 token=9f86d081884c7d65 held after=... hold=... nonce=...
//	base=... spent=0-0 flake@10.0.0.1
const (
	version = "1"
	layout  = version + " mark=%d generation=%d token=%016x %s after=%d hold=%d nonce=%016x base=%d spent=%d-%d "
	held    = "held"
	free    = "free"
)

func (v Value) String() string {
	state := held
	if v.Free {
		state = free
	}
	return fmt.Sprintf(layout, v.Mark, v.Generation, v.Token, state, v.After, v.Hold, v.Nonce, v.Base,
		v.Spent.After, v.Spent.Mark) + v.Name
}

var errForeign = errors.New("not the mark of a worker")

func parseValue(text string) (v Value, err error) {
	var words [11]string
	copy(words[:], strings.SplitN(text, " ", len(words)))
	after, mark, _ := strings.Cut(words[9], "-")
	v = Value{
		Mark: uintOf(words[1], 10), Generation: uintOf(words[2], 10), Token: uintOf(words[3], 16), Free: words[4] == free,
		After: uintOf(words[5], 10), Hold: uintOf(words[6], 10), Nonce: uintOf(words[7], 16), Base: uintOf(words[8], 10),
		Spent: Span{uintOf(after, 10), uintOf(mark, 10)}, Name: words[10],
	}
	if v.String() != text { // another version, or a number that cannot be read
		return v, errForeign
	}
	v.Name = escape.Text(v.Name) // any program that can write to the store can choose it
	return v, nil
}

// uintOf returns the integer at the end of a word of a text, or 0 if it cannot be read.
func uintOf(word string, base int) uint64 {
	n, _ := strconv.ParseUint(word[strings.LastIndexByte(word, '=')+1:], base, 64)
	return n
}

// Floor is a mark for all numbers, in a store that was restored. Until then it is 0, and only
// says where the numbers are. The first claim writes it.
type Floor struct {
	Since  uint64 // later than any node's clock before the restore
	Mark   uint64 // no id of an earlier claim is above it, and every id of a later claim is
	Nonce  uint64 // random
	Places string // the places of the numbers, oldest first, separated by spaces; see [Place]
}

// maxPlaces limits the places in a floor; older ones are forgotten.
const maxPlaces = 16

// Place returns the text for numbers under prefix in the cluster with the given id. Restored or
// moved numbers have the places of their past too.
func Place(cluster, prefix string) string {
	return placed.Replace(cluster + ":" + prefix)
}

var placed = strings.NewReplacer("%", "%25", " ", "%20")

// in reports whether the numbers were ever at place.
func (f Floor) in(place string) bool { return slices.Contains(strings.Fields(f.Places), place) }

// add adds places that are not there yet.
func (f *Floor) add(places ...string) {
	all := strings.Fields(f.Places)
	for _, p := range places {
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	f.Places = strings.Join(all[max(len(all)-maxPlaces, 0):], " ")
}

// withdraws reports whether the floor was written by [Withdraw] to replace other.
func (f Floor) withdraws(other Floor) bool { return f.Nonce == ^other.Nonce }

// String returns the floor's text, which is empty for the zero Floor.
func (f Floor) String() string {
	if f == (Floor{}) {
		return ""
	}
	return strings.TrimSuffix(fmt.Sprintf("%s %d %d %016x %s", version, f.Since, f.Mark, f.Nonce, f.Places), " ")
}

func parseFloor(text string) (f Floor, err error) {
	var words [5]string
	copy(words[:], strings.SplitN(text, " ", len(words)))
	f = Floor{Since: uintOf(words[1], 10), Mark: uintOf(words[2], 10), Nonce: uintOf(words[3], 16), Places: words[4]}
	if f.String() != text {
		err = errForeign
	}
	return f, err
}

// usedText returns the value of a key that says that a number was claimed with a hold, in ms.
func usedText(hold uint64) string { return fmt.Sprint(version, " ", hold) }

type keys struct{ prefix string }

func (k keys) floor() string { return k.prefix + "/floor" }

// number returns the key of a number. Its width is fixed, so that no key is a prefix of another.
func (k keys) number(n uint64) string { return fmt.Sprintf("%s%012x", k.numbers(), n) }
func (k keys) numbers() string        { return k.prefix + "/n/" }

// used returns the key that says that a number was ever claimed, and with which hold.
func (k keys) used(n uint64) string { return fmt.Sprintf("%s%012x", k.allUsed(), n) }
func (k keys) allUsed() string      { return k.prefix + "/used/" }

// parse returns the number whose key, as of returns it, is key.
func (k keys) parse(key string, of func(keys, uint64) string) (n uint64, err error) {
	n, err = strconv.ParseUint(key[strings.LastIndexByte(key, '/')+1:], 16, 48)
	if of(k, n) != key {
		err = errForeign
	}
	return n, err
}
