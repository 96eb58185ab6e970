// Package formats is the table of the formats of ids: what their bits and texts are,
// which options configure a generator of each, and how to open one. The id server, the
// configuration and the command know formats by it alone.
//
// A new format is a package such as snowflake, and a row of [Kinds]. Start from there,
// from [Format], and from [Generator].
package formats

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/flake-go/flake/flake"
)

// Kinds is the table.
var Kinds = []*Kind{flakes, idgens, snowflakes, snos, uuidv7s, ulids}

// KindOf returns the row of a name, or nil.
func KindOf(name string) *Kind {
	for _, k := range Kinds {
		if k.Name == name {
			return k
		}
	}
	return nil
}

// Names returns the names of all rows.
func Names() (names []string) {
	for _, k := range Kinds {
		names = append(names, k.Name)
	}
	return names
}

// WithKey returns the names of the rows that have a key, in words: "sno, uuidv7 and ulid".
func WithKey(key string) string {
	var names []string
	for _, k := range Kinds {
		if k.Key(key) != nil {
			names = append(names, k.Name)
		}
	}
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// A Kind is a row of the table: the formats of one name, which options lay out.
type Kind struct {
	Name string
	Keys []*Key // of the options

	// Numbers are the keys of the number that no two generators may share: those of
	// one list or another.
	Numbers [][]string

	// Format returns the layout that options ask for.
	Format func(o Options) *Format

	// Check returns what is wrong with options, each of which is in range; nil: there
	// is nothing to check.
	Check func(o Options) []Fault

	// Plan returns what options with a number make of a generator.
	Plan func(o Options) (Plan, error)
}

// Random reports whether the number may be made up at random, being large enough.
func (k *Kind) Random() bool {
	return slices.ContainsFunc(k.Keys, func(key *Key) bool { return key.Type == MAC })
}

// Key returns the key of a name, or nil.
func (k *Kind) Key(name string) *Key {
	for _, key := range k.Keys {
		if key.Name == name {
			return key
		}
	}
	return nil
}

// A Key is that of an option.
type Key struct {
	Name     string
	Type     Type
	From, To int64 // of an Integer
	Layout   bool  // it is about the bits of ids, not about how they are made
	Does     string

	most func(o Options) int64 // instead of To
}

// Most returns the highest value, which may depend on other options.
func (k *Key) Most(o Options) int64 {
	if k.most != nil {
		return k.most(o)
	}
	return k.To
}

// Type is what an option's value means.
type Type int

// The types of options.
const (
	Integer = Type(iota) // a number
	Bool                 // 0 or 1
	Time                 // ms since 1970
	MAC                  // 48 bits
)

// Options are the values of keys that are set.
type Options map[string]int64

// or returns a value, or another if it is not set.
func (o Options) or(key string, otherwise int64) int64 {
	if v, ok := o[key]; ok {
		return v
	}
	return otherwise
}

func (o Options) has(key string) bool {
	_, ok := o[key]
	return ok
}

// A Fault says which key is wrong, and what belongs there.
type Fault struct{ Key, Want string }

// Keys returns the keys of all kinds.
func Keys() (all []*Key) {
	for _, k := range Kinds {
		for _, key := range k.Keys {
			if !slices.Contains(all, key) {
				all = append(all, key)
			}
		}
	}
	return all
}

// IsNumber reports whether a key is of the number of any kind.
func IsNumber(key string) bool {
	return slices.ContainsFunc(Kinds, func(k *Kind) bool {
		return slices.ContainsFunc(k.Numbers, func(keys []string) bool { return slices.Contains(keys, key) })
	})
}

// Numbered returns the options with a number in some keys: the upper part in the first.
func (k *Kind) Numbered(o Options, keys []string, number uint64) Options {
	o = maps.Clone(o)
	if o == nil {
		o = Options{}
	}
	for i, name := range slices.Backward(keys) {
		key := k.Key(name)
		values := uint64(key.Most(o)) + 1
		switch {
		case key.Type == MAC:
			o[name] = int64(flake.NumberWorker(number))
		case i > 0:
			o[name] = int64(number % values)
			number /= values
		default:
			o[name] = int64(number)
		}
	}
	return o
}

// MaxNumber returns the highest number that fits some keys, and is below 2^16.
func (k *Kind) MaxNumber(o Options, keys []string) uint64 {
	numbers := uint64(1)
	for _, name := range keys {
		if key := k.Key(name); key.Type == MAC {
			return 1<<16 - 1
		} else {
			numbers *= uint64(key.Most(o)) + 1
		}
	}
	return min(numbers, 1<<16) - 1
}

// A Plan is a generator that can be opened.
type Plan struct {
	Who    string // in words: "partition 7"
	Worker uint64 // as [Source] has it
	Place  Place

	// Open returns the generator, whose mark is in a file of its own at path, or in
	// o.Marks under that name. With neither, nothing is kept.
	Open func(ctx context.Context, path string, o flake.Options) (Generator, error)
}

// A Place is all ids that a generator can make, but for their time: those of a space
// from First to Last. Ids of two spaces are never compared.
type Place struct {
	Key, Value  string // of the number, in words
	Space       string
	First, Last uint64
}

func (p Place) String() string { return p.Key + " " + p.Value }

// Overlaps reports whether two generators share ids.
func (p Place) Overlaps(other Place) bool {
	return p.Space == other.Space && p.First <= other.Last && other.First <= p.Last
}

// A Source hands out ids of one format. Any number of goroutines may use it.
type Source interface {
	Format() *Format
	// Reserve takes 1 to n ids that follow each other, never to be handed out
	// again. When those of a tick are used up it waits for the next, until the
	// end of ctx. meta is for a format that has one.
	Reserve(ctx context.Context, n int, meta uint8) (Run, error)
	// Worker is the worker, machine or partition of every id.
	Worker() uint64
	// Last returns the time, in ms since 1970, and the sequence that are used up.
	Last() (milli uint64, sequence uint32)
	// Ready reports whether there are ids now, and will be soon. If not it fails, as
	// a rule as Reserve would.
	Ready() error
	// Behind is how long it takes at least until the clock has caught up, so that
	// there are ids again; 0: it is not behind.
	Behind() time.Duration
	// Waits is how often the ids of a tick were used up, and calls waited.
	Waits() uint64
	// PerTick is how many ids there are between two waits.
	PerTick() int
	// Mark is the time that no id is later than, whatever happens; zero if none
	// is kept.
	Mark() time.Time
	// LastSaved is when the mark was last made durable, and the trouble that
	// there has been with it since, or nil.
	LastSaved() (time.Time, error)
}

// A Generator is a [Source] that can be closed.
type Generator interface {
	Source
	io.Closer
}

// generator is one of a format's package as a [Generator]: what all of these have alike,
// and functions for what differs.
type generator struct {
	alike
	format  *Format
	worker  uint64
	last    func() (milli uint64, sequence uint32)
	reserve func(ctx context.Context, n int) (first Number, count int, err error)
}

type alike interface {
	Ready() error
	Behind() time.Duration
	Waits() uint64
	PerTick() int
	Mark() time.Time
	LastSaved() (time.Time, error)
	Close() error
}

func (g *generator) Format() *Format { return g.format }
func (g *generator) Worker() uint64  { return g.worker }

func (g *generator) Last() (milli uint64, sequence uint32) { return g.last() }

func (g *generator) Reserve(ctx context.Context, n int, meta uint8) (Run, error) {
	first, count, err := g.reserve(ctx, n)
	if err != nil {
		return Run{}, err
	}
	if meta != 0 {
		first = g.format.withMeta(first, meta)
	}
	return Run{first, count, g.format}, nil
}

// wide returns a function that returns a sequence of 16 bits, with 32.
func wide(last func() (milli uint64, sequence uint16)) func() (uint64, uint32) {
	return func() (uint64, uint32) {
		milli, sequence := last()
		return milli, uint32(sequence)
	}
}

// opened returns what a format's package has opened, or its error.
func opened[G any](ids G, err error, generator func(G) Generator) (Generator, error) {
	if err != nil {
		return nil, err
	}
	return generator(ids), nil
}
