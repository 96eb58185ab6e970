package workers

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/maphash"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

var states = flag.Int("exhaustive.states", 20_000,
	"TestExhaustive stops at the depth at which it has visited this many states")

// lived is a state: two owners with their disks, a store and its snapshot, a write that may
// still arrive, and the ids made.
type lived struct {
	data, snapshot map[string]string
	late           *write
	now            uint64
	random         uint64
	floor          uint64 // mark of the last floor, which the operator remembers
	nodes          [2]living
	uid            int             // of the numbers: another after they were deleted
	views          [3]view         // of the nodes and the operator
	ids            map[uint64]bool // by time; there is one number
	copies         bool            // a node was copied
	far            bool            // the first node's clock is ahead
	twice          bool
	path           *did
}

// did is an action, and the actions before it.
type did struct {
	what   string
	before *did
}

func (d *did) String() string {
	if d == nil {
		return ""
	}
	return d.before.String() + ", " + d.what
}

type write struct{ have, write map[string]string }

// living is a node. It makes one id at each time of its clock at which its claim permits ids.
type living struct {
	o      *Owner // nil while the node is down
	kept   *Kept
	last   uint64 // time of the last id, on its disk
	copied bool   // a copy or its original: makes no ids before it moves the mark, as documented
}

// view is what a client of the store remembers of its answers.
type view struct {
	uid     int  // of the numbers; 0 if it is unknown
	sign    bool // that they were deleted
	noticed bool // whether Restored has returned it
}

const operator = 2

const (
	tickOf = testHold / 2
	ahead  = 4 * testHold // how far a wrong clock is ahead
)

// before returns a copy for an action, which may change only this copy. An action may change the owner
// of its node, but no other owner. It does not change maps: it replaces them.
func (l *lived) before(a *action) *lived {
	c := *l
	if a.ofNode {
		c.nodes[a.node].o = copyOwner(l.nodes[a.node].o)
	}
	return &c
}

func copyOwner(o *Owner) *Owner {
	if o == nil {
		return nil
	}
	c := &Owner{
		Config: o.Config, hold: o.hold, sixth: o.sixth, cluster: o.cluster, sign: o.sign, good: o.good,
		changed: make(chan struct{}), at: o.at, steps: o.steps,
	}
	c.pending, c.claim = copyClaim(o.pending, c), copyClaim(o.claim, c)
	return c
}

func copyClaim(old *Claim, o *Owner) *Claim {
	if old == nil {
		return nil
	}
	c := &Claim{
		owner: o, key: old.key, entry: old.entry, floor: old.floor, after: old.after,
		sent: slices.Clone(old.sent), highest: old.highest, resumed: old.resumed,
	}
	c.lost, c.lose = context.WithCancelCause(context.Background())
	c.mark.Store(old.mark.Load())
	if old.IsLost() {
		c.lose(context.Cause(old.lost))
	}
	return c
}

// explorer is the store, the clock and the memory of the node that acts.
type explorer struct {
	*lived
	node int
	// What the store does with a write: lost, late, unheard or silent; delayed if only writes are
	// late, and reads are answered. Empty if it answers.
	answers string

	latest func(*living) uint64 // replaces Memory.Latest, unless nil
	adopts bool                 // a control: owners accept every value with their token
	resume bool                 // a control: nodes resume after a stop and a restore
	spends bool                 // a clock may be far ahead
	clears bool                 // all numbers may be deleted
	fresh  bool                 // a control: after that, the store looks new to a node that starts
	forget bool                 // a control: a release forgets the spent time
	trusts bool                 // a control: claims do not mark numbers as used
	early  bool                 // a control: the operator insists on a time that is too early
	drops  bool                 // a control: a value that is not changed confirms the claim
	all    []action
	count  int
	limit  int            // of count
	seen   map[uint64]int // remaining depth, by state
	found  string
}

var (
	errSilent  = errors.New("no answer")
	errDeleted = errors.New("the numbers were deleted")
)

// look fails if the numbers were deleted, until Restored has returned a sign of that.
func (x *explorer) look() error {
	if !x.clears {
		return nil
	}
	v := &x.views[x.node]
	if v.sign = v.sign || v.uid > 0 && v.uid != x.uid; v.sign {
		return errDeleted
	}
	v.uid = x.uid
	return nil
}

