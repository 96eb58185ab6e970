package sno

import (
	"context"
	"math/rand/v2"
	"sync"

	"github.com/flake-go/flake/flake/internal/tick"
)

// New returns an id with a metabyte, with nothing to set up: as the peer's, of a
// partition that is made up when the process first calls it, and that no generator of
// [NewGenerator] has there. Any number of goroutines may call it. Ids ascend as long as
// the process lives, also when the clock is set back: their time is ahead of it then.
// When those of a tick are used, at least 32,768, New waits for the next one. It panics
// if this process has given out all partitions, or the clock is before 2010 or after 2079.
//
// Nothing is kept on disk, and 16 random bits of partition do not tell the processes of a
// fleet apart: of 100, two have the same with a chance of one in 14. So the sequence of a
// tick begins somewhere in its lower half, which are 15 bits more if few ids are made:
// two processes that both make ids in one tick make the same with a chance of about one in
// 2^31, and of one in 2^16 if each makes tens of thousands. That will do for tests and
// traces. Ids that may never come twice are for [Open].
func New(meta byte) ID {
	id, err := standard().Next(context.Background())
	if err != nil {
		panic(err)
	}
	return id.WithMeta(meta)
}

var standard = sync.OnceValue(func() *Generator {
	partition, err := partitions.next()
	if err != nil {
		panic(err)
	}
	from := &Snapshot{Partition: partition, SequenceMin: uint16(rand.Uint32N(1 << 15))}
	g, err := NewGenerator(from, Options{Clock: tick.ForwardClock()})
	if err != nil {
		panic(err)
	}
	return g
})
