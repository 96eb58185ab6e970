package idserver

import (
	"context"
	"time"
)

// Format is what tells one kind of ids from another.
type Format interface {
	// Name is one word, such as "flake" or "snowflake".
	Name() string
	// Size is the bytes of an id, 8 to 16.
	Size() int
	// AppendCanonical appends the format's own text of an id.
	AppendCanonical(dst []byte, id Number) []byte
	// Parse reads any of the format's own texts, the canonical one among them.
	// Digits in a base are none.
	Parse(text string) (Number, error)
	// Fields takes an id apart, the most significant field first.
	Fields(id Number) []Field
	// Span returns the lowest and the highest id that any worker can make from the
	// millisecond first to last, both included and since 1970; an error for a
	// time that the format cannot hold.
	Span(first, last uint64) (lowest, highest Number, err error)
	// Meta tells whether an id takes a metabyte.
	Meta() bool
}

// Field is a part of an id.
type Field struct {
	Name   string // "time", "worker", "sequence" or the format's own word
	Value  uint64 // of time: ms since 1970
	Offset int    // of its first bit, from the id's most significant one
	Width  int    // in bits
}

// Source hands out ids of one format. Any number of goroutines may use it.
type Source interface {
	Format() Format
	// Reserve takes 1 to n ids that follow each other, never to be handed out
	// again. When those of a tick are used up it waits for the next, until the
	// end of ctx. meta is for a format that has one.
	Reserve(ctx context.Context, n int, meta uint8) (Run, error)
	// Last returns the time, in ms since 1970, and the sequence that are used up.
	Last() (milli uint64, sequence uint32)
	// Ready tells whether there are ids now, and will be soon. If not it fails, as
	// a rule as Reserve would.
	Ready() error
	// Behind is how long it takes at least until the clock has caught up, so that
	// there are ids again; 0: it is not behind.
	Behind() time.Duration
	Worker() uint64
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
