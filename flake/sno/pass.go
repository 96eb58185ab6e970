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

// next returns the pass after p, which had no id later than last. Its own are
// later than after.
func (p *pass) next(ids *tick.Generator, last uint64) *pass {
	return &pass{ids, p.drifts + 1, last, p.tag ^ 1<<24, p.min, p.waits + p.ids.Waits()}
}

// lag is in how many ms ids can go on, with either bit; 0: now.
func (p *pass) lag() uint64 {
	now := p.ids.Now()
	return min(p.ids.Behind(), max(p.safe+unit, now)-now)
}

func (p *pass) partition() (of Partition) {
	of.PutUint16(uint16(p.tag))
	return of
}

// max is the sequence of a tick's last id.
func (p *pass) max() uint16 { return p.min + uint16(p.ids.PerTick()-1) }
