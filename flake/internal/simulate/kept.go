package simulate

import (
	"context"
	"fmt"
	"time"

	"github.com/flake-go/flake/flake/internal/durable"
	"github.com/flake-go/flake/flake/internal/mark"
	"github.com/flake-go/flake/flake/internal/tick"
)

// Path is where the marks of a kept node are.
const Path = "/var/flake-timestamp"

// Generator is a generator that starts from nothing, and what makes its ids.
type Generator struct {
	durable.Source
	IDs func(n int, got Got) error
}

// whose is the bits of a sequence that tell of which generator of a node it is.
const whose = 24

// NameOf is the name of the mark of a node's i-th generator; the first has none.
func NameOf(i int) string {
	if i == 0 {
		return ""
	}
	return fmt.Sprint(i)
}

// Kept gives what is to be simulated of generators whose time package durable
// keeps, in one file. They and their keepers are as they are, but for the goroutine
// that renews the marks.
func Kept(generators ...func(*Machine) (Generator, error)) Config {
	return Config{
		New:  func(m *Machine) Node { return &kept{m: m, made: generators} },
		Path: Path,
		Mark: func(file []byte, sequence uint32) (uint64, error) {
			marks, err := mark.Parse(file)
			at, found := marks[NameOf(int(sequence>>whose))]
			if err == nil && !found {
				err = fmt.Errorf("no mark of generator %d", sequence>>whose)
			}
			return at.Milli, err
		},
	}
}

type kept struct {
	m         *Machine
	made      []func(*Machine) (Generator, error)
	allowable time.Duration
	marks     *durable.Marks
	now       []Generator
	keepers   []*durable.Keeper
}

func (n *kept) Start(allowable time.Duration) (err error) {
	// How long marks are kept ahead of nobody: often no longer than is lived through.
	linger := []int{0, 1, 3, 60}[n.m.rng.IntN(4)]
	if n.marks, err = durable.OpenMarksOn(n.m.Disk, Path, nil, linger); err != nil {
		return err
	}
	n.allowable = allowable
	n.now, n.keepers = make([]Generator, len(n.made)), make([]*durable.Keeper, len(n.made))
	for i := range n.made {
		if err := n.open(i, n.m.Sleep); err != nil {
			n.marks.Close()
			return err
		}
	}
	return nil
}

func (n *kept) open(i int, sleep tick.Sleeper) error {
	g, err := n.made[i](n.m)
	if err != nil {
		return err
	}
	k, err := durable.OpenOn(context.Background(), n.m.Disk, sleep, NameOf(i), g.Source,
		durable.Options{AllowableDowntime: n.allowable, Marks: n.marks})
	if err != nil {
		return err
	}
	g.Limit().Extend = func(context.Context, uint64) (err error) { // as the keeper's own, which has a goroutine to do it
		began := n.m.Now()
		n.m.Undisturbed(func() { err = k.Renew() })
		if err == nil && n.m.Now()-began > durable.Patience {
			err = fmt.Errorf("%w: the disk is slow", tick.ErrTimestampNotSaved)
		}
		return err
	}
	n.now[i], n.keepers[i] = g, k
	return nil
}

// IDs are of any of the generators. The others look at the clock as well: each has
// its own, which is not to find two steps at once.
func (n *kept) IDs(count int, got Got) error {
	i := n.m.rng.IntN(len(n.now))
	if n.m.rng.IntN(32) == 0 {
		n.m.Undisturbed(func() { n.overlap(i, got) })
	}
	for other, g := range n.now {
		if other != i {
			g.Now()
		}
	}
	return n.ids(i, count, got)
}

func (n *kept) ids(i, count int, got Got) error {
	return n.now[i].IDs(count, func(milli uint64, sequence uint32) { got(milli, uint32(i)<<whose|sequence) })
}

// overlap opens a generator a second time while it runs: a node's first one with
// another node. If that has to wait, the first goes on meanwhile, and ends; and the
// clock may be set back.
func (n *kept) overlap(i int, got Got) {
	first, marks, err := n.marks, n.marks, error(nil)
	if i == 0 {
		if marks, err = durable.OpenMarksOn(n.m.Disk, Path, nil, 0); err != nil {
			return
		}
	}
	one := n.keepers[i]
	n.marks = marks
	err = n.open(i, func(ctx context.Context, d time.Duration) error {
		err := n.m.Sleep(ctx, d)
		if n.ids(i, 1+n.m.rng.IntN(3), got); i == 0 {
			first.Close()
		} else {
			one.Close()
		}
		if n.m.rng.IntN(2) == 0 {
			n.m.shift(-n.m.span(durable.Window))
		}
		return err
	})
	if err != nil {
		n.marks = first
	}
}

// BadCall has one of several generators end, and opens it again.
func (n *kept) BadCall() {
	if i := n.m.rng.IntN(len(n.now)); i > 0 {
		n.keepers[i].Close()
		if n.open(i, n.m.Sleep) != nil {
			panic(crash{})
		}
	}
}

func (n *kept) Tick() { n.keepers[0].Beat() }
func (n *kept) Stop() { n.marks.Close() }
