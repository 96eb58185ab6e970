package sno

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/internal/tick"
)

// A pass is the life of a generator until the clock is set back. The next pass has the other
// tick-tock bit. The safe field of a pass is an upper bound on the times of all earlier ids with
// the other bit. The ids of the next pass, which has that bit, are later than this bound. So the
// last id of a pass is the latest id with its bit.
type pass struct {
	ids    *tick.Generator
	drifts uint32 // number of earlier passes; its lowest bit is the tick-tock bit
	safe   uint64 // ms since 1970
	tag    uint64 // the tick-tock bit and the partition, as they are in an id
	min    uint16 // sequence of a tick's first id
	waits  uint64 // number of waits in earlier passes
}

// next returns the pass after p. last must be an upper bound on the ids of p.
func (p *pass) next(ids *tick.Generator, last uint64) *pass {
	return &pass{ids, p.drifts + 1, last, p.tag ^ 1<<24, p.min, p.waits + p.ids.Waits()}
}

// lag returns the time in ms until ids can be made again, with either bit.
func (p *pass) lag() uint64 {
	now := p.ids.Now()
	return min(p.ids.Behind(), max(p.safe+unit, now)-now)
}

func (p *pass) partition() (of Partition) {
	of.PutUint16(uint16(p.tag))
	return of
}

// max returns the highest sequence of a tick.
func (p *pass) max() uint16 { return p.min + uint16(p.ids.PerTick()-1) }

// passes is the source of a generator's ids: the current pass, and what the next one needs.
// For package durable, the mark is an upper bound on the ids of the current pass. When the
// clock is set back, a new pass begins, with a separate limit that must be raised before the
// pass makes ids. So a pass makes no id before its mark and words are saved, and the mark need
// not stay ahead of earlier passes.
type passes struct {
	now        atomic.Pointer[pass]
	clock      func() uint64
	sleep      tick.Sleeper // [tick.Sleep], except in tests
	configured bool         // whether the caller's snapshot, not the file, is the configuration

	turning sync.Mutex // guards closed, and changes of now
	closed  bool
}

// none is the pass of a zero Generator.
var none pass

func (s *passes) pass() *pass {
	if s == nil {
		return &none
	}
	return s.now.Load()
}

// start begins the first pass of a generator that continues from a snapshot.
func (s *passes) start(from *Snapshot) error {
	low, high, err := from.bounds()
	if err != nil {
		return err
	}
	for _, t := range []struct {
		name  string
		units int64
	}{{"now", from.Now}, {"wallHi", from.WallHi}, {"wallSafe", from.WallSafe}} {
		if t.units < 0 || t.units > maxUnits {
			return fmt.Errorf("flake: %s, %d units of 4 ms since 2010, is out of range: must be 0 to %d",
				t.name, t.units, int64(maxUnits))
		}
	}
	size := int(high) - int(low) + 1
	ids, err := tick.New(tick.Shape{First: Epoch, Last: lastTick, Unit: unit, PerTick: size}, s.clock)
	if err != nil {
		return err
	}
	ids.Sleep = s.sleep
	if from.WallHi > 0 {
		used := size
		if from.Now == from.WallHi {
			used = int(min(max(from.Sequence, uint32(low)), uint32(high))-uint32(low)) + 1
		}
		ids.Resume(milliOf(from.WallHi), used)
	}
	tag := uint64(from.Drifts&1)<<24 | uint64(from.Partition.AsUint16())
	s.now.Store(&pass{ids: ids, drifts: from.Drifts, safe: milliOf(from.WallSafe), tag: tag, min: low})
	return nil
}

// turn replaces p, which failed with err, if the next pass can begin. It returns nil if the
// caller should retry.
func (s *passes) turn(p *pass, err error) error {
	// The clock is read after the last id, so if it seems behind, it is behind.
	last, _ := p.ids.Last()
	now := p.ids.Now()
	s.turning.Lock()
	defer s.turning.Unlock()
	switch {
	case s.now.Load() != p: // another call has replaced p
		return nil
	case s.closed:
		return flake.ErrClosed
	case now < Epoch:
		return beforeEpoch(now)
	case now >= last:
		return nil
	case now <= p.safe:
		return err
	}
	last = p.ids.Close()
	s.now.Store(p.next(p.ids.Successor(now-unit), last))
	return nil
}

