package simulate

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/flake-go/flake/flake/internal/durable"
	"github.com/flake-go/flake/flake/internal/mark"
	"github.com/flake-go/flake/flake/internal/tick"
)

// Path is the path of the file of marks.
const Path = "/var/flake-timestamp"

// Generator is a generator that is not yet open on a file, and a function that makes its ids.
type Generator struct {
	durable.Source
	IDs func(n int, got Got) error
}

// generatorBit is the lowest of the bits of a sequence that hold the index of the id's generator.
const generatorBit = 24

// NameOf returns the name of the mark of a node's i-th generator. The first name is empty.
func NameOf(i int) string {
	if i == 0 {
		return ""
	}
	return fmt.Sprint(i)
}

// Kept returns the Config for generators whose marks package durable keeps in one file. The
// generators and their markers are the real ones, except for the goroutine that renews the marks.
func Kept(generators ...func(*Machine) (Generator, error)) Config {
	return Config{
		New: func(m *Machine) Node { return &kept{m: m, disk: m.Disk, made: generators} },
		Marks: func(file []byte) func(uint32) (uint64, error) {
			c, err := mark.Parse(file)
			return func(sequence uint32) (uint64, error) {
				at, found := c.Marks[NameOf(int(sequence>>generatorBit))]
				if err == nil && !found {
					return 0, fmt.Errorf("no mark of generator %d", sequence>>generatorBit)
				}
				return at.Milli, err
			}
		},
	}
}

type kept struct {
	m         *Machine
	disk      mark.Disk
	made      []func(*Machine) (Generator, error)
	allowable time.Duration
	marks     *durable.Marks
	now       []Generator
	markers   []*durable.Marker
}

func (n *kept) Start(allowable time.Duration) (err error) {
	// linger is often shorter than the time between two events.
	linger := []int{0, 1, 3, 60}[n.m.rng.IntN(4)]
	if n.marks, err = durable.OpenMarksOn(n.disk, n.m.Sleep, Path, nil, linger); err != nil {
		return err
	}
	// The number takes up several sectors, so that every write to the file can be torn.
	n.marks.Remember(&mark.Number{Prefix: strings.Repeat("/", 3*sector), Token: n.m.rng.Uint64()})
	n.allowable = allowable
	n.now, n.markers = make([]Generator, len(n.made)), make([]*durable.Marker, len(n.made))
	for i := range n.made {
		if err := n.open(i); err != nil {
			n.marks.Close()
			return err
		}
	}
	return nil
}

func (n *kept) open(i int) error {
	g, err := n.made[i](n.m)
	if err != nil {
		return err
	}
	k, err := durable.OpenOn(context.Background(), NameOf(i), g.Source,
		durable.Options{AllowableDowntime: n.allowable, Marks: n.marks})
	if err != nil {
		return err
	}
	g.Limit().Extend = func(context.Context, uint64) (err error) { // like the marker's own Extend, which needs a goroutine
		began := n.m.now
		n.m.Undisturbed(func() { err = k.Renew() })
		if err == nil && n.m.now-began > durable.Patience {
			err = fmt.Errorf("%w: the disk is slow", tick.ErrTimestampNotSaved)
		}
		return err
	}
	n.now[i], n.markers[i] = g, k
	return nil
}

// IDs makes ids with one of the generators. The other generators read their clocks too, so that
// no clock sees two steps between readings.
func (n *kept) IDs(count int, got Got) error {
	i := n.m.rng.IntN(len(n.now))
	for other, g := range n.now {
		if other != i {
			g.Now()
		}
	}
	return n.now[i].IDs(count, func(milli uint64, sequence uint32) { got(milli, uint32(i)<<generatorBit|sequence) })
}

// BadCall closes one of several generators and opens it again.
func (n *kept) BadCall() {
	if i := n.m.rng.IntN(len(n.now)); i > 0 {
		n.markers[i].Close()
		if n.open(i) != nil {
			panic(crash{})
		}
	}
}

func (n *kept) Tick() { n.markers[0].Beat() }
func (n *kept) Stop() { n.marks.Close() }
