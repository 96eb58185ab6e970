// Package idserver answers requests to a generator. The methods of a [Server] answer requests of
// each [Kind], for every [formats.Format], and count them. The doors, package iderl for Erlang and
// package idhttp for HTTP, call these methods, and write ids in the form that the caller wants.
package idserver

import (
	"context"
	"iter"
	"runtime"
	"slices"
	"time"

	"github.com/flake-go/flake/flake/formats"
)

// Limits on the number of ids that one request may ask for.
const (
	MaxMany  = 1 << 16 // KindGetMany and KindGetBinary
	MaxLease = 1 << 20 // KindLease

	// MaxTicks limits how long a request takes: it may ask for at most the ids of this many
	// ticks, or for MaxInline ids if that is more. This limit is below MaxLease only for a
	// generator that makes fewer than 1,024 ids a tick.
	MaxTicks = 1024
)

// MaxInline is the largest number of ids that are made while other requests wait. After each
// MaxInline ids, a larger request lets other requests run.
const MaxInline = 256

// Server answers requests for the ids of one source. It is safe for concurrent use, and must not
// be copied.
type Server struct {
	IDs     formats.Source
	Version string
	Started time.Time
	From    func() Origin // returns where the worker came from; nil if unknown
	Meta    uint8         // the metabyte of ids whose request has none

	turns  turns // for requests for more than MaxInline ids
	counts counts
}

// Meta is the metabyte that a request sets for its ids. The zero Meta means the server's.
type Meta struct {
	Byte  uint8
	Given bool
}

// Get takes the next id. If a metabyte is given, the id's format must have one.
func (s *Server) Get(ctx context.Context, meta Meta) (formats.Number, error) {
	run, err := formats.Run{}, ErrBadArgument
	if b, ok := s.metabyte(meta); ok {
		run, err = s.IDs.Reserve(ctx, 1, b)
	}
	return run.First, s.Count(KindGet, err)
}

// Take takes n ids and returns all of them, in ascending order, or an error. If it fails midway,
// the ids taken until then are lost. kind is KindGetMany, KindGetBinary or KindLease. n must be
// from 1 to s.Most(MaxMany), or for a lease to s.Most(MaxLease). A request for more than MaxInline
// ids takes turns with other requests; t is its Turn. If a metabyte is given, the format must have
// one.
func (s *Server) Take(ctx context.Context, kind Kind, n int, meta Meta, t *Turn) (runs []formats.Run, err error) {
	limit := MaxMany
	if kind == KindLease {
		limit = MaxLease
	}
	if b, ok := s.metabyte(meta); !ok || n < 1 || n > s.Most(limit) {
		err = ErrBadArgument
	} else if runs, err = s.reserve(ctx, n, b, t); err == nil {
		s.counts.ids.Add(uint64(n))
	}
	return runs, s.Count(kind, err)
}

// Span returns the lowest and the highest id with a time from first to last, in ms since 1970,
// for a request of kind KindNotional or KindSpan.
func (s *Server) Span(kind Kind, first, last uint64) (lowest, highest formats.Number, err error) {
	if lowest, highest, err = s.IDs.Format().Span(first, last); err != nil || first > last {
		lowest, highest, err = formats.Number{}, formats.Number{}, ErrBadArgument
	}
	return lowest, highest, s.Count(kind, err)
}

// Decompose parses an id, as [formats.Format.Parse] does, for a caller that asks for its fields.
func (s *Server) Decompose(text string, base int) (id formats.Number, err error) {
	if id, err = s.IDs.Format().Parse(text, base); err != nil {
		err = ErrBadArgument
	}
	return id, s.Count(KindDecompose, err)
}

// Most returns the largest number of ids that one request may ask for; limit is the maximum for
// all formats.
func (s *Server) Most(limit int) int {
	return min(limit, max(MaxInline, MaxTicks*s.IDs.PerTick()))
}

// metabyte returns the metabyte for a request's ids, and whether the format allows it.
func (s *Server) metabyte(meta Meta) (b uint8, ok bool) {
	if !meta.Given {
		return s.Meta, true
	}
	return meta.Byte, s.IDs.Format().Meta
}

// reserve takes n ids, in ascending order, or fails. If t is not nil, it takes them in turns.
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
	// If the sequence starts at random, the runs of a tick are in any order.
	slices.SortFunc(runs, func(a, b formats.Run) int { return a.First.Compare(b.First) })
	return runs, nil
}

// All yields the ids of runs. It lets other goroutines run after each MaxInline ids.
func All(runs []formats.Run) iter.Seq[formats.Number] {
	return func(yield func(formats.Number) bool) {
		n := 0
		for _, run := range runs {
			for i := range run.Count {
				if n == MaxInline {
					runtime.Gosched()
					n = 0
				}
				n++
				if !yield(run.At(i)) {
					return
				}
			}
		}
	}
}
