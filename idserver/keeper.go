package idserver

import "time"

// keeper is the part of a [Source] that a generator with a file has.
type keeper interface {
	Mark() time.Time
	LastSaved() (time.Time, error)
}

// keeperOf returns the generator, or noKeeper if it has no file.
func keeperOf(ids any) keeper {
	if k, ok := ids.(keeper); ok {
		return k
	}
	return noKeeper{}
}

type noKeeper struct{}

func (noKeeper) Mark() time.Time               { return time.Time{} }
func (noKeeper) LastSaved() (time.Time, error) { return time.Time{}, nil }
