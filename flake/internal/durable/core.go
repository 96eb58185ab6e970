package durable

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/flake-go/flake/flake/internal/tick"
)

// Core is what the generators of all formats are made of: the source of their ids
// and, once [Core.Open] has been called, what keeps its time. Its methods are those
// that the formats have alike, which document them.
type Core[S interface {
	Source
	Ready() error
}] struct {
	Source S
	Sleep  tick.Sleeper // nil: [tick.Sleep]

	Keeper *Keeper   // nil without a file
	closed sync.Once // without a keeper
}

// Open is [Open] of the source, which keeps it until Close.
func (c *Core[S]) Open(ctx context.Context, path string, o Options) (err error) {
	c.Keeper, err = Open(ctx, path, c.Source, o)
	return err
}

func (c *Core[S]) Ready() error {
	err := c.Source.Ready()
	if c.Keeper == nil {
		return err
	}
	return cmp.Or(err, c.Keeper.Ready())
}

func (c *Core[S]) Behind() time.Duration { return tick.Milliseconds(c.Source.Behind()) }

func (c *Core[S]) CatchUp(ctx context.Context) error {
	sleep := c.Sleep
	if sleep == nil {
		sleep = tick.Sleep
	}
	return tick.Await(ctx, sleep, c.Source.Behind)
}

func (c *Core[S]) Mark() time.Time {
	if c.Keeper == nil {
		return time.Time{}
	}
	return c.Keeper.Mark()
}

func (c *Core[S]) LastSaved() (time.Time, error) {
	if c.Keeper == nil {
		return time.Time{}, nil
	}
	return c.Keeper.LastSaved()
}

func (c *Core[S]) Close() error {
	if c.Keeper == nil {
		c.closed.Do(func() { c.Source.Close() })
		return nil
	}
	return c.Keeper.Close()
}
