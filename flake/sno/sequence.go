package sno

// SequenceMin is the sequence of the first id of each tick.
func (g *Generator) SequenceMin() uint16 { return g.core.Source.pass().min }

// SequenceMax is the sequence of the last id that a tick can have.
func (g *Generator) SequenceMax() uint16 { return g.core.Source.pass().max() }

// Len is how many ids of the current tick are used up. Of [Generator.PerTick] the others
// can be had without waiting, unless somebody else takes them.
func (g *Generator) Len() int {
	p := g.core.Source.pass()
	milli, used := p.ids.Last()
	if milli != p.ids.Now() {
		return 0
	}
	return used
}

// Sequence is the sequence of the last id of the current tick, or that of its first if it
// has none yet.
func (g *Generator) Sequence() uint16 { return g.SequenceMin() + uint16(max(g.Len(), 1)-1) }