func (x *explorer) Restored() (string, bool) {
	if !x.views[x.node].sign {
		return "", false
	}
	x.views[x.node] = view{noticed: true}
	return errDeleted.Error(), true
}

func (x *explorer) Cluster(context.Context) (string, error) {
	if err := x.look(); err != nil || !x.clears {
		return "", err
	}
	v := &x.views[x.node]
	v.sign = !x.fresh && !v.noticed && x.uid > 1 && len(x.data) == 0
	return fmt.Sprint(x.uid), x.look()
}

func (x *explorer) List(_ context.Context, prefix string) (map[string]string, error) {
	if err := x.look(); err != nil {
		return nil, err
	}
	all := maps.Clone(x.data)
	maps.DeleteFunc(all, func(key, _ string) bool { return !strings.HasPrefix(key, prefix) })
	return all, nil
}

func (x *explorer) Get(_ context.Context, keys ...string) (texts []string, err error) {
	if x.answers == "silent" {
		return nil, errSilent
	}
	if err := x.look(); err != nil {
		return nil, err
	}
	for _, key := range keys {
		texts = append(texts, x.data[key])
	}
	return texts, nil
}

func (x *explorer) Swap(_ context.Context, have, values map[string]string) (bool, error) {
	if err := x.look(); err != nil {
		return false, err
	}
	w := write{have, values}
	if x.trusts {
		w.write = maps.Clone(values)
		delete(w.write, keys{"p"}.used(1))
	}
	switch x.answers {
	case "lost":
		x.answers = "silent"
		x.apply(w)
	case "late":
		x.answers = "silent"
		x.late = &w
	case "delayed":
		if x.late == nil {
			x.late = &w
		}
	case "unheard":
		x.answers = "silent"
	case "silent":
	default:
		return x.apply(w), nil
	}
	return false, errSilent
}

func (l *lived) apply(w write) bool {
	for key, text := range w.have {
		if l.data[key] != text {
			return false
		}
	}
	l.data = maps.Clone(l.data)
	maps.Copy(l.data, w.write)
	return true
}

// remove deletes a key, and reports whether it was there.
func (l *lived) remove(key string) bool {
	_, there := l.data[key]
	l.data = maps.Clone(l.data)
	delete(l.data, key)
	return there
}

func (x *explorer) clock() uint64 {
	switch {
	case x.node == 1: // its clock is behind
		return x.now - tickOf
	case x.far:
		return x.now + ahead
	}
	return x.now
}

func (x *explorer) Number() *Kept {
	k := x.nodes[x.node].kept
	if k != nil && x.resume {
		k = new(*k)
		f, err := parseFloor(x.data[keys{"p"}.floor()])
		if err != nil {
			panic(err)
		}
		k.Floor = f.Nonce
	}
	return k
}

func (x *explorer) Remember(k *Kept) error {
	if k.Generation > 0 || !x.resume {
		x.nodes[x.node].kept = k
	}
	return nil
}

func (x *explorer) Latest() uint64 {
	if x.latest != nil {
		return x.latest(&x.nodes[x.node])
	}
	return x.nodes[x.node].last
}

// mark returns the mark of the owner's claim, or 0 if it has none.
func (o *Owner) mark() uint64 {
	if o.claim == nil || o.claim.IsLost() {
		return 0
	}
	return o.claim.Milli()
}

func (x *explorer) owner() *Owner {
	o, err := New(Config{
		Store: x, Memory: x, Prefix: "p", First: 1, Last: 1, Hold: testHold * time.Millisecond,
		Name: fmt.Sprint(x.node), Clock: x.clock, Random: func() uint64 { x.random++; return x.random },
	})
	if err != nil {
		panic(err)
	}
	return o
}

// action is something that can happen. do returns false if it does not apply.
type action struct {
	name string
	do   func() bool

	node    int  // the node that acts
	running bool // whether the node must be running; if false, it must not be
	ofNode  bool // whether a node acts
}

// applies reports whether the action may apply to a state.
func (a *action) applies(l *lived) bool {
	return !a.ofNode || (l.nodes[a.node].o != nil) == a.running
}

