package sno

import (
	"fmt"
	"math"

	"github.com/flake-go/flake/flake/internal/tick"
)

// minPool is the least number of sequence numbers that a generator has, as the
// peer takes it (which documents 4).
const minPool = 6

// Snapshot is both what a generator is configured with and what it has done, so
// that another can go on from there. Its JSON is that of muyo/sno. Times are in
// units of 4 ms since 2010-01-01 UTC.
type Snapshot struct {
	Partition Partition `json:"partition"`

	// SequenceMin and SequenceMax are the lowest and the highest sequence
	// number, in either order, so that generators can share a partition: at least 6
	// numbers. A SequenceMax of 0 means 65535, unless SequenceMin is
	// that.
	SequenceMin uint16 `json:"sequenceMin"`
	SequenceMax uint16 `json:"sequenceMax"`

	// Sequence is the last sequence number used at WallHi. It counts if Now is
	// WallHi; else all of them count as used.
	Sequence uint32 `json:"sequence"`

	Now      int64  `json:"now"`      // when the snapshot was taken
	WallHi   int64  `json:"wallHi"`   // the time of the last id; 0: none
	WallSafe int64  `json:"wallSafe"` // no id with the other tick-tock bit is later
	Drifts   uint32 `json:"drifts"`   // how often the tick-tock bit was flipped
}

// BoundsError says why a generator cannot have the sequence numbers of a [Snapshot].
type BoundsError struct {
	Min, Max uint16 // the lowest and the highest
	Sequence uint32 // the last one used
	What     string // what is wrong with them
}

func (e *BoundsError) Error() string {
	return fmt.Sprintf("flake: sequence numbers from %d to %d, of which %d was used last: %s", e.Min, e.Max, e.Sequence, e.What)
}

// bounds returns the sequence bounds that are meant.
func (s *Snapshot) bounds() (low, high uint16, err error) {
	low, high = s.SequenceMin, s.SequenceMax
	if high == 0 && low != math.MaxUint16 {
		high = math.MaxUint16
	}
	low, high = min(low, high), max(low, high)
	switch {
	case int(high)-int(low)+1 < minPool:
		err = &BoundsError{low, high, s.Sequence, fmt.Sprintf("a generator has at least %d", minPool)}
	case s.Sequence != 0 && s.Sequence < uint32(low):
		err = &BoundsError{low, high, s.Sequence, "the last one used is below them"}
	}
	return low, high, err
}

// start returns the first pass of a generator that goes on from the snapshot.
func (s *Snapshot) start(clock func() uint64) (*pass, error) {
	low, high, err := s.bounds()
	if err != nil {
		return nil, err
	}
	for _, t := range []struct {
		name  string
		units int64
	}{{"now", s.Now}, {"wallHi", s.WallHi}, {"wallSafe", s.WallSafe}} {
		if t.units < 0 || t.units > maxUnits {
			return nil, fmt.Errorf("flake: %s is %d units of 4 ms since 2010, which is from 0 to %d", t.name, t.units, int64(maxUnits))
		}
	}
	size := int(high) - int(low) + 1
	ids, err := tick.New(tick.Shape{First: Epoch, Last: lastTick, Unit: unit, PerTick: size}, clock)
	if err != nil {
		return nil, err
	}
	if s.WallHi > 0 {
		used := size
		if s.Now == s.WallHi {
			used = int(min(max(s.Sequence, uint32(low)), uint32(high))-uint32(low)) + 1
		}
		ids.Resume(milliOf(s.WallHi), used)
	}
	tag := uint64(s.Drifts&1)<<24 | uint64(s.Partition.AsUint16())
	return &pass{ids: ids, drifts: s.Drifts, safe: milliOf(s.WallSafe), tag: tag, min: low}, nil
}

// Snapshot is what the generator has done. One to go on from is to be taken when the
// generator makes no more ids.
func (g *Generator) Snapshot() Snapshot {
	s := g.core.Source.done()
	s.Now = unitsOf(g.core.Source.Now())
	return s
}

// done is what the generator has done until now.
func (s *passes) done() Snapshot {
	p := s.pass()
	of := Snapshot{
		Partition: p.partition(), SequenceMin: p.min, SequenceMax: p.max(), Sequence: uint32(p.min),
		WallSafe: unitsOf(p.safe), Drifts: p.drifts,
	}
	milli, used := p.ids.Last()
	of.WallHi = unitsOf(milli)
	if used > 0 {
		of.Sequence += uint32(used) - 1
	}
	return of
}

func milliOf(units int64) uint64 { return Epoch + uint64(units)*unit }
func unitsOf(milli uint64) int64 { return int64((max(milli, Epoch) - Epoch) / unit) }
