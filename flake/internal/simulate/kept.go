package simulate

import (
	"context"
	"fmt"
	"time"

	"github.com/flake-go/flake/flake/internal/durable"
	"github.com/flake-go/flake/flake/internal/mark"
	"github.com/flake-go/flake/flake/internal/tick"
)

// Path is where the mark of a kept node is.
const Path = "/var/flake-timestamp"

// Generator is a generator that starts from nothing, and what makes its ids.
type Generator struct {
	durable.Source
	IDs func(n int, got Got) error
}

// Kept gives what is to be simulated of generators whose time package durable
// keeps. They and their keepers are as they are, but for the goroutine that
// renews the mark.
func Kept(generator func(*Machine) (Generator, error)) Config {
	return Config{
		New:  func(m *Machine) Node { return &kept{m: m, generator: generator} },
		Path: Path,
		Mark: func(file []byte) (uint64, error) {
			at, err := mark.Parse(file)
			return at.Milli, err
		},
	}
}

type kept struct {
	m         *Machine
	generator func(*Machine) (Generator, error)
	now       Generator
	keeper    *durable.Keeper
}

func (n *kept) Start(allowable time.Duration) error {
	g, err := n.generator(n.m)
	if err != nil {
		return err
	}
	k, err := durable.OpenOn(context.Background(), n.m.Disk, n.m.Sleep, Path, g.Source, durable.Options{AllowableDowntime: allowable})
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
	n.now, n.keeper = g, k
	return nil
}

func (n *kept) IDs(count int, got Got) error { return n.now.IDs(count, got) }
func (n *kept) BadCall()                     {}
func (n *kept) Tick()                        { n.keeper.Renew() }
func (n *kept) Stop()                        { n.keeper.Close() }