// actions returns the possible actions, in order.
func (x *explorer) actions() (all []action) {
	ctx := context.Background()
	add := func(name string, do func() bool) { all = append(all, action{name: name, do: do}) }
	add("time", func() bool { x.now += tickOf; return true })
	add("snapshot", func() bool { x.lived.snapshot = x.data; return true })
	add("release", func() bool {
		x.node, x.views[operator] = operator, view{}
		v, err := Release(ctx, x, "p", 1, x.now)
		if x.forget && v.Spent.Mark > 0 {
			v.Spent = Span{}
			x.apply(write{write: map[string]string{keys{"p"}.number(1): v.String()}})
		}
		return err == nil
	})
	add("late write", func() bool {
		w := x.late
		x.late = nil
		return w != nil && x.apply(*w)
	})
	switch {
	case x.spends: // no restore, which could forget the spent time
		add("ahead", func() bool { x.far = !x.far; return true })
		add("years", func() bool { x.now += ahead - testHold - tickOf; return true })
	case x.clears:
		add("delete all", func() bool {
			if len(x.data) == 0 || x.copies {
				return false
			}
			x.data, x.late = map[string]string{}, nil // a late write does not reach the new numbers
			x.uid++
			return true
		})
	default:
		add("restore", func() bool {
			// A restore may remove the value from which one copy learns of the other.
			if x.lived.snapshot == nil || x.copies {
				return false
			}
			x.data = x.lived.snapshot
			return x.afterRestore(false)
		})
		add("restore, too early", func() bool {
			if x.lived.snapshot == nil || x.copies || x.floor > 0 {
				return false
			}
			v, err := parseValue(x.lived.snapshot[keys{"p"}.number(1)])
			if err != nil || v.Free || v.Mark-v.Hold <= x.now-testHold { // nothing proves that the time is too early
				return false
			}
			x.data = x.lived.snapshot
			return x.afterRestore(true)
		})
		add("delete", func() bool {
			return !x.copies && x.remove(keys{"p"}.number(1))
		})
		add("delete floor", func() bool {
			return !x.copies && x.remove(keys{"p"}.floor()) && len(x.data) > 0 // an empty store is like a new one, as documented
		})
	}
	for i := range len(lived{}.nodes) {
		act := func(what string, running bool, do func(n *living)) {
			all = append(all, action{name: fmt.Sprint(what, " ", i), node: i, running: running, ofNode: true, do: func() bool {
				x.node = i
				do(&x.nodes[i])
				return true
			}})
		}
		act("start", false, func(n *living) { n.o = x.owner() })
		act("kill", true, func(n *living) { n.o, x.views[i] = nil, view{} })
		act("stop", true, func(n *living) { n.o.Close(ctx); n.o, x.views[i] = nil, view{} })
		for _, answers := range []string{"", "lost", "late", "delayed", "unheard"} {
			act("step "+answers, true, func(n *living) {
				if c := n.o.claim; x.adopts && c != nil {
					if v, err := parseValue(x.data[c.key]); err == nil && v.Token == c.entry.Token {
						c.sent = append(c.sent, v)
					}
				}
				if c := n.o.claim; x.drops && c != nil && x.data[c.key] == c.entry.text {
					c.sent = nil
				}
				had := n.o.mark()
				x.answers = answers
				if err := n.o.Step(ctx); err == nil && n.o.mark() > had {
					n.copied = false
				}
				x.answers = ""
			})
		}
		act("copy", true, func(n *living) {
			if other := &x.nodes[1-i]; other.o == nil {
				n.copied, x.copies = true, true
				*other = *n
				other.o, x.views[1-i] = copyOwner(n.o), x.views[i]
			}
		})
	}
	slices.SortFunc(all, func(a, b action) int { return strings.Compare(a.name, b.name) })
	return all
}

// afterRestore writes the floor. If wrong is set, the operator first gives a time that is too early.
func (x *explorer) afterRestore(wrong bool) bool {
	x.node, x.views[operator] = operator, view{}
	x.random++
	r := Restored{
		Clock: func() uint64 { return x.now }, Hold: testHold * time.Millisecond,
		Margin: time.Duration(max(x.floor, x.now)-x.now) * time.Millisecond, Again: true, Sure: true, Nonce: x.random,
	}
	if wrong {
		r.Until, r.Sure, r.Again = x.now-testHold, x.early, false
	}
	f, err := AfterRestore(context.Background(), x, "p", r)
	if wrong && err != nil {
		return x.afterRestore(false)
	}
	x.floor = max(x.floor, f.Mark)
	return err == nil
}

