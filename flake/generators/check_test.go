package generators

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/internal/durable"
	"github.com/flake-go/flake/flake/internal/tick"
	"github.com/flake-go/flake/flake/workers"
)

// testStore is a store that has a cluster id and clocks, and can fail.
type testStore struct {
	*world
	cluster string
	ahead   time.Duration
	down    error

	lists, gets, clusters int // number of calls
}

func (s *testStore) List(ctx context.Context, prefix string) (map[string]string, error) {
	s.lists++
	all, err := s.world.List(ctx, prefix)
	return all, errors.Join(err, s.down)
}

func (s *testStore) Get(ctx context.Context, keys ...string) ([]string, error) {
	s.gets++
	if s.down != nil {
		return nil, s.down
	}
	return s.world.Get(ctx, keys...)
}

func (s *testStore) Cluster(context.Context) (string, error) {
	s.clusters++
	return s.cluster, s.down
}

// Clocks compares the real clock, which a rehearsal does not move.
func (s *testStore) Clocks(_ context.Context, now func() uint64) []time.Duration {
	return []time.Duration{time.Duration(now()-s.now)*time.Millisecond + s.ahead}
}

// scene is a node that can be started, with its store, file and clock.
type scene struct {
	*world
	t       *testing.T
	store   *testStore
	config  Config
	plan    Plan[*generator]
	names   []string // of the generators, which use the number if there is one
	plain   bool     // the generators do not use the number
	machine string   // if empty, no worker is random
}

func newScene(t *testing.T, numbers uint64) *scene {
	w := newWorld()
	s := &scene{world: w, t: t, store: &testStore{world: w, cluster: "c"}, names: []string{""}}
	s.config = Config{Path: filepath.Join(t.TempDir(), "marks"), Clock: w.clock}
	if numbers > 0 {
		s.config.Numbers = &workers.Config{Store: s.store, Prefix: "p", Last: numbers - 1, Hold: hold, Name: "self"}
	}
	s.plan.Generators = func(g *Set[*generator]) (all []Planned[*generator]) {
		for _, name := range s.names {
			all = append(all, Planned[*generator]{name, numbers > 0 && !s.plain, s.opener(g, durable.Open)})
		}
		return all
	}
	return s
}

type open func(ctx context.Context, name string, source durable.Source, o durable.Options) (*durable.Marker, error)

func (s *scene) opener(g *Set[*generator], open open) Opener[*generator] {
	return func(ctx context.Context, name string, number uint64, bound durable.Bound) (*generator, error) {
		if s.machine != "" {
			if _, _, err := g.Marks().StoredWorker(name, s.machine, 9, func() uint64 { return 7 }); err != nil {
				return nil, err
			}
		}
		ids, err := tick.New(tick.Shape{Last: tick.MaxLast, Unit: 1, PerTick: 1 << 10}, g.Clock())
		if err != nil {
			return nil, err
		}
		o := durable.Options{Marks: g.Marks()}
		if bound != nil {
			o.Bound = bound
		}
		k, err := open(ctx, name, ids, o)
		return &generator{ids, k, number, nil}, err
	}
}

// start starts the node, and returns the first error.
func (s *scene) start() (n node, err error) {
	marks, err := durable.OpenMarksOn(disk{}, s.sleep, s.config.Path, nil, 0)
	if err != nil {
		return n, err
	}
	n = node{newSet[*generator](marks, s.sleep, s.config), s.world}
	if n.numbers != nil {
		if n.owner, err = workers.New(*n.numbers); err != nil {
			return n, err
		}
		if err := n.owner.Step(s.t.Context()); err != nil {
			return n, err
		}
		if err := n.compare(s.t.Context()); err != nil {
			return n, err
		}
	}
	for _, name := range s.names {
		if _, err := n.Add(s.t.Context(), name, n.numbers != nil && !s.plain,
			s.opener(n.Set, durable.OpenOn)); err != nil {
			return n, err
		}
	}
	return n, nil
}

// killed starts the node and kills it.
func (s *scene) killed() node {
	s.t.Helper()
	n, err := s.start()
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *scene) stopped() {
	s.t.Helper()
	if err := s.killed().Close(); err != nil {
		s.t.Fatal(err)
	}
}

