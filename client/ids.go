package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"
)

// The most ids that one request asks for. Larger calls take several requests.
const (
	maxMany  = 1 << 16
	maxLease = 1 << 20

	// maxAny is how many every generator takes: with one id a tick, those of 1,024
	// ticks. What refuses more is asked for half as many.
	maxAny = 1024
)

// Canonical is the base of a format's own text, for [IDs.Texts]. A [Failover] does not
// take it, because it cannot compare such texts.
const Canonical = -1

// Door is a way to a node's generators: a [*Node], a [*HTTP], or several of them as a
// [*Failover]. For tests there is package clienttest.
type Door interface {
	// Close ends connections. Calls of its IDs fail from then on.
	Close() error

	get(ctx context.Context, generator string) (id []byte, err error)
	texts(ctx context.Context, generator string, n, base int) ([]string, error)
	lease(ctx context.Context, generator string, n, size int) ([]run, error) // of ids of size bytes
	notional(ctx context.Context, generator string, milli uint64) (id []byte, err error)
	span(ctx context.Context, generator string, first, last uint64) (lowest, highest []byte, err error)
	decompose(ctx context.Context, generator string, id []byte) ([]Field, error)
}

// run is a Run as received.
type run struct {
	first []byte
	count int
}

// Field is a part of an id: its "time" in milliseconds since 1970, "worker",
// "sequence", or whatever else the format has.
type Field struct {
	Name  string
	Value uint64
}

// IDs are the ids of one generator of a node. Any number of goroutines may use it.
//
// All methods return ctx's error once ctx is done. No id is ever handed out twice. The
// ids of an answer ascend, and are above those of all calls that returned before its
// call began, in any goroutine. There are two exceptions: a snowflake's ids of one
// millisecond with random_start are in no order, and sno's are lower after the node's
// clock has been set back. A node that replaces another at the same address may have a
// clock behind the other's: until its ids are above, calls fail with [ErrNotAbove]. An
// IDs remembers what it has handed out; a new one starts from nothing.
//
// A failed call can be repeated safely: at worst some ids go to nobody.
type IDs[ID Format] struct {
	door      Door
	generator string

	mu      sync.Mutex
	highest number // handed out
}

// NewIDs returns the ids of the generator with that name; each node has "flake". It
// asks nothing of the node yet. ID is the type of the generator's format in the node's
// configuration: flake.ID for "flake". Calls fail if it is not.
func NewIDs[ID Format](door Door, generator string) *IDs[ID] {
	return &IDs[ID]{door: door, generator: generator}
}

// Next returns the next id.
func (g *IDs[ID]) Next(ctx context.Context) (id ID, err error) {
	before := g.last()
	b, err := g.door.get(ctx, g.generator)
	if err != nil {
		return id, err
	}
	next, err := handedOut[ID](b)
	if err == nil {
		err = g.ascend(before, numbers{numberOf(next), 1})
	}
	if err != nil {
		return id, err
	}
	return next, nil
}

// last returns the highest id handed out.
func (g *IDs[ID]) last() number {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.highest
}

