// Package idserver holds what can be asked of a generator: the methods of a
// [Server], which are the same for every [formats.Format] of ids, and count what they are
// asked. The doors call these methods, and write ids as their callers want them: for
// Erlang package iderl, for HTTP package idhttp.
package idserver

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"slices"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
)

// The most ids that one request may ask for.
const (
	MaxMany  = 1 << 16 // get_many and get_binary
	MaxLease = 1 << 20 // lease

	// MaxTicks bounds the time that a request takes: it is for no more ids than
	// there are in so many ticks, if more than MaxInline. Only a generator of less
	// than 1,024 ids a tick has a smaller bound by it than MaxLease.
	MaxTicks = 1024
)

// MaxInline is the most ids that are made while others wait. A request for more
// lets all others go first after each so many.
const MaxInline = 256

// Server answers requests from one source of ids. Any number of goroutines may
// use it. It must not be copied.
type Server struct {
	IDs     formats.Source
	Version string
	Started time.Time
	From    func() Origin // where the worker came from; nil: nobody tells
	Meta    uint8         // of ids that nobody asks a metabyte for

	turns  turns // of requests for more than MaxInline ids
	counts counts
}

// Get takes the next id.
func (s *Server) Get(ctx context.Context) (formats.Number, error) {
	run, err := s.IDs.Reserve(ctx, 1, s.Meta)
	s.count(opGet, err)
	return run.First, err
}

// GetMeta takes the next id, with a metabyte. Its format has to have one.
func (s *Server) GetMeta(ctx context.Context, meta uint8) (formats.Number, error) {
	run, err := formats.Run{}, ErrBadArgument
	if s.IDs.Format().Meta {
		run, err = s.IDs.Reserve(ctx, 1, meta)
	}
	s.count(opGet, err)
	return run.First, err
}

// Meta is a metabyte for ids; the zero value: none is asked for, and they have the
// server's.
type Meta struct {
	Byte  uint8
	Given bool
}

// GetMany takes n ids, ascending, 1 to MaxMany: all of them, or it fails. More than
// MaxInline are taken in turns. If a metabyte is given, their format has to have one.
func (s *Server) GetMany(ctx context.Context, n int, meta Meta, t *Turn) ([]formats.Run, error) {
	return s.take(ctx, opGetMany, n, MaxMany, meta, t)
}

// GetBinary is GetMany, and counted apart.
func (s *Server) GetBinary(ctx context.Context, n int, t *Turn) ([]formats.Run, error) {
	return s.take(ctx, opGetBinary, n, MaxMany, Meta{}, t)
}

// Lease is GetMany of 1 to MaxLease ids.
func (s *Server) Lease(ctx context.Context, n int, meta Meta, t *Turn) ([]formats.Run, error) {
	return s.take(ctx, opLease, n, MaxLease, meta, t)
}

// Notional returns the lowest id of a time, in ms since 1970.
func (s *Server) Notional(milli uint64) (formats.Number, error) {
	lowest, _, err := s.span(opNotional, milli, milli)
	return lowest, err
}

// Span returns the lowest and the highest id from one time to another.
func (s *Server) Span(first, last uint64) (lowest, highest formats.Number, err error) {
	return s.span(opSpan, first, last)
}

// Decompose reads an id, as [formats.Format.Parse] does, and takes it apart.
func (s *Server) Decompose(text string, base int) (id formats.Number, fields []formats.Field, err error) {
	if id, err = s.IDs.Format().Parse(text, base); err == nil {
		fields = s.IDs.Format().Fields(id)
	} else {
		err = ErrBadArgument
	}
	s.count(opDecompose, err)
	return id, fields, err
}

// Invalid counts a request with an argument of the wrong type or out of range, and returns
// ErrBadArgument.
func (s *Server) Invalid() error {
	s.count(opInvalid, ErrBadArgument)
	return ErrBadArgument
}

// Unknown counts a request that no method is for.
func (s *Server) Unknown() { s.count(opUnknown, nil) }

// Most returns the most ids that one request may ask for, where limit is that of all
// formats.
func (s *Server) Most(limit int) int {
	return min(limit, max(MaxInline, MaxTicks*s.IDs.PerTick()))
}

func (s *Server) span(op op, first, last uint64) (lowest, highest formats.Number, err error) {
	if lowest, highest, err = s.IDs.Format().Span(first, last); err != nil || first > last {
		lowest, highest, err = formats.Number{}, formats.Number{}, ErrBadArgument
	}
	s.count(op, err)
	return lowest, highest, err
}

// take takes n ids, 1 to most.
func (s *Server) take(ctx context.Context, op op, n, most int, meta Meta, t *Turn) (runs []formats.Run, err error) {
	if !meta.Given {
		meta.Byte = s.Meta
	}
	if n < 1 || n > s.Most(most) || meta.Given && !s.IDs.Format().Meta {
		err = ErrBadArgument
	} else if runs, err = s.reserve(ctx, n, meta.Byte, t); err == nil {
		s.counts.ids.Add(uint64(n))
	}
	s.count(op, err)
	return runs, err
}

// reserve takes n ids, ascending, or fails. If t is not nil, in turns.
func (s *Server) reserve(ctx context.Context, n int, meta uint8, t *Turn) (runs []formats.Run, err error) {
	for n > 0 {
		if t != nil {
			if err := t.next(ctx); err != nil {
				return nil, err
			}
		}
		run, err := s.IDs.Reserve(ctx, min(n, s.share()), meta)
		if err != nil {
			return nil, err
		}
		if n -= run.Count; n > 0 {
			runtime.Gosched()
		}
		if last := len(runs) - 1; last >= 0 && runs[last].FollowedBy(run) {
			runs[last].Count += run.Count
		} else {
			runs = append(runs, run)
		}
	}
	// Those of one tick come in any order from a format that starts it anywhere.
	slices.SortFunc(runs, func(a, b formats.Run) int { return a.First.Compare(b.First) })
	return runs, nil
}

// All yields the ids of runs. After each MaxInline others go first.
func All(runs []formats.Run) iter.Seq[formats.Number] {
	return func(yield func(formats.Number) bool) {
		n := 0
		for _, run := range runs {
			for i := range run.Count {
				if n++; n%MaxInline == 0 {
					runtime.Gosched()
				}
				if !yield(run.At(i)) {
					return
				}
			}
		}
	}
}

var (
	// ErrBadArgument is the answer to an argument out of range.
	ErrBadArgument = errors.New("badarg")

	// ErrBusy is the answer to a request for which there is no room.
	ErrBusy = errors.New("system_limit")
)

// results are what calls come to, in the words of Erlang: success first, and last what
// any other error comes to.
var results = [...]struct {
	word string
	err  error
}{
	{"ok", nil},
	{"badarg", ErrBadArgument},
	{"clock_running_backwards", flake.ErrClockBackwards},
	{"timestamp_not_saved", flake.ErrTimestampNotSaved},
	{"shutdown", flake.ErrClosed},
	{"system_limit", ErrBusy},
}

// Reason returns the word for an error of a Server.
func Reason(err error) string { return results[resultOf(err)].word }

// resultOf returns the place of an error in results.
func resultOf(err error) int {
	for i := range results {
		if errors.Is(err, results[i].err) {
			return i
		}
	}
	return len(results) - 1
}