// make makes an id with each node that may make one.
func (x *explorer) make() {
	for i := range x.nodes {
		n := &x.nodes[i]
		x.node = i
		if n.o == nil || n.o.claim == nil || n.copied {
			continue
		}
		c, now := n.o.claim, x.clock()
		if c.IsLost() && !c.Clean() || now <= c.after || now > c.Milli() || now <= n.last {
			continue
		}
		n.last = now
		x.twice = x.twice || x.ids[now]
		x.ids = maps.Clone(x.ids)
		x.ids[now] = true
	}
}

// accused reports whether an owner has lost its number to a copy that does not exist.
func (l *lived) accused() bool {
	return !l.copies && slices.ContainsFunc(l.nodes[:], func(n living) bool {
		return n.o != nil && n.o.claim != nil && context.Cause(n.o.claim.lost) == error(errCopy)
	})
}

// hash returns a hash of everything in the state that may matter later.
func (l *lived) hash(seed maphash.Seed) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, data := range []map[string]string{l.data, l.snapshot} {
		maphash.WriteComparable(&h, sum(seed, maps.All(data)))
	}
	if l.late != nil {
		maphash.WriteComparable(&h, sum(seed, maps.All(l.late.have)))
		maphash.WriteComparable(&h, sum(seed, maps.All(l.late.write)))
	}
	maphash.WriteComparable(&h, sum(seed, maps.All(l.ids)))
	maphash.WriteComparable(&h, struct {
		snapshot, late, copies, far bool
		now, floor                  uint64
		uid                         int
		views                       [3]view
	}{l.snapshot != nil, l.late != nil, l.copies, l.far, l.now, l.floor, l.uid, l.views})
	for i := range l.nodes {
		n := &l.nodes[i]
		maphash.WriteComparable(&h, struct {
			up, kept, copied bool
			last             uint64
		}{n.o != nil, n.kept != nil, n.copied, n.last})
		if n.kept != nil {
			maphash.WriteComparable(&h, *n.kept)
		}
		if n.o == nil {
			continue
		}
		maphash.WriteComparable(&h, struct {
			good          uint64
			cluster, sign string
		}{n.o.good, n.o.cluster, n.o.sign})
		for _, c := range []*Claim{n.o.claim, n.o.pending} {
			maphash.WriteComparable(&h, c != nil)
			if c == nil {
				continue
			}
			maphash.WriteComparable(&h, struct {
				entry                Entry
				floor                Floor
				after, highest, mark uint64
				lost, clean          bool
				sent                 int
			}{c.entry, c.floor, c.after, c.highest, c.Milli(), c.IsLost(), c.Clean(), len(c.sent)})
			for _, v := range c.sent {
				maphash.WriteComparable(&h, v)
			}
		}
	}
	return h.Sum64()
}

// sum returns a hash of a map's entries that does not depend on their order.
func sum[K, V comparable](seed maphash.Seed, entries iter.Seq2[K, V]) (total uint64) {
	for k, v := range entries {
		total += maphash.Comparable(seed, struct {
			key   K
			value V
		}{k, v})
	}
	return total
}

// explore visits all states that follow, up to a depth.
func (x *explorer) explore(from *lived, depth int, seed maphash.Seed) {
	for i := range x.all {
		if x.found != "" || x.count >= x.limit {
			return
		}
		a := &x.all[i]
		if !a.applies(from) {
			continue
		}
		x.lived = from.before(a)
		if !a.do() {
			continue
		}
		x.make()
		x.count++
		next := x.lived
		next.path = &did{a.name, from.path}
		if next.twice || next.accused() {
			x.found = next.path.String()[2:]
			return
		}
		if depth == 1 {
			continue
		}
		h := next.hash(seed)
		if x.seen[h] >= depth-1 {
			continue
		}
		x.seen[h] = depth - 1
		x.explore(next, depth-1, seed)
	}
}

