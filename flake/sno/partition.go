package sno

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"
)

// Partition tells generators apart.
type Partition [2]byte

// AsUint16 is the partition as a number, big-endian.
func (p Partition) AsUint16() uint16 { return uint16(p[0])<<8 | uint16(p[1]) }

// PutUint16 sets the partition to a number, big-endian.
func (p *Partition) PutUint16(n uint16) { *p = Partition{byte(n >> 8), byte(n)} }

// ErrPartitionsExhausted: this process has handed out all 65,536 partitions to
// generators that were not given one.
var ErrPartitionsExhausted = errors.New("flake: all 65536 partitions are given out in this process: set them")

// A pool hands out each partition once, one after the other from a random first.
type pool struct {
	seed  uint16
	given atomic.Uint32
}

var partitions = pool{seed: uint16(rand.Uint32())}

func (p *pool) next() (partition Partition, err error) {
	for {
		n := p.given.Load()
		if n == 1<<16 {
			return partition, ErrPartitionsExhausted
		}
		if p.given.CompareAndSwap(n, n+1) {
			partition.PutUint16(p.seed + uint16(n))
			return partition, nil
		}
	}
}
