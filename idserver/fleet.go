package idserver

import "time"

// Fleet is what a node tells others, so that they notice if their ids could be its own.
type Fleet struct {
	Time    time.Time // now, by its clock
	Since   time.Time // it hands out ids; zero: it is about to ask its peers first
	Workers []Worker  // of those of its generators that hand out ids
}

// Worker is what tells a generator's ids from those of others of their kind: the bits
// besides the time, from first to last.
type Worker struct {
	Generator   string
	Kind        string // ids of two kinds are never compared
	First, Last uint64
}