// rewrite changes the values of all numbers.
func (s *scene) rewrite(change func(v *workers.Value)) {
	s.t.Helper()
	all, err := workers.List(s.t.Context(), s.world, "p")
	if err != nil || len(all) == 0 {
		s.t.Fatal(all, err)
	}
	for _, e := range all {
		change(&e.Value)
		s.data[fmt.Sprintf("p/n/%012x", e.Number)] = e.Value.String()
	}
}

func (s *scene) other(change func(c *workers.Config)) {
	s.t.Helper()
	c := *s.config.Numbers
	c.Name, c.Clock = "other", s.clock
	if change != nil {
		change(&c)
	}
	o, err := workers.New(c)
	if err == nil {
		err = o.Step(s.t.Context())
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) pass(d time.Duration) { s.now += uint64(d / time.Millisecond) }

// alone returns an error if the store has a number other than the given one.
func alone(number uint64, all []workers.Entry) error {
	if len(all) != 1 || all[0].Number != number {
		return errAny
	}
	return nil
}

// A check reports what a start then does.
func TestCheckIsTheStart(t *testing.T) {
	const second = uint64(time.Second / time.Millisecond)
	random := []string{ // cases in which the number is random
		"first, numbered", "first, with a store without cluster id and clocks", "first, another node's number is idle",
		"another has the number",
		"released", "a copy", "the store has another claim of the same generation", "a floor",
		"a floor just near enough", "a floor far ahead", "restored into another cluster", "a floor that was deleted",
		"none free, the first is soonest", "none free, the last is soonest",
	}
	for name, c := range map[string]struct {
		numbers uint64
		make    func(s *scene)
		start   Start
		wait    uint64
		codes   []Code
		err     error // what the start returns
	}{
		"first":                  {0, func(*scene) {}, StartsAtOnce, 0, []Code{CodeNoFile}, nil},
		"first, numbered":        {9, func(*scene) {}, StartsAtOnce, 0, []Code{CodeNoFile}, nil},
		"first, only one number": {1, func(*scene) {}, StartsAtOnce, 0, []Code{CodeNoFile}, nil},
		"first, with a store without cluster id and clocks": {9, func(s *scene) { s.config.Numbers.Store = s.world },
			StartsAtOnce, 0, []Code{CodeNoFile}, nil},
		"first, another node's number is idle": {2, func(s *scene) { s.other(nil); s.pass(20 * hold) },
			StartsAtOnce, 0, []Code{CodeNoFile}, nil},
		"first, with a random worker": {0, func(s *scene) { s.machine = "a" }, StartsAtOnce, 0, []Code{CodeNoFile}, nil},
		"stopped just now, and it waits": {1, func(s *scene) { s.stopped(); s.config.Numbers.Wait = true },
			StartWaits, 1, []Code{CodeNoneFree}, workers.ErrNoneFree},
		"stopped": {0, (*scene).stopped, StartWaits, 1, nil, nil},
		"stopped a while ago": {1, func(s *scene) { s.stopped(); s.pass(time.Minute) },
			StartsAtOnce, 0, nil, nil},
		"killed":           {0, func(s *scene) { s.killed() }, StartWaits, 3*second + 1, nil, nil},
		"killed, numbered": {9, func(s *scene) { s.killed() }, StartWaits, 3*second + 1, nil, nil},
		"killed, and back in a second": {9, func(s *scene) { s.killed(); s.pass(time.Second) },
			StartWaits, 2*second + 1, nil, nil},
		"killed, and has another name": {9, func(s *scene) { s.killed(); s.config.Numbers.Name = "renamed" },
			StartWaits, 3*second + 1, nil, nil},
		"another generator since": {1, func(s *scene) { s.killed(); s.names = []string{"", "more"} },
			StartWaits, 3*second + 1, nil, nil},
		"one generator fewer": {1, func(s *scene) { s.names = []string{"", "more"}; s.killed(); s.names = s.names[:1] },
			StartWaits, 3*second + 1, nil, nil},
		"clock set back": {0, func(s *scene) { s.stopped(); s.pass(-time.Hour) },
			StartRefuses, 0, []Code{CodeBackwards}, tick.ErrClockBackwards},
		"clock set ahead": {0, func(s *scene) { s.stopped(); s.pass(2 * durable.DefaultDowntime) },
			StartRefuses, 0, []Code{CodeAdvanced}, tick.ErrClockAdvanced},
		"a named generator after an unnamed one": {0,
			func(s *scene) { s.stopped(); s.names = []string{"a"}; s.pass(time.Second) },
			StartRefuses, 0, []Code{CodeGenerator}, errAny},
		"damaged": {0, func(s *scene) { s.stopped(); s.write([]byte("flake-mark 1 1 4096 00000000\n")) },
			StartRefuses, 0, []Code{CodeFile}, errAny},
		"half damaged": {0, func(s *scene) { s.killed(); s.damage(20, 0) },
			StartWaits, 3*second + 1, []Code{CodeDamaged}, nil},
		"the other half damaged": {9, func(s *scene) { s.killed(); s.damage(0, 20) },
			StartWaits, 3*second + 1, []Code{CodeDamaged}, nil},
		"both halves damaged": {0, func(s *scene) { s.killed(); s.damage(20, 20) },
			StartRefuses, 0, []Code{CodeFile}, errAny},
		"emptied": {1, func(s *scene) { s.killed(); s.write(nil) }, StartRefuses, 0, []Code{CodeFile}, errAny},
		"of a later version": {0, func(s *scene) { s.write([]byte("flake-mark 2 ")) },
			StartRefuses, 0, []Code{CodeFile}, errAny},
		"on another machine": {0, func(s *scene) { s.machine = "a"; s.stopped(); s.machine = "b"; s.pass(time.Second) },
			StartsAtOnce, 0, []Code{CodeDrawn}, nil},
		"on the same machine": {0, func(s *scene) { s.machine = "a"; s.stopped(); s.pass(time.Second) },
			StartsAtOnce, 0, nil, nil},
		"no number needed": {1, func(s *scene) { s.killed(); s.config.Numbers = nil; s.names = nil },
			StartsAtOnce, 0, []Code{CodeNotWanted}, nil},
		"no number needed, mark just past": {1,
			func(s *scene) { s.killed(); s.config.Numbers = nil; s.pass(hold); s.now++; s.names = nil },
			StartsAtOnce, 0, nil, nil},
		"no number needed, mark not quite past": {1,
			func(s *scene) { s.killed(); s.config.Numbers = nil; s.pass(hold); s.names = nil },
			StartsAtOnce, 0, []Code{CodeNotWanted}, nil},
		"of another prefix": {1, func(s *scene) { s.killed(); s.config.Numbers.Prefix = "q" },
			StartRefuses, 0, []Code{CodeElsewhere}, workers.ElsewhereError{}},
		"of another cluster": {1, func(s *scene) { s.killed(); s.data = map[string]string{}; s.store.cluster = "d" },
			StartRefuses, 0, []Code{CodeElsewhere}, workers.ElsewhereError{}},
		"of another cluster, after a stop": {1, func(s *scene) {
			s.stopped()
			s.data, s.store.cluster = map[string]string{}, "d"
			s.now += 10 * uint64(hold/time.Millisecond)
		}, StartRefuses, 0, []Code{CodeElsewhere}, workers.ElsewhereError{}},
		"restored into another cluster": {2, func(s *scene) { s.killed(); s.store.cluster = "d" },
			StartWaits, uint64((hold+workers.DefaultMargin(hold))/time.Millisecond) + 1, []Code{CodeRestored}, nil},
		"a floor that was deleted": {2, func(s *scene) { s.killed(); delete(s.data, "p/floor") },
			StartWaits, uint64((hold+workers.DefaultMargin(hold))/time.Millisecond) + 1, []Code{CodeRestored}, nil},
		"a key that was deleted": {1, func(s *scene) { s.killed(); delete(s.data, "p/n/000000000000") },
			StartRefuses, 0, []Code{CodeForgotten, CodeNoneFree}, workers.ErrNoneFree},
		"another has a number set by hand": {9, func(s *scene) { s.other(nil); s.config.Fits = alone },
			StartRefuses, 0, []Code{CodeNoFile, CodeByHand}, errAny},
		"only it has a number": {9, func(s *scene) { s.stopped(); s.pass(time.Minute); s.config.Fits = alone },
			StartsAtOnce, 0, nil, nil},
		"none free": {1, func(s *scene) { s.other(nil) },
			StartRefuses, 0, []Code{CodeNoFile, CodeNoneFree}, workers.ErrNoneFree},
		"none free, and it waits": {1, func(s *scene) { s.other(nil); s.config.Numbers.Wait = true },
			StartWaits, uint64(hold/time.Millisecond) + 1, []Code{CodeNoFile, CodeNoneFree}, workers.ErrNoneFree},
		"none free of its own range": {2, func(s *scene) {
			s.other(func(c *workers.Config) { c.First = 1; c.Hold = hold / 2 })
			s.other(func(c *workers.Config) { c.Last = 0 })
			s.config.Numbers.Last, s.config.Numbers.Wait = 0, true
		}, StartWaits, uint64(hold/time.Millisecond) + 1, []Code{CodeNoFile, CodeNoneFree}, workers.ErrNoneFree},
		"none free of its own range, which is higher": {2, func(s *scene) {
			s.other(func(c *workers.Config) { c.First = 1 })
			s.other(func(c *workers.Config) { c.Last = 0; c.Hold = hold / 2 })
			s.config.Numbers.First, s.config.Numbers.Wait = 1, true
		}, StartWaits, uint64(hold/time.Millisecond) + 1, []Code{CodeNoFile, CodeNoneFree}, workers.ErrNoneFree},
		"none free, the first is soonest": {2, func(s *scene) {
			s.other(func(c *workers.Config) { c.First = 1 })
			s.other(func(c *workers.Config) { c.Last = 0; c.Hold = hold / 2 })
			s.config.Numbers.Wait = true
		}, StartWaits, uint64(hold/time.Millisecond)/2 + 1, []Code{CodeNoFile, CodeNoneFree}, workers.ErrNoneFree},
		"none free, the last is soonest": {2, func(s *scene) {
			s.other(func(c *workers.Config) { c.First = 1; c.Hold = hold / 2 })
			s.other(func(c *workers.Config) { c.Last = 0 })
			s.config.Numbers.Wait = true
		}, StartWaits, uint64(hold/time.Millisecond)/2 + 1, []Code{CodeNoFile, CodeNoneFree}, workers.ErrNoneFree},
		"another has the number": {2, func(s *scene) {
			s.killed()
			s.pass(2 * hold)
			s.other(func(c *workers.Config) { c.First = number(s.world); c.Last = c.First })
		}, StartsAtOnce, 0, []Code{CodeTaken}, nil},
		"released": {2, func(s *scene) {
			s.killed()
			if _, err := workers.Release(s.t.Context(), s.world, "p", number(s.world), s.world.now); err != nil {
				s.t.Fatal(err)
			}
		}, StartWaits, 3*second + 1, []Code{CodeTaken}, nil},
		"down for hold": {2, func(s *scene) { s.killed(); s.pass(hold) }, StartsAtOnce, 0, nil, nil},
		"down for longer": {2, func(s *scene) { s.killed(); s.pass(2 * hold) },
			StartsAtOnce, 0, []Code{CodePast}, nil},
		"a copy": {2, func(s *scene) { s.killed(); s.rewrite(func(v *workers.Value) { v.Mark++ }) },
			StartWaits, 3*second + 1, []Code{CodeCopy}, nil},
		"the store is empty": {1, func(s *scene) { s.killed(); clear(s.data) },
			StartWaits, 3*second + 1, []Code{CodeForgotten}, nil},
		"the store is empty, and no generator uses the number": {1, func(s *scene) {
			s.plain = true
			s.killed()
			clear(s.data)
		}, StartWaits, 3*second + 1, []Code{CodeForgotten}, nil},
		"the store has an earlier claim": {1, func(s *scene) {
			s.stopped()
			before := maps.Clone(s.data)
			s.pass(time.Second)
			s.killed()
			s.data = before
		}, StartWaits, 3*second + 1, []Code{CodeForgotten}, nil},
		"the store has another claim of the same generation": {2, func(s *scene) {
			s.killed()
			s.rewrite(func(v *workers.Value) { v.Token++ })
		}, StartWaits, 3*second + 1, []Code{CodeForgotten}, nil},
		"the store has an earlier mark": {2, func(s *scene) {
			s.killed()
			s.rewrite(func(v *workers.Value) { v.Mark = s.now + 1 })
		}, StartWaits, 3*second + 1, []Code{CodeForgotten}, nil},
		"the store has an earlier mark, just enough": {2, func(s *scene) {
			s.killed()
			s.rewrite(func(v *workers.Value) { v.Mark = s.now + 3*second })
		}, StartWaits, 3*second + 1, nil, nil},
		"the store has an earlier mark, and no generator uses the number": {2, func(s *scene) {
			s.plain = true
			s.killed()
			s.rewrite(func(v *workers.Value) { v.Mark = s.now + 1 })
		}, StartWaits, 3*second + 1, nil, nil},
		"a floor": {2, func(s *scene) { s.killed(); s.floor(time.Second) },
			StartWaits, uint64((hold+time.Second)/time.Millisecond) + 1, []Code{CodeFloor}, nil},
		"a floor just near enough": {2, func(s *scene) { s.floor(longest - hold - time.Millisecond) },
			StartWaits, uint64(longest / time.Millisecond), []Code{CodeNoFile}, nil},
		"a floor far ahead": {2, func(s *scene) { s.floor(longest) },
			StartWaits, 0, []Code{CodeNoFile, CodeGenerator}, nil},
		"a foreign value": {1, func(s *scene) { s.data["p/n/000000000000"] = "2" },
			StartRefuses, 0, []Code{CodeNoFile, CodeRefused}, workers.ErrRefused},
		"a foreign floor": {1, func(s *scene) { s.data["p/floor"] = "2" },
			StartRefuses, 0, []Code{CodeNoFile, CodeRefused}, workers.ErrRefused},
		"clock off": {1, func(s *scene) { s.floor(time.Second); s.store.ahead = time.Hour },
			StartWaits, 0, []Code{CodeNoFile, CodeClockOff}, workers.ClockError{}},
		"store down": {1, func(s *scene) { s.killed(); s.store.down = errAny },
			StartWaits, 0, []Code{CodeStore}, errAny},
		"a claim that fails": {1, func(s *scene) { s.config.Numbers.Hold = 1 },
			StartRefuses, 0, []Code{CodeNoFile, CodeNotClaimed}, errAny},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, c.numbers)
			c.make(s)
			before, data, now := s.files(), maps.Clone(s.data), s.now
			got := Check(t.Context(), s.config, s.plan)
			if after := s.files(); !reflect.DeepEqual(after, before) || !maps.Equal(s.data, data) || s.now != now {
				t.Fatal("the check has changed something")
			}
			var codes []Code
			for _, f := range got.Findings {
				codes = append(codes, f.Code)
			}
			if got.Start != c.start || uint64(got.Wait) != c.wait || !slices.Equal(codes, c.codes) {
				t.Errorf("the check reports %s, %d, %q\n%+v", got.Start, got.Wait, codes, got.Findings)
			}
			if got.Fits == slices.ContainsFunc(got.Findings, func(f Finding) bool { return f.Wrong }) {
				t.Errorf("fits is %v, with %+v", got.Fits, got.Findings)
			}
			floor, err := workers.ReadFloor(t.Context(), s.world, "p")
			if n := got.Number; n != nil && n.Claim == nil && s.store.down == nil && err == nil && n.Floor != floor.Mark {
				t.Errorf("without a claim: the floor is %d, want %d", n.Floor, floor.Mark)
			}
			if c.start == StartWaits && c.err != nil && c.wait > 0 { // fails before, succeeds after
				s.now += c.wait - 1
				if _, err := s.start(); !same(err, c.err) {
					t.Errorf("a start 1 ms earlier: %v", err)
				}
				s.now, c.err = now+c.wait, nil
			}
			n, err := s.start()
			if !same(err, c.err) {
				t.Fatalf("a start: %v", err)
			}
			if err != nil {
				return
			}
			waited, unknown := s.now-now, c.start == StartWaits && c.wait == 0
			if waited != c.wait && !unknown || unknown && waited < uint64(longest/time.Millisecond) {
				t.Errorf("a start waits for %d ms", waited)
			}
			if n.owner != nil {
				claim, _ := n.owner.Claim()
				want := ClaimReport{claim.Number(), claim.Resumed(), slices.Contains(random, name), claim.After()}
				is := *got.Number.Claim
				if is.Random {
					want.Number = is.Number
				}
				if floor, err := workers.ReadFloor(t.Context(), s.world, "p"); is != want ||
					got.Number.Floor != floor.Mark || err != nil {
					t.Errorf("the check reports %+v above %d; a start has %+v, %v", is, got.Number.Floor, want, err)
				}
			}
		})
	}
}

