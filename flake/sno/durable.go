package sno

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/flake-go/flake/flake/internal/durable"
	"github.com/flake-go/flake/flake/internal/tick"
)

const (
	// Window, 3 s, is how far ahead of the clock the mark is set, and so the longest
	// that a start after a crash waits, and the longest that ids go on while
	// the file cannot be written.
	Window = durable.Window

	// DefaultDowntime is how long ids may not have been made, 30 days.
	DefaultDowntime = durable.DefaultDowntime
)

// Durable is a [Generator] that keeps its promise across restarts: no id it hands
// out was handed out before by one on the same file. Close it when done.
type Durable struct {
	*Generator
	keeper *durable.Keeper
}

// Open locks the file at path, creating it if there is none, and gives a
// generator that goes on from what is in it: the snapshot of the one before, kept
// ahead of all that it did. The configuration is that of s, and without s that in
// the file; the rest of s counts only if there is no file.
//
// After a crash a start may wait for up to [Window]; ctx can end the wait. If the
// clock was set back by more, ids go on in that past with the other tick-tock bit,
// as in a generator that runs; Open fails with [ErrClockBackwards] only if that
// one may be used there too. It fails with [ErrClockAdvanced] if nothing has run
// for more than the allowable downtime, and otherwise if the file is locked, is no
// mark, is that of another format, is damaged, or cannot be written; the text says
// what to do. It never starts anew where a file was.
func Open(ctx context.Context, path string, s *Snapshot, o Options) (*Durable, error) {
	g, err := NewGenerator(s, o)
	if err != nil {
		return nil, err
	}
	keeper, err := durable.Open(ctx, path, &source{g, s != nil}, durable.Options{
		AllowableDowntime: o.AllowableDowntime, Logger: o.Logger, Saved: o.Saved,
	})
	if err != nil {
		return nil, err
	}
	return &Durable{g, keeper}, nil
}

// Mark is the time that no id with the tick-tock bit of the last one is later
// than, as it stands in the file.
func (d *Durable) Mark() time.Time { return d.keeper.Mark() }

// LastSaved is the time at which the file was last written, and the trouble
// there has been with it since, or nil.
func (d *Durable) LastSaved() (time.Time, error) { return d.keeper.LastSaved() }

// Ready tells whether there are ids now, and the file can be written, without
// which there soon are none. If not it tells what the trouble is.
func (d *Durable) Ready() error { return cmp.Or(d.Generator.Ready(), d.keeper.Ready()) }

// Close ends the generator, brings the mark back from ahead of the clock, so
// that the next start need not wait, and gives up the lock. Calls under way and
// later fail with [ErrClosed]. Close waits for the disk; if it cannot write, the
// next start waits instead. A second Close gives what the first did.
func (d *Durable) Close() error { return d.keeper.Close() }

// source is a generator as package durable knows it. The mark is the time that
// no id of the pass is later than. When the clock is set back there is a new pass,
// with a limit of its own that has to be raised first: so no id of it comes
// before its mark and its words are durable, and the mark need not stay ahead of
// all of the time that was.
type source struct {
	*Generator
	configured bool
}

// The words beside the mark.
const (
	wordPartition = iota
	wordMin
	wordMax
	wordDrifts
	wordSafe // ms since 1970
	words
)

func (s *source) Words() []uint64 {
	s.turning.Lock()
	defer s.turning.Unlock()
	p := s.now.Load()
	return []uint64{
		wordPartition: uint64(s.Partition().AsUint16()),
		wordMin:       uint64(s.SequenceMin()),
		wordMax:       uint64(s.SequenceMax()),
		wordDrifts:    uint64(p.drifts),
		wordSafe:      p.safe,
	}
}

func (s *source) Restore(w []uint64) error {
	if len(w) != words {
		return fmt.Errorf("flake: the timestamp file has %d words beside the time, where one of sno has %d: it is of another format of ids; set another timestamp_path", len(w), words)
	}
	for i, most := range [words]uint64{math.MaxUint16, math.MaxUint16, math.MaxUint16, math.MaxUint32, lastTick} {
		if w[i] > most {
			return fmt.Errorf("flake: word %d of the timestamp file is %d, and %d is the most: it is of another format of ids; set another timestamp_path", i+1, w[i], most)
		}
	}
	last := Snapshot{
		SequenceMin: uint16(w[wordMin]), SequenceMax: uint16(w[wordMax]),
		WallSafe: unitsOf(w[wordSafe]), Drifts: uint32(w[wordDrifts]),
	}
	last.Partition.PutUint16(uint16(w[wordPartition]))
	if s.configured {
		last.Partition, last.SequenceMin, last.SequenceMax = s.Partition(), s.SequenceMin(), s.SequenceMax()
	}
	return s.start(&last)
}

func (s *source) Turn(last uint64) (after uint64) {
	p := s.now.Load()
	s.now.Store(p.next(p.ids, last))
	return p.safe
}

func (s *source) Now() uint64         { return s.now.Load().ids.Now() }
func (s *source) Begin(last uint64)   { s.now.Load().ids.Begin(last) }
func (s *source) Last() (uint64, int) { return s.now.Load().ids.Last() }
func (s *source) Limit() *tick.Limit  { return s.now.Load().ids.Limit() }
func (s *source) Lower(milli uint64)  { s.now.Load().ids.Lower(milli) }

func (s *source) Behind() uint64         { return s.now.Load().lag() }
func (s *source) Doubted() time.Duration { return s.now.Load().ids.Doubted() }

func (s *source) Close() (last uint64) {
	s.turning.Lock()
	defer s.turning.Unlock()
	s.closed = true
	return s.now.Load().ids.Close()
}