func beforeEpoch(now uint64) error {
	return fmt.Errorf("flake: the clock, %d ms since 1970, is before the earliest time that an id can have, %d",
		now, int64(Epoch))
}

// Ready returns nil if an id can be made now.
func (s *passes) Ready() error {
	p := s.pass()
	switch err := p.ids.Ready(); {
	case errors.Is(err, flake.ErrClockBackwards):
		if now := p.ids.Now(); now < Epoch {
			return beforeEpoch(now)
		}
		if p.lag() > 0 {
			return flake.ErrClockBackwards
		}
	case errors.Is(err, flake.ErrClosed):
		s.turning.Lock()
		defer s.turning.Unlock()
		if s.closed {
			return flake.ErrClosed
		}
	default:
		return err
	}
	return nil // the next pass can begin
}

// The words that are saved with a mark.
const (
	wordPartition = iota
	wordMin
	wordMax
	wordDrifts
	wordSafe // ms since 1970
	words
)

func (s *passes) Words() []uint64 {
	s.turning.Lock()
	defer s.turning.Unlock()
	p := s.now.Load()
	return []uint64{
		wordPartition: uint64(p.partition().AsUint16()),
		wordMin:       uint64(p.min),
		wordMax:       uint64(p.max()),
		wordDrifts:    uint64(p.drifts),
		wordSafe:      p.safe,
	}
}

func (s *passes) Restore(w []uint64) error {
	if len(w) != words {
		return fmt.Errorf("flake: the mark in the timestamp file has %d words, not the %d of sno: "+
			"the file is for another id format; set another timestamp_path", len(w), words)
	}
	for i, highest := range [words]uint64{math.MaxUint16, math.MaxUint16, math.MaxUint16, math.MaxUint32, lastTick} {
		if w[i] > highest {
			return fmt.Errorf("flake: word %d of the timestamp file is %d, above %d: the file is for another id format; "+
				"set another timestamp_path", i+1, w[i], highest)
		}
	}
	last := Snapshot{
		SequenceMin: uint16(w[wordMin]), SequenceMax: uint16(w[wordMax]),
		WallSafe: unitsOf(w[wordSafe]), Drifts: uint32(w[wordDrifts]),
	}
	last.Partition.PutUint16(uint16(w[wordPartition]))
	if s.configured {
		p := s.now.Load()
		last.Partition, last.SequenceMin, last.SequenceMax = p.partition(), p.min, p.max()
	}
	return s.start(&last)
}

func (s *passes) Rewind(last uint64) (after uint64) {
	p := s.now.Load()
	s.now.Store(p.next(p.ids, last))
	return p.safe
}

// Exclude sets after as an exclusive lower bound on the times of new passes.
func (s *passes) Exclude(after uint64) {
	p := s.now.Load()
	p.safe = max(p.safe, after)
}

func (s *passes) Now() uint64            { return s.pass().ids.Now() }
func (s *passes) Begin(last uint64)      { s.pass().ids.Begin(last) }
func (s *passes) Last() (uint64, int)    { return s.pass().ids.Last() }
func (s *passes) Limit() *tick.Limit     { return s.pass().ids.Limit() }
func (s *passes) Lower(milli uint64)     { s.pass().ids.Lower(milli) }
func (s *passes) Halt()                  { s.pass().ids.Halt() }
func (s *passes) Behind() uint64         { return s.pass().lag() }
func (s *passes) Doubted() time.Duration { return s.pass().ids.Doubted() }

func (s *passes) Close() (last uint64) {
	s.turning.Lock()
	defer s.turning.Unlock()
	s.closed = true
	return s.now.Load().ids.Close()
}
