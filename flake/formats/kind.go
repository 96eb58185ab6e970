// Package formats holds the table of id formats: their bits and text forms, the options of
// their generators, and how to open a generator. The id server, the configuration and the
// command know formats only through this table.
//
// To add a format, write a package such as snowflake, and add a row to [Kinds]. Start with
// [Kinds], [Format] and [Generator].
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

// Kinds is the table of formats.
var Kinds = []*Kind{flakes, idgens, snowflakes, snos, uuidv7s, ulids}

// KindOf returns the row with the given name, or nil if there is none.
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

// WithKey lists the names of the rows that have the given key, as in "sno, uuidv7 and ulid".
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

// A Kind is a row of the table: the formats that share a name and differ by their options.
type Kind struct {
	Name string
	Keys []*Key // of the options

	// Numbers are alternative lists of keys. The keys of a list together set the number, which
	// no two generators may share.
	Numbers [][]string

	// Format returns the format that the options select.
	Format func(o Options) *Format

	// Check returns the faults of options whose values are all in range. It may be nil.
	Check func(o Options) []Fault

	// Plan returns the Plan of a generator with the options, which must include the number.
	Plan func(o Options) (Plan, error)
}

// Random reports whether the number has enough bits to be chosen at random.
func (k *Kind) Random() bool {
	return slices.ContainsFunc(k.Keys, func(key *Key) bool { return key.Type == MAC })
}

// Key returns the key with the given name, or nil if there is none.
func (k *Kind) Key(name string) *Key {
	for _, key := range k.Keys {
		if key.Name == name {
			return key
		}
	}
	return nil
}

// A Key describes an option.
type Key struct {
	Name     string
	Type     Type
	From, To int64 // range of an Integer
	Layout   bool  // whether the option changes the layout of ids
	Does     string

	limit func(o Options) int64 // if not nil, replaces To
}

// Most returns the highest allowed value, which may depend on other options.
func (k *Key) Most(o Options) int64 {
	if k.limit != nil {
		return k.limit(o)
	}
	return k.To
}

// Reserved reports whether v is a worker that [Kind.Numbered] makes of a number. No one may set
// such a worker by hand, because a store may assign the number.
func (k *Key) Reserved(v int64) bool {
	return k.Type == MAC && flake.Worker(v) == flake.NumberWorker(uint64(v))
}

// Type is the type of an option's value.
type Type int

// The types of options.
const (
	Integer = Type(iota) // a number
	Bool                 // 0 or 1
	Time                 // ms since 1970
	MAC                  // 48 bits
)

// Options are the values of keys.
type Options map[string]int64

// or returns the value of a key, or fallback if the key is not set.
func (o Options) or(key string, fallback int64) int64 {
	if v, ok := o[key]; ok {
		return v
	}
	return fallback
}

func (o Options) has(key string) bool {
	_, ok := o[key]
	return ok
}

// A Fault names a key with a wrong value and says what the value must be.
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

// IsNumber reports whether a key sets the number or part of it in any kind.
func IsNumber(key string) bool {
	return slices.ContainsFunc(Kinds, func(k *Kind) bool {
		return slices.ContainsFunc(k.Numbers, func(keys []string) bool { return slices.Contains(keys, key) })
	})
}

// Numbered returns a copy of o with the number split over keys: its upper part is the value of
// the first key.
func (k *Kind) Numbered(o Options, keys []string, number uint64) Options {
	o = maps.Collect(maps.All(o)) // never nil, even if o is
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

// MaxNumber returns the highest number below 2^16 that fits in keys.
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

// A Plan describes a generator and can open it.
type Plan struct {
	Who    string // for people: "partition 7"
	Worker uint64 // what [Source]'s Worker will return
	Range  Range

	// Open opens the generator. Its mark is in the file at path or, if o.Marks is set, in
	// o.Marks under the name path. If path is empty and o.Marks is nil, nothing is saved.
	Open func(ctx context.Context, path string, o flake.Options) (Generator, error)
}

// A Range is the set of ids that a generator can make, without their time: from First to Last
// in a space. Ranges in different spaces never overlap.
type Range struct {
	Key, Value  string // the number, for people
	Space       string
	First, Last uint64
}

func (p Range) String() string { return p.Key + " " + p.Value }

// Overlaps reports whether generators with these ranges can make identical ids.
func (p Range) Overlaps(other Range) bool {
	return p.Space == other.Space && p.First <= other.Last && other.First <= p.Last
}

// A Source makes ids of one format. It is safe for concurrent use.
type Source interface {
	Format() *Format
	// Reserve takes a run of 1 to n new ids. If the ids of a tick are used up, it waits for
	// the next tick, until ctx is done. meta is the metabyte, in formats that have one.
	Reserve(ctx context.Context, n int, meta uint8) (Run, error)
	// Worker returns the worker, machine or partition in every id.
	Worker() uint64
	// Last returns the time, in ms since 1970, and the sequence of the last id.
	Last() (milli uint64, sequence uint32)
	// Ready returns nil if ids can be made now and in the near future; otherwise it returns an
	// error, usually that of Reserve.
	Ready() error
	// Behind returns the minimum time until the clock has caught up with the last id, or 0 if
	// the clock is not behind.
	Behind() time.Duration
	// Waits returns the number of calls that waited because the ids of a tick were used up.
	Waits() uint64
	// PerTick returns the number of ids per tick.
	PerTick() int
	// Mark returns the saved mark, an upper bound on the times of ids, or the zero time if no
	// mark is kept.
	Mark() time.Time
	// LastSaved returns when the mark was last saved, and the error of the latest attempt if
	// that failed.
	LastSaved() (time.Time, error)
}

// A Generator is a [Source] that can be closed.
type Generator interface {
	Source
	io.Closer
}

// generator adapts the generator of a format's package to [Generator].
type generator[ID idOf[ID], S uint16 | uint32] struct {
	generatorOf[ID, S]
	format *Format
	worker uint64
	number func(ID) Number
}

type idOf[ID any] interface{ Plus(i int) ID }

// generatorOf has the methods that the generators of all packages share.
type generatorOf[ID idOf[ID], S uint16 | uint32] interface {
	Reserve(ctx context.Context, n int) (flake.RunOf[ID], error)
	Last() (milli uint64, sequence S)
	Ready() error
	Behind() time.Duration
	Waits() uint64
	PerTick() int
	Mark() time.Time
	LastSaved() (time.Time, error)
	Close() error
}

func (g *generator[ID, S]) Format() *Format { return g.format }
func (g *generator[ID, S]) Worker() uint64  { return g.worker }

func (g *generator[ID, S]) Last() (milli uint64, sequence uint32) {
	milli, last := g.generatorOf.Last()
	return milli, uint32(last)
}

// Reserve never calls Next: Next may use the random bits of an id as a counter, but clients may
// replace those bits.
func (g *generator[ID, S]) Reserve(ctx context.Context, n int, meta uint8) (Run, error) {
	run, err := g.generatorOf.Reserve(ctx, n)
	if err != nil {
		return Run{}, err
	}
	first := g.number(run.First) // with metabyte 0
	if g.format.Meta {
		first = first.add(Number{Lo: uint64(meta)}.shifted(g.format.meta))
	}
	return Run{first, run.Count, g.format}, nil
}

// opened returns a function that adapts the results of a package's NewGenerator or Open.
func opened[G any](adapt func(G) Generator) func(G, error) (Generator, error) {
	return func(ids G, err error) (Generator, error) {
		if err != nil {
			return nil, err
		}
		return adapt(ids), nil
	}
}
