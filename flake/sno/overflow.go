package sno

import (
	"sync"
	"time"
)

// Overflow tells that the ids of a tick were used up, and calls waited for the
// next. It comes once a tick, when that is over, and not at all if nobody takes it
// then: a channel with room loses none. The peer's SequenceOverflowNotification
// comes while calls wait, looked at every ms or so: there Now is when that was,
// and Ticks are those looks.
type Overflow struct {
	Now   time.Time // when the tick began
	Count uint32    // how many calls wait
	Ticks uint32    // how many ticks of 4 ms in a row were used up so, this one included
}

type overflow struct {
	told chan<- Overflow

	mu      sync.Mutex
	waiting uint32
	tick    uint64 // the last that was told of
	ticks   uint32
}

// begin notes that a call waits.
func (o *overflow) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting++
}

// end notes that a call no longer waits for the tick after milli.
func (o *overflow) end(milli uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if milli != o.tick {
		if milli != o.tick+unit {
			o.ticks = 0
		}
		o.tick = milli
		o.ticks++
		select {
		case o.told <- Overflow{time.UnixMilli(int64(milli)).UTC(), o.waiting, o.ticks}:
		default:
		}
	}
	o.waiting--
}
