// Package client gets ids from a flake node, over the Erlang distribution or over HTTP, and
// calls gen_servers and functions of any Erlang node. The program does not become a node.
//
//	node := client.NewNode("flake@127.0.0.1", client.Dialer{Cookie: "flake"})
//	defer node.Close()
//	ids := client.NewIDs[flake.ID](node, "flake")
//	id, err := ids.Next(ctx)
//
// Start at [NewNode] or [NewHTTP], the two doors to a node, and at [IDs], which is the same
// for both. [NewFailover] combines several nodes into one door. [IDs.Leased] returns ids
// without a round trip. A function that takes a [flake.Nexter] accepts any of them, or a
// generator in the program itself. [Node.Call] and [Node.Apply] make other calls to a node.
// Package clienttest provides a node for tests.
package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/internal/escape"
)

// The maximum number of ids in one request. Larger calls make several requests.
const (
	maxMany  = 1 << 16
	maxLease = 1 << 20

	// maxAny is a number of ids that no generator refuses. A larger request that is
	// refused is repeated for half as many.
	maxAny = 1024
)

// Bases for [IDs.Texts] besides 2 to 62.
const (
	Canonical = -1 // the format's own form; a [Failover] refuses it, because it cannot compare such texts
	UUID      = -2 // the form of a UUID, for ids of 16 bytes
	Crockford = -3 // Crockford's base 32, upper case, padded: 26, 16 or 13 digits, which sort as ids do
)

// nameOf returns the name of a base in requests to a node.
func nameOf(base int) string {
	switch base {
	case Canonical:
		return "canonical"
	case UUID:
		return "uuid"
	case Crockford:
		return "crockford"
	}
	return strconv.Itoa(base)
}

// Door provides access to a node's generators: a [*Node], a [*HTTP], or several of them as a
// [*Failover]. Package clienttest provides one for tests.
type Door interface {
	// Close closes connections. Later calls fail.
	Close() error

	get(ctx context.Context, generator string) (id []byte, err error)
	texts(ctx context.Context, generator string, n, base int) ([]string, error)
	lease(ctx context.Context, generator string, n, size int) ([]run, error) // size is the size of an id
	notional(ctx context.Context, generator string, milli uint64) (id []byte, err error)
	span(ctx context.Context, generator string, first, last uint64) (lowest, highest []byte, err error)
	decompose(ctx context.Context, generator string, id []byte) ([]Field, error)
}

// run is a Run whose first id is in the bytes received.
type run struct {
	first []byte
	count int
}

// Field is a part of an id: its "time" in milliseconds since 1970, "worker", "sequence", or
// another field of the format.
type Field struct {
	Name  string
	Value uint64
}

// IDs returns ids of one generator of a node. It is safe for concurrent use.
//
// All methods return ctx's error when ctx is done. No id is returned twice. The ids of a call
// ascend and are above those of all calls that returned before it started, in any goroutine.
// There are two exceptions: snowflakes with random_start are not ordered within a millisecond,
// and sno's ids are lower after the node's clock has been set back. If a node is replaced at
// the same address by another whose clock is behind, calls fail with [ErrNotAbove] until the
// new node's ids are above the earlier ones. An IDs remembers the highest id it has returned;
// it does not share it with other IDs.
//
// A failed call can be repeated safely: at worst, some ids are never used.
type IDs[ID Format] struct {
	door      Door
	generator string

	mu      sync.Mutex
	highest number // the highest id returned
}

// NewIDs returns the IDs of the named generator; every node has "flake". It makes no request.
// ID must be the type for the format that the node's configuration gives the generator, such
// as flake.ID for "flake"; otherwise calls fail.
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

// last returns the highest id returned so far.
func (g *IDs[ID]) last() number {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.highest
}

// ascend records the ids of a call. It returns [ErrNotAbove] if the runs are not in order or do
// not follow before, the highest id when the call started.
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

// NextN fills dst with the next ids and returns how many it filled in, which is less than
// len(dst) only if there is an error.
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