// However late a number becomes free, a check reports the whole wait: for the number, and for the
// floor above it.
func TestCheckLongWait(t *testing.T) {
	s := newScene(t, 1)
	s.other(nil)
	free := s.now + uint64(longest/time.Millisecond)
	s.rewrite(func(v *workers.Value) { v.Mark = free })
	s.data["p/floor"] = workers.Floor{Since: 1, Mark: free + 5000, Nonce: 1, Places: founded.Places}.String()
	s.config.Numbers.Wait = true
	got := Check(t.Context(), s.config, s.plan)
	if got.Start != StartWaits || s.now+uint64(got.Wait) != free+5001 || len(got.Findings) != 2 {
		t.Errorf("%s for %d ms; %+v", got.Start, got.Wait, got.Findings)
	}
}

// A start fails if it must wait for a number for longer than its timeout.
func TestCheckTimeout(t *testing.T) {
	s := newScene(t, 1)
	s.other(nil)
	s.config.Numbers.Wait = true
	for timeout, want := range map[time.Duration]Start{
		0: StartWaits, hold: StartRefuses, hold + time.Millisecond: StartWaits,
	} {
		s.plan.Timeout = timeout
		got := Check(t.Context(), s.config, s.plan)
		last := got.Findings[len(got.Findings)-1]
		if got.Start != want || (last.Code == CodeTimeout) != (want == StartRefuses) {
			t.Errorf("within %v: %s, %+v", timeout, got.Start, got.Findings)
		}
	}
}

