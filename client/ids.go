// Package client gets ids from a flake node, over the Erlang distribution or over HTTP, and
// calls gen_servers and functions of any Erlang node. The program does not become a node.
//
//	node := client.NewNode("flake@127.0.0.1", client.Dialer{Cookie: "flake"})
//	defer node.Close()
//	ids := client.NewIDs[flake.ID](node, "flake")
//	id, err := ids.Next(ctx)
//
// Start with [NewNode] or [NewHTTP], which make a [Door] to a node, and with [IDs], which is the
// same for both. [NewFailover] combines several nodes into one Door. [IDs.Leased] returns ids
// without a round trip. A function that takes a [flake.Nexter] accepts any of them, or a
// generator in the program itself. [Node.Call] and [Node.Apply] make other calls to a node.
// Package clienttest provides a node for tests.
package client

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
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

// maxAnswer limits the bytes of an answer; 65,536 ids in base 2 take half of this.
const maxAnswer = 16 << 20

// Bases for [IDs.Texts], in addition to 2 to 62.
const (
	Canonical = formats.Canonical // the format's own form
	UUID      = formats.UUID      // the form of a UUID, for ids of 16 bytes
	Crockford = formats.Crockford // Crockford's base 32, upper case, padded: 26, 16 or 13 digits, which sort as ids do
)

// nameOf returns the name of a base in requests to a node.
func nameOf(base int) string {
	if base < 0 {
		return formats.NameOf(base)
	}
	return strconv.Itoa(base)
}

// Door provides access to a node's generators: a [*Node], a [*HTTP], or several of them as a
// [*Failover]. Package clienttest provides one for tests.
type Door interface {
	// Close closes connections. Later calls fail.
	Close() error

	ask(context.Context, request) (answer, error)
}

type request struct {
	verb      verb
	generator string
	format    *formats.Format // of the generator's ids
	n         int             // the number of ids requested, if any
	base      int             // for askTexts
	millis    []uint64        // for askNotional: a time, or the first and last of a span
	id        []byte          // for askDecompose
}

// verb is what a request asks for, named as in the Erlang calls.
type verb string

const (
	askOne       verb = "get"
	askTexts     verb = "get_many"
	askLease     verb = "lease"
	askNotional  verb = "notional"
	askDecompose verb = "decompose"
)

type answer struct {
	runs   []run    // for askOne and askLease
	texts  []string // for askTexts
	ids    [][]byte // for askNotional, one for each of millis
	fields []Field  // for askDecompose
}

// run is a Run whose first id has not been decoded.
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
// new node's ids are above the earlier ones. An IDs remembers the highest id that it has
// returned, but does not share it with other IDs.
//
// A failed call can be repeated safely: at worst, some ids are never used.
type IDs[ID Format] struct {
	door      Door
	generator string

	mu      sync.Mutex     // guards highest
	highest formats.Number // the highest id returned
}

// NewIDs returns the IDs of the named generator; every node has "flake". It makes no request.
// ID must be the type for the format that the node's configuration gives the generator, such
// as flake.ID for "flake"; otherwise calls fail.
func NewIDs[ID Format](door Door, generator string) *IDs[ID] {
	return &IDs[ID]{door: door, generator: generator}
}

// Next returns the next id. Concurrent calls may share a request to a [Node].
func (g *IDs[ID]) Next(ctx context.Context) (id ID, err error) {
	r := request{verb: askOne, generator: g.generator, format: formatOf[ID](), n: 1}
	last := g.last()
	var a answer
	if node, ok := g.door.(*Node); ok { // as ask does, but on a small stack: 1,000 goroutines then get 10 % more ids
		var first []byte
		first, err = node.next(ctx, g.generator)
		a.runs = []run{{first, 1}}
	} else {
		a, err = g.door.ask(ctx, r)
	}
	if err != nil {
		return id, err
	}
	runs, err := runsOf(make([]formats.Run, 0, 1), r, a)
	if err != nil {
		return id, err
	}
	if err := g.follow(last, runs); err != nil {
		return id, err
	}
	return idOf[ID](runs[0].First), nil
}