// Lease returns the next n ids as runs; n must be at least 1. The node does not return them again. The
// runs take a few dozen bytes for each millisecond in which ids were made, even for a million ids.
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
				return nil, fmt.Errorf("requested %d ids, but the node answered with a run of %d", ask, r.count)
			}
			if most := remaining(first); uint64(r.count) > most {
				return nil, fmt.Errorf("the node answered with a run of %d ids from %x, "+
					"but only %d have that worker and time",
					r.count, r.first, most)
			}
			all = append(all, Run[ID]{first, r.count})
			ids = append(ids, numbersOf(Run[ID]{first, r.count}))
			got += r.count
		}
		if got < ask {
			return nil, fmt.Errorf("requested %d ids, but the node answered with %d", ask, got)
		}
		n -= got
	}
	if err := g.ascend(before, ids...); err != nil {
		return nil, err
	}
	return all, nil
}

// Texts returns the next n ids as texts made by the node. base is from 2 to 62, with digits
// 0-9A-Za-z and no leading zeros, or [Canonical], [UUID] or [Crockford]. n must be at least 1.
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
			return nil, fmt.Errorf("requested %d ids, but the node answered with %d", ask, len(texts))
		}
		for _, text := range texts {
			if i := strings.IndexFunc(text, isNoDigit); i >= 0 {
				return nil, fmt.Errorf("the node answered with %.40q, which is not an id", text)
			}
			if id, err := numberOfText[ID](text, base); err == nil { // otherwise it is another format's text
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

// isNoDigit reports whether r cannot be part of an id's text, which in a UUID contains hyphens.
// Other characters may be unsafe on a terminal.
func isNoDigit(r rune) bool {
	return r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
}

// Notional returns the lowest id of a millisecond: its worker and sequence are 0. The id is only
// for comparisons: no generator returns it.
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

// Span returns the lowest and highest ids of the milliseconds from first to last, both
// included, for range scans.
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
	if s := t.Unix(); s < 0 || s >= math.MaxInt64/1000 { // UnixMilli would overflow
		return 0, fmt.Errorf("%w: %v is before 1970 or too far in the future", ErrBadArgument, t)
	}
	return uint64(t.UnixMilli()), nil
}

// Decompose returns the fields of an id, starting with the most significant.
func (g *IDs[ID]) Decompose(ctx context.Context, id ID) ([]Field, error) {
	return g.door.decompose(ctx, g.generator, bytesOf(numberOf(id), sizeOf[ID]()))
}

// Errors of generators, in addition to [flake.ErrClockBackwards] and
// [flake.ErrTimestampNotSaved], which are temporary, and [flake.ErrClosed].
var (
	// ErrBadArgument means that an argument is out of range or not valid for this format.
	ErrBadArgument = errors.New("badarg: an argument is not allowed")

	// ErrBusy means that too many large calls from this program are waiting.
	ErrBusy = errors.New("system_limit: the node has no room for the call")

	// ErrNotAbove means that a node's ids are not above earlier ids from another node in the
	// same [Failover] or at the same address. The ids of one node ascend as [IDs] describes,
	// even after restarts and changes of its clock.
	ErrNotAbove = errors.New("the node's ids are not above earlier ones")

	// ErrUnknown means that the node is too old to support the call.
	ErrUnknown = errors.New("the node does not support the call")
)

// refusals maps Reason in {error, Reason} to the error that callers get.
var refusals = map[string]error{
	"badarg":                  ErrBadArgument,
	"system_limit":            ErrBusy,
	"clock_running_backwards": flake.ErrClockBackwards,
	"timestamp_not_saved":     flake.ErrTimestampNotSaved,
	"shutdown":                flake.ErrClosed,
}

func refusal(reason string) error {
	if err := refusals[reason]; err != nil {
		return err
	}
	return fmt.Errorf("the node answered {error, %s}", escape.Text(reason))
}

func outOfRange(what string, n, from, to int) error {
	return fmt.Errorf("%w: %s is %d: must be from %d to %d", ErrBadArgument, what, n, from, to)
}