var errAny = errors.New("any")

// same reports whether err is of the same kind as want.
func same(err, want error) bool {
	switch want := want.(type) {
	case nil:
		return err == nil
	case workers.ElsewhereError:
		return errors.As(err, &want)
	case workers.ClockError:
		return errors.As(err, &want)
	}
	return errors.Is(err, want) || err != nil && want == errAny
}

// LastPlace knows the place of a number, and of one that was returned.
func TestLastPlace(t *testing.T) {
	s := newScene(t, 3)
	for _, want := range []string{"", "c:p", "c:p"} {
		if got := LastPlace(s.config.Path); got != want {
			t.Errorf("the last place is %q, want %q", got, want)
		}
		s.stopped()
	}
	s.write(nil)
	if got := LastPlace(s.config.Path); got != "" {
		t.Errorf("the last place in a damaged file is %q", got)
	}
}

func (s *scene) write(data []byte) {
	s.t.Helper()
	if err := os.WriteFile(s.config.Path, data, 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// damage changes a byte of each half of the file, unless its place in the half is 0.
func (s *scene) damage(places ...int) {
	s.t.Helper()
	data, err := os.ReadFile(s.config.Path)
	if err != nil {
		s.t.Fatal(err)
	}
	for i, place := range places {
		if place > 0 {
			data[i*len(data)/2+place] ^= 1
		}
	}
	s.write(data)
}

// files returns all files in the folder with their content.
func (s *scene) files() map[string]string {
	s.t.Helper()
	all := map[string]string{}
	names, err := filepath.Glob(filepath.Join(filepath.Dir(s.config.Path), "*"))
	for _, name := range names {
		data, readErr := os.ReadFile(name)
		all[name], err = string(data), errors.Join(err, readErr)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return all
}

func (s *scene) floor(margin time.Duration) {
	s.t.Helper()
	r := workers.Restored{Clock: s.clock, Hold: hold, Margin: margin, Sure: true, Nonce: 1}
	if _, err := workers.AfterRestore(s.t.Context(), s.world, "p", r); err != nil {
		s.t.Fatal(err)
	}
}

// number returns the only number in the store.
func number(w *world) uint64 {
	all, err := workers.List(context.Background(), w, "p")
	if err != nil || len(all) != 1 {
		panic(fmt.Sprint(all, err))
	}
	return all[0].Number
}

// While a node runs, a check sees no damage and no other node, however often the node saves.
func TestCheckWhileItSaves(t *testing.T) {
	s := newScene(t, 0)
	n := s.killed()
	stop := make(chan struct{})
	var saves sync.WaitGroup
	saves.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				n.Marks().Remember(nil)
			}
		}
	})
	for range 300 {
		if got := Check(t.Context(), s.config, s.plan); !got.Fits || got.Start != StartWaits {
			t.Fatalf("%+v", got)
		}
	}
	close(stop)
	saves.Wait()
}

