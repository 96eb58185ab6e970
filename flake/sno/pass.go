package sno

import "github.com/flake-go/flake/flake/internal/tick"

// A pass is a generator's way through time until the clock is set back. The ids
// of it differ from those of the one before in the tick-tock bit, and from those
// before that in their time: they are later than safe, which is later than
// those all. So
//
//   - with the pass's own bit, no id is later than its last;
//   - with the other, none is later than safe.
type pass struct {
	ids    *tick.Generator
	drifts uint32 // how many passes were before; the lowest bit is the tick-tock bit
	safe   uint64 // ms since 1970
	tag    uint64 // the tick-tock bit and the partition, as they are in an id
	min    uint16 // the sequence of a tick's first id
	waits  uint64 // of the passes before
}

// next gives the pass after p, which had no id later than last. Its own are
// later than after.
func (p *pass) next(ids *tick.Generator, last uint64) *pass {
	return &pass{ids, p.drifts + 1, last, p.tag ^ 1<<24, p.min, p.waits + p.ids.Waits()}
}

// none is the pass of a zero value.
var none pass

// pass is the one that the generator is in.
func (g *Generator) pass() *pass {
	if p := g.now.Load(); p != nil {
		return p
	}
	return &none
}

// lag is in how many ms ids can go on, with either bit; 0: now.
func (p *pass) lag() uint64 {
	now := p.ids.Now()
	return min(p.ids.Behind(), max(p.safe+unit, now)-now)
}

// turn replaces p, of which err came, if it is time for the next pass. It gives
// the error if trying again is no use.
func (g *Generator) turn(p *pass, err error) error {
	// The clock is read after the last id: what seems behind is.
	last, _ := p.ids.Last()
	now := p.ids.Now()
	g.turning.Lock()
	defer g.turning.Unlock()
	switch {
	case g.now.Load() != p: // another did it
		return nil
	case g.closed:
		return ErrClosed
	case now < Epoch:
		return beforeEpoch(now)
	case now >= last:
		return nil
	case now <= p.safe:
		return err
	}
	last = p.ids.Close()
	g.now.Store(p.next(p.ids.Successor(now-unit), last))
	return nil
}
