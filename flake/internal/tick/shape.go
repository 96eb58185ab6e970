package tick

import (
	"fmt"
	"math/bits"
)

// Shape is how a format cuts time.
type Shape struct {
	First   uint64 // when the first tick begins: the format's epoch, a multiple of Unit
	Last    uint64 // when the last one does that fits the format; at most MaxLast
	Unit    uint64 // how long a tick is, a power of two
	PerTick int    // how many ids it has, 1 to MaxPerTick
}

// The generator's one word: how far the last tick is from the first, in ms, and below
// it how many of its ids are used.
const (
	closed = ^uint64(0) // the word of a generator that has ended

	// MaxPerTick is the most ids that a tick may have.
	MaxPerTick = 1 << 22

	// MaxLast is the latest that a tick may begin, in the year 6429.
	MaxLast = 1<<47 - 2
)

// usedBits is how many bits of the word count used ids: enough for one more than there
// are, which only a closed generator's word has.
func (s Shape) usedBits() uint8 { return uint8(bits.Len(uint(s.PerTick) + 1)) }

// check refuses a shape that has no place in the word. Shapes are the formats'
// own, so a user meets this only by way of an epoch.
func (s Shape) check() error {
	switch {
	case bits.OnesCount64(s.Unit) != 1:
		return fmt.Errorf("flake: a tick of %d ms, where a power of two belongs", s.Unit)
	case s.PerTick < 1 || s.PerTick > MaxPerTick:
		return fmt.Errorf("flake: %d ids a tick, where 1 to %d belong", s.PerTick, MaxPerTick)
	case s.First%s.Unit != 0:
		return fmt.Errorf("flake: an epoch at %d ms since 1970, no multiple of the %d ms of a tick", s.First, s.Unit)
	case s.First > s.Last || s.Last > MaxLast:
		return fmt.Errorf("flake: ticks from %d to %d ms since 1970, and the last that can be counted is at %d", s.First, s.Last, uint64(MaxLast))
	case s.Last-s.First > closed>>s.usedBits():
		return fmt.Errorf("flake: %d ids a tick for %d ms, more than can be counted: %d ms", s.PerTick, s.Last-s.First, closed>>s.usedBits())
	}
	return nil
}