// search explores one depth after another until an id repeats, or a depth has at least limit
// states. It returns the last depth that was searched completely.
func (x *explorer) search(limit int, first ...string) (depth int) {
	seed := maphash.MakeSeed()
	from := &lived{data: map[string]string{}, now: 1_700_000_000_000, ids: map[uint64]bool{}, uid: 1}
	x.all, x.limit = x.actions(), limit
	for _, name := range first {
		x.lived = from
		x.all[slices.IndexFunc(x.all, func(a action) bool { return a.name == name })].do()
		x.make()
		from.path = &did{name, from.path}
	}
	for ; x.count < limit && x.found == ""; depth++ {
		x.count, x.seen = 0, map[uint64]int{}
		x.explore(from, depth+1, seed)
	}
	return depth - 1
}

// stopped leads to a number that was returned after a snapshot.
var stopped = []string{"start 1", "step  1", "snapshot", "stop 1"}

// No id repeats, whatever two owners, an operator and a store do, in any order.
func TestExhaustive(t *testing.T) {
	for _, first := range [][]string{nil, stopped} {
		var x explorer
		depth := x.search(*states, first...)
		t.Logf("%d states at the last depth, all to a depth of %d beyond %d actions", x.count, depth, len(first))
		if x.found != "" || depth < 3 {
			t.Errorf("an id repeats: %s", x.found)
		}
	}
}

// farAhead leads to this state: a node whose clock is far ahead claimed the number, the number was
// released, and another node has had it up to hold before the spent time.
var farAhead = []string{"ahead", "start 0", "step  0", "release", "start 1", "step  1", "years", "step  1"}

// No id repeats if a node whose clock is far ahead claims the number, which is then released.
func TestExhaustiveAhead(t *testing.T) {
	x := explorer{spends: true}
	depth := x.search(*states, farAhead...)
	t.Logf("%d states at the last depth, all to a depth of %d", x.count, depth)
	if x.found != "" || depth < 3 {
		t.Errorf("an id repeats: %s", x.found)
	}
	x = explorer{spends: true, forget: true}
	if x.search(*states, farAhead...); x.found == "" {
		t.Error("no id repeats although the spent time is forgotten")
	}
	t.Log(x.found)
}

// No id repeats if all numbers are deleted, and a node that starts sees it, whether the others have noticed
// or not.
func TestExhaustiveDeleted(t *testing.T) {
	for _, first := range [][]string{
		{"start 0", "step  0"},
		{"start 1", "step  1", "stop 1", "start 0", "step  0", "delete all", "start 1", "step  1", "step  1"},
	} {
		x := explorer{clears: true}
		depth := x.search(*states, first...)
		t.Logf("%d states at the last depth, all to a depth of %d beyond %d actions", x.count, depth, len(first))
		if x.found != "" || depth < 3 {
			t.Errorf("an id repeats: %s", x.found)
		}
	}
	x := explorer{clears: true, fresh: true}
	if x.search(*states, "start 0", "step  0"); x.found == "" {
		t.Error("no id repeats although the store looks new")
	}
	t.Log(x.found)
}

func TestExhaustiveFinds(t *testing.T) {
	for name, control := range map[string]struct {
		explorer
		first []string
	}{
		"a number returned below its ids":  {explorer: explorer{latest: func(*living) uint64 { return 0 }}},
		"a number resumed after a restore": {explorer{resume: true}, slices.Concat(stopped, []string{"start 0", "step  0"})},
		"copies that keep the number":      {explorer{adopts: true}, []string{"start 0", "step  0"}},
		"a number whose key was deleted":   {explorer{trusts: true}, []string{"start 0", "step  0"}},
		"a restore with a time too early": {explorer{early: true},
			[]string{"start 0", "step  0", "snapshot", "time", "step  0", "restore, too early", "time"}},
		"a late write that is not expected": {explorer{drops: true}, []string{"start 0", "step  0"}},
	} {
		x := &control.explorer
		depth := x.search(max(*states, 100_000), control.first...)
		t.Logf("%s: %d states, depth %d: %s", name, x.count, depth, x.found)
		if x.found == "" {
			t.Errorf("%s: no id repeats to a depth of %d", name, depth)
		}
	}
}