// take requests n new ids, at most limit per request, and returns them. read appends the ids in an
// answer. The error is [ErrNotAbove] if the ids are not in order, or do not follow the id that was
// the highest when the call started.
func (g *IDs[ID]) take(ctx context.Context, r request, n, limit int,
	read func([]formats.Run, request, answer) ([]formats.Run, error)) (all []formats.Run, err error) {
	if n < 1 {
		return nil, outOfRange("n", n, 1, math.MaxInt)
	}
	r.generator, r.format = g.generator, formatOf[ID]()
	last := g.last()
	for n > 0 {
		r.n = min(n, limit)
		a, err := g.door.ask(ctx, r)
		if errors.Is(err, ErrBadArgument) && r.n > maxAny {
			limit = max(r.n/2, maxAny)
			continue
		}
		if err != nil {
			return nil, err
		}
		if all, err = read(all, r, a); err != nil {
			return nil, err
		}
		n -= r.n
	}
	if err := g.follow(last, all); err != nil {
		return nil, err
	}
	return all, nil
}

// last returns the highest id returned so far.
func (g *IDs[ID]) last() formats.Number {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.highest
}

// follow records new ids. The error is [ErrNotAbove] if they are not in order, or do not follow last.
func (g *IDs[ID]) follow(last formats.Number, ids []formats.Run) error {
	f := formatOf[ID]()
	for _, run := range ids {
		if !f.Follows(last, run.First) {
			return fmt.Errorf("generator %s: %w", g.generator, ErrNotAbove)
		}
		last = f.Plus(run.First, run.Count-1)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if last.Compare(g.highest) > 0 {
		g.highest = last
	}
	return nil
}

// runsOf appends the runs of an answer, which must contain the requested number of ids.
func runsOf(ids []formats.Run, r request, a answer) ([]formats.Run, error) {
	left := r.n
	for _, got := range a.runs {
		first, err := numberIn(got.first, r.format)
		if err != nil {
			return nil, err
		}
		switch room := r.format.Room(first); {
		case room == 0:
			return nil, fmt.Errorf("the generator has another format: %x is not an id of %s", got.first, r.format)
		case got.count < 1 || got.count > left:
			return nil, fmt.Errorf("requested %d ids, but the node answered with a run of %d", r.n, got.count)
		case got.count > room:
			return nil, fmt.Errorf("the node answered with a run of %d ids from %x, "+
				"but only %d have that worker and time",
				got.count, got.first, room)
		}
		run := formats.Run{First: first, Count: got.count, Format: r.format}
		if r.format == ulidFormat && uuidFormat.Room(first) > 0 {
			run.Format = uuidFormat // it may be a uuidv7, whose worker must keep the bits that are random in a ulid
		}
		ids = append(ids, run)
		left -= got.count
	}
	if left > 0 {
		return nil, fmt.Errorf("requested %d ids, but the node answered with %d", r.n, r.n-left)
	}
	return ids, nil
}

// NextN fills dst with the next ids and returns how many it filled in, which is less than
// len(dst) only if there is an error.
func (g *IDs[ID]) NextN(ctx context.Context, dst []ID) (int, error) {
	if len(dst) == 0 {
		return 0, nil
	}
	runs, err := g.lease(ctx, len(dst))
	done := 0
	for _, r := range runs {
		for i := range r.Count {
			dst[done] = idOf[ID](r.At(i))
			done++
		}
	}
	return done, err
}

// Lease returns the next n ids as runs; n must be at least 1. The node does not return these ids
// again. The runs take a few dozen bytes for each millisecond in which ids were made, even for a
// million ids.
func (g *IDs[ID]) Lease(ctx context.Context, n int) ([]Run[ID], error) {
	var all []Run[ID]
	runs, err := g.lease(ctx, n)
	for _, r := range runs {
		all = append(all, Run[ID]{idOf[ID](r.First), r.Count})
	}
	return all, err
}

func (g *IDs[ID]) lease(ctx context.Context, n int) ([]formats.Run, error) {
	return g.take(ctx, request{verb: askLease}, n, maxLease, runsOf)
}

// Texts returns the next n ids as text made by the node. base is from 2 to 62, with digits
// 0-9A-Za-z and no leading zeros, or [Canonical], [UUID] or [Crockford]. n must be at least 1.
func (g *IDs[ID]) Texts(ctx context.Context, n, base int) ([]string, error) {
	var all []string
	read := func(ids []formats.Run, r request, a answer) ([]formats.Run, error) {
		if len(a.texts) != r.n {
			return nil, fmt.Errorf("requested %d ids, but the node answered with %d", r.n, len(a.texts))
		}
		for _, text := range a.texts {
			if i := strings.IndexFunc(text, isNoDigit); i >= 0 {
				return nil, fmt.Errorf("the node answered with %.40q, which is not an id", text)
			}
			if id, ok := r.inText(text); ok {
				ids = append(ids, formats.Run{First: id, Count: 1})
			}
		}
		all = append(all, a.texts...)
		return ids, nil
	}
	if _, err := g.take(ctx, request{verb: askTexts, base: base}, n, maxMany, read); err != nil {
		return nil, err
	}
	return all, nil
}

// inText returns the id that a text represents. ok is false if the id is of another format, because
// a program may request texts of any generator; the order of such ids is not checked.
func (r request) inText(text string) (id formats.Number, ok bool) {
	id, err := r.format.Parse(text, r.base)
	shorter := r.format.Size == len(flake.ID{}) && id.Hi>>16 == 0 // such as 8 or 10 bytes
	return id, err == nil && r.format.Room(id) > 0 && !shorter
}

// isNoDigit reports whether r cannot be part of an id's text, because it is not a letter, a digit
// or a hyphen (as in a UUID). Such characters may be unsafe on a terminal.
func isNoDigit(r rune) bool {
	return r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
}

// Notional returns the lowest id of a millisecond: its worker and sequence are 0. The id is only
// for comparisons: no generator returns it.
func (g *IDs[ID]) Notional(ctx context.Context, t time.Time) (id ID, err error) {
	ids, err := g.notional(ctx, t)
	if err != nil {
		return id, err
	}
	return ids[0], nil
}

// Span returns the lowest and highest ids of the milliseconds from first to last, both
// included, for range scans.
func (g *IDs[ID]) Span(ctx context.Context, first, last time.Time) (lowest, highest ID, err error) {
	ids, err := g.notional(ctx, first, last)
	if err != nil {
		return lowest, highest, err
	}
	return ids[0], ids[1], nil
}

func (g *IDs[ID]) notional(ctx context.Context, times ...time.Time) (ids []ID, err error) {
	r := request{verb: askNotional, generator: g.generator, format: formatOf[ID]()}
	for _, t := range times {
		if s := t.Unix(); s < 0 || s >= math.MaxInt64/1000 { // UnixMilli would overflow
			return nil, fmt.Errorf("%w: %v is before 1970 or too far in the future", ErrBadArgument, t)
		}
		r.millis = append(r.millis, uint64(t.UnixMilli()))
	}
	a, err := g.door.ask(ctx, r)
	if err != nil {
		return nil, err
	}
	for _, b := range a.ids {
		id, err := numberIn(b, r.format)
		if err != nil {
			return nil, err
		}
		ids = append(ids, idOf[ID](id))
	}
	return ids, nil
}

// Decompose returns the fields of an id, starting with the most significant.
func (g *IDs[ID]) Decompose(ctx context.Context, id ID) ([]Field, error) {
	b, _ := binary.Append(nil, binary.BigEndian, id) // never fails
	a, err := g.door.ask(ctx, request{verb: askDecompose, generator: g.generator, id: b})
	return a.fields, err
}

// Errors of generators, in addition to [flake.ErrClockBackwards] and
// [flake.ErrTimestampNotSaved], which are temporary, and [flake.ErrClosed].
var (
	// ErrBadArgument means that an argument is out of range or not valid for this format.
	ErrBadArgument = errors.New("badarg: invalid argument")

	// ErrBusy means that too many large calls from this program are waiting.
	ErrBusy = errors.New("system_limit: the node has no room for the call")

	// ErrNotAbove means that a node's ids are not above earlier ids from another node in the
	// same [Failover] or at the same address. The ids of one node ascend as [IDs] describes,
	// even after restarts and changes of its clock.
	ErrNotAbove = errors.New("the node's ids are not above earlier ones")

	// ErrUnknown means that the node does not support the call.
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

func outOfRange(what string, value, from, to any) error {
	return fmt.Errorf("%w: %s is %v: must be from %v to %v", ErrBadArgument, what, value, from, to)
}