// ascend records ids, or refuses them if they may not follow each other, the first one
// the highest when they were asked for.
func (g *IDs[ID]) ascend(before number, runs ...numbers) error {
	for _, r := range runs {
		if !r.first.follows(before) {
			return fmt.Errorf("generator %s: %w", g.generator, ErrNotAbove)
		}
		before = r.first.plus(r.count - 1)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.highest.below(before) {
		g.highest = before
	}
	return nil
}

// NextN fills dst with the next ids and returns how many; less than len(dst) only with
// an error.
func (g *IDs[ID]) NextN(ctx context.Context, dst []ID) (int, error) {
	if len(dst) == 0 {
		return 0, nil
	}
	runs, err := g.Lease(ctx, len(dst))
	done := 0
	for _, r := range runs {
		first := numberOf(r.First)
		for i := range uint64(r.Count) {
			dst[done] = idOf[ID](first.plus(i).fresh())
			done++
		}
	}
	return done, err
}

// Lease returns the next n ids as runs; n is 1 or more. The node never hands them out
// again. A million ids take a few dozen bytes for each millisecond in which they were
// made.
func (g *IDs[ID]) Lease(ctx context.Context, n int) ([]Run[ID], error) {
	if n < 1 {
		return nil, outOfRange("n", n, 1, math.MaxInt)
	}
	before := g.last()
	var all []Run[ID]
	var ids []numbers
	for most := maxLease; n > 0; {
		ask := min(n, most)
		runs, err := g.door.lease(ctx, g.generator, ask, sizeOf[ID]())
		if errors.Is(err, ErrBadArgument) && ask > maxAny {
			most = max(ask/2, maxAny)
			continue
		}
		if err != nil {
			return nil, err
		}
		got := 0
		for _, r := range runs {
			first, err := handedOut[ID](r.first)
			if err != nil {
				return nil, err
			}
			if r.count < 1 || r.count > ask-got {
				return nil, fmt.Errorf("asked for %d ids, the node answered with a run of %d", ask, r.count)
			}
			if most := left(first); uint64(r.count) > most {
				return nil, fmt.Errorf("the node answered with a run of %d ids from %x on, where %d have that worker and time", r.count, r.first, most)
			}
			all = append(all, Run[ID]{first, r.count})
			ids = append(ids, numbersOf(Run[ID]{first, r.count}))
			got += r.count
		}
		if got < ask {
			return nil, fmt.Errorf("asked for %d ids, the node answered with %d", ask, got)
		}
		n -= got
	}
	if err := g.ascend(before, ids...); err != nil {
		return nil, err
	}
	return all, nil
}

// Texts returns the next n ids as texts made by the node: in base 2 to 62 with digits
// 0-9A-Za-z and no leading zeros, or with [Canonical] in the format's own text. n is 1
// or more.
func (g *IDs[ID]) Texts(ctx context.Context, n, base int) ([]string, error) {
	if n < 1 {
		return nil, outOfRange("n", n, 1, math.MaxInt)
	}
	before := g.last()
	var all []string
	var ids []numbers
	for most := maxMany; len(all) < n; {
		ask := min(n-len(all), most)
		texts, err := g.door.texts(ctx, g.generator, ask, base)
		if errors.Is(err, ErrBadArgument) && ask > maxAny {
			most = max(ask/2, maxAny)
			continue
		}
		if err != nil {
			return nil, err
		}
		if len(texts) != ask {
			return nil, fmt.Errorf("asked for %d ids, the node answered with %d", ask, len(texts))
		}
		for _, text := range texts {
			if i := strings.IndexFunc(text, isNoDigit); i >= 0 {
				return nil, fmt.Errorf("the node answered with %.40q, which is no id", text)
			}
			if id, err := numberOfText[ID](text, base); err == nil { // else of another format
				ids = append(ids, numbers{id, 1})
			}
		}
		all = append(all, texts...)
	}
	if err := g.ascend(before, ids...); err != nil {
		return nil, err
	}
	return all, nil
}

// isNoDigit guards texts, which may be shown on a terminal. UUIDs have hyphens.
func isNoDigit(r rune) bool {
	return r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
}

// Notional returns the lowest id of a millisecond, with an empty worker and sequence.
// It serves for comparison and is handed out to nobody.
func (g *IDs[ID]) Notional(ctx context.Context, t time.Time) (id ID, err error) {
	milli, err := milliOf(t)
	if err != nil {
		return id, err
	}
	b, err := g.door.notional(ctx, g.generator, milli)
	if err != nil {
		return id, err
	}
	return fromBytes[ID](b)
}

// Span returns the lowest and the highest id of the milliseconds from first to last,
// inclusive, for range scans.
func (g *IDs[ID]) Span(ctx context.Context, first, last time.Time) (lowest, highest ID, err error) {
	from, err := milliOf(first)
	if err != nil {
		return lowest, highest, err
	}
	to, err := milliOf(last)
	if err != nil {
		return lowest, highest, err
	}
	l, h, err := g.door.span(ctx, g.generator, from, to)
	if err != nil {
		return lowest, highest, err
	}
	if lowest, err = fromBytes[ID](l); err == nil {
		highest, err = fromBytes[ID](h)
	}
	return lowest, highest, err
}

func milliOf(t time.Time) (uint64, error) {
	if s := t.Unix(); s < 0 || s >= math.MaxInt64/1000 { // else UnixMilli overflows
		return 0, fmt.Errorf("%w: %v is before 1970, or in too many years", ErrBadArgument, t)
	}
	return uint64(t.UnixMilli()), nil
}

// Decompose returns the fields of an id, the most significant first.
func (g *IDs[ID]) Decompose(ctx context.Context, id ID) ([]Field, error) {
	return g.door.decompose(ctx, g.generator, bytesOf(numberOf(id), sizeOf[ID]()))
}