// A check does not create the folder of the file. A missing folder is an error unless a start
// would create it.
func TestCheckWithoutFolder(t *testing.T) {
	s := newScene(t, 0)
	s.config.Path, s.config.Clock = filepath.Join(filepath.Dir(s.config.Path), "folder", "marks"), nil
	for makes, code := range map[bool]Code{true: CodeNoFile, false: CodeFile} {
		s.plan.MakesFolder = makes
		got := Check(t.Context(), s.config, s.plan)
		if len(got.Findings) != 1 || got.Findings[0].Code != code || got.Fits != makes || got.File != s.config.Path {
			t.Errorf("MakesFolder %v: %+v", makes, got)
		}
	}
	if all := s.files(); len(all) > 0 {
		t.Errorf("the check has created %v", all)
	}
}

// Check reports the real path of the file, and a folder that a start would refuse.
func TestCheckFolder(t *testing.T) {
	s := newScene(t, 0)
	s.plan.MakesFolder = true
	s.stopped()
	s.pass(time.Second)
	path, link := s.config.Path, s.config.Path+".link"
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	s.config.Path = link
	if got := Check(t.Context(), s.config, s.plan); !got.Fits || got.File != path {
		t.Errorf("%+v", got)
	}
	if err := os.Chmod(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if got := Check(t.Context(), s.config, s.plan); len(got.Findings) != 1 || got.Findings[0].Code != CodeFile {
		t.Errorf("every user can write to the folder: %+v", got)
	}
}

// The store is read once, and not again after an error.
func TestCheckAsksOnce(t *testing.T) {
	for down, want := range map[error][3]int{nil: {2, 1, 2}, errAny: {0, 0, 1}} {
		s := newScene(t, 1)
		s.store.down = down
		Check(t.Context(), s.config, s.plan)
		if got := [3]int{s.store.lists, s.store.gets, s.store.clusters}; got != want {
			t.Errorf("store error %v: List, Get and Cluster were called %d times, want %d", down, got, want)
		}
	}
	for name, ask := range map[string]func(s *shadowStore) error{
		"List": func(s *shadowStore) error { _, err := s.List(t.Context(), "a"); return err },
		"Get":  func(s *shadowStore) error { _, err := s.Get(t.Context(), "a", "b"); return err },
	} {
		s := newScene(t, 1)
		s.store.down = errAny
		shadow := &shadowStore{Store: s.store, lists: map[string]map[string]string{}, texts: map[string]string{}}
		first := ask(shadow)
		_, listErr := shadow.List(t.Context(), "b")
		_, getErr := shadow.Get(t.Context(), "c")
		for _, err := range []error{first, listErr, getErr} {
			if !errors.Is(err, errAny) {
				t.Errorf("%s failed first: %v", name, err)
			}
		}
		if s.store.lists+s.store.gets != 1 {
			t.Errorf("%s failed first: List was called %d times, and Get %d times", name, s.store.lists, s.store.gets)
		}
	}
}

// Advise adds advice to an error from the store.
func TestCheckAdvises(t *testing.T) {
	s := newScene(t, 1)
	s.store.down, s.plan.Advise = errAny, func(err error) error { return fmt.Errorf("%w; see to it", err) }
	got := Check(t.Context(), s.config, s.plan)
	if i := len(got.Findings) - 1; i < 0 || !strings.HasSuffix(got.Findings[i].Text, "; see to it") {
		t.Errorf("%+v", got.Findings)
	}
}

// Scripts read these fields.
func TestReportAsJSON(t *testing.T) {
	s := newScene(t, 1)
	s.names, s.machine = []string{"a", "b"}, "one"
	s.killed()
	s.names, s.machine = s.names[:1], "another"
	s.pass(time.Second)
	report := Check(t.Context(), s.config, s.plan)
	report.Findings[0].Text = "TEXT"
	got, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(got), filepath.Dir(s.config.Path), "DIR")
	if want, err := os.ReadFile("testdata/report.json"); err != nil || text+"\n" != string(want) {
		t.Errorf("%v, got\n%s", err, text)
	}
}
