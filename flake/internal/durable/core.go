package durable

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/flake-go/flake/flake/internal/tick"
)

// Core is the part that the generators of all formats have in common: the source of ids and,
// after [Core.Open], the marker that keeps its mark. The formats document its methods.
type Core[S interface {
	Source
	Ready() error
}] struct {
	Source S
	Sleep  tick.Sleeper // nil means [tick.Sleep]

	Marker *Marker   // nil if there is no file
	closed sync.Once // used if there is no marker
}

// Open calls [Open] for the source and keeps its mark until Close.
func (c *Core[S]) Open(ctx context.Context, path string, o Options) (err error) {
	c.Marker, err = Open(ctx, path, c.Source, o)
	return err
}

func (c *Core[S]) Ready() error {
	err := c.Source.Ready()
	if c.Marker == nil {
		return err
	}
	return cmp.Or(err, c.Marker.Ready())
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
	if c.Marker == nil {
		return time.Time{}
	}
	return c.Marker.Mark()
}

func (c *Core[S]) LastSaved() (time.Time, error) {
	if c.Marker == nil {
		return time.Time{}, nil
	}
	return c.Marker.LastSaved()
}

func (c *Core[S]) Close() error {
	if c.Marker == nil {
		c.closed.Do(func() { c.Source.Close() })
		return nil
	}
	return c.Marker.Close()
}
