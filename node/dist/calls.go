package dist

import (
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/node/latency"
)

// histograms is how many histograms the connections share, so that few of them write to
// one at a time.
const histograms = 8

// calls are the calls of a connection, and how long the node took over them: from when
// they had arrived to when their answers were written. That takes two looks at the clock
// for all that one read brought.
type calls struct {
	took  *latency.Histogram
	given atomic.Uint64 // see Message.Given

	// Of the reader, since the last write.
	began    time.Duration // when the first message was there, after Conn.since; 0: none was
	answered uint64
}

// arrive notes that a message has arrived.
func (c *Conn) arrive() {
	if c.calls.began == 0 {
		c.calls.began = time.Since(c.since)
	}
}

// written counts the calls whose answers the reader has written.
func (c *Conn) written() {
	if c.calls.answered > 0 {
		c.answered(c.calls.began, c.calls.answered)
		c.calls.answered = 0
	}
	c.calls.began = 0
}

func (c *Conn) answered(began time.Duration, calls uint64) {
	c.calls.took.Add(time.Since(c.since)-began, calls)
}

// Given returns what the servers have given the peer: see [Message.Given].
func (c *Conn) Given() uint64 { return c.calls.given.Load() }

// Latency returns how long the answers to all calls took.
func (p *Proto) Latency() (all latency.Counts) {
	for i := range p.took {
		all.Collect(&p.took[i])
	}
	return all
}

// histogram returns the one of the next connection.
func (p *Proto) histogram() *latency.Histogram { return &p.took[p.made.Add(1)%histograms] }
