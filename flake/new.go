package flake

import (
	"context"
	"sync"

	"github.com/flake-go/flake/flake/internal/tick"
)

// New returns an id, with nothing to set up: a worker id is made up at random when
// the process first calls it. Any number of goroutines may call it. Ids ascend
// as long as the process lives, also when the clock is set back: their time is ahead
// of it then. When the 65,536 of a millisecond are used New waits for the next one.
//
// That no other process, nor this one after a restart, makes the same id is as
// likely as that 47 random bits are not the same in two processes of one
// millisecond; nothing is kept on disk. After a restart with the clock set back,
// ids may be below those before. Where a system may rest on no chance, or on that
// order, there is [Open].
func New() ID {
	id, err := standard().Next(context.Background())
	if err != nil { // never, with this clock
		panic(err)
	}
	return id
}

var standard = sync.OnceValue(func() *Generator {
	g, err := NewGenerator(RandomWorker(), Options{Clock: tick.ForwardClock()})
	if err != nil {
		panic(err)
	}
	return g
})
