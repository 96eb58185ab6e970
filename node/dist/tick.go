package dist

import (
	"sync"
	"time"
)

// maxTick is the longest time between two of our ticks: some peers hang up after 30 s
// of silence, whatever our net_ticktime.
const maxTick = 15 * time.Second

// background is what is done for a connection outside its reader, while it is on. A
// goroutine that waits for it would take about as much memory as all the rest.
type background struct {
	mu      sync.Mutex
	on      bool
	running sync.WaitGroup
}

// begin reports whether something may be done; end must follow.
func (b *background) begin() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.on {
		b.running.Add(1)
	}
	return b.on
}

func (b *background) end() { b.running.Done() }

// turnOn lets things be done. None is done before start has returned, nor missed after.
func (b *background) turnOn(start func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	start()
	b.on = true
}

// turnOff returns when none is done any more.
func (b *background) turnOff() {
	b.mu.Lock()
	b.on = false
	b.mu.Unlock()
	b.running.Wait()
}

// ticker is what the last tick has seen.
type ticker struct {
	*time.Timer
	received, written uint64
}

// startTicks has tick called from time to time, and what others appended written, until
// stopTicks.
func (c *Conn) startTicks() error {
	c.background.turnOn(func() { c.ticker.Timer = time.AfterFunc(c.pause(), c.tickNow) })
	if c.out.reminded.Load() {
		c.writeAside()
	}
	return c.extend(true, true)
}

func (c *Conn) tickNow() {
	if !c.background.begin() {
		return
	}
	defer c.background.end()
	if err := c.tick(); err != nil {
		c.cancel(err)
		return
	}
	c.ticker.Reset(c.pause())
}

func (c *Conn) stopTicks() {
	c.background.turnOff()
	c.ticker.Stop()
}

func (c *Conn) pause() time.Duration { return min(c.proto.NetTicktime/4, maxTick) }

// writeAside writes what others than the reader appended.
func (c *Conn) writeAside() {
	if !c.background.begin() {
		return
	}
	go c.offer()
}

func (c *Conn) offer() {
	defer c.background.end()
	c.out.reminded.Store(false)
	if err := c.out.offer(); err != nil {
		c.cancel(err)
	}
}

// tick sends a tick when nothing else was sent for a quarter of net_ticktime.
//
// It also moves the deadlines, once a tick instead of once a read: a peer that sends
// or takes nothing for net_ticktime is down within a quarter more. Each part of a
// large write that the peer takes moves them too.
func (c *Conn) tick() error {
	if c.asks.Load() {
		c.asked.Store(int64(time.Since(c.since)))
		c.asks.Store(false)
	}
	t := &c.ticker
	heard := c.in.octets.Load()
	writes, writing := c.out.state()
	stuck := writing && writes == t.written
	err := c.extend(heard != t.received, !stuck)
	if err == nil && !writing && writes == t.written {
		err = c.out.tick()
		writes++
	}
	t.received, t.written = heard, writes
	return err
}

// extend moves the deadlines asked for to net_ticktime from now.
func (c *Conn) extend(read, write bool) error {
	deadline := time.Now().Add(c.proto.NetTicktime)
	if read {
		if err := c.conn.SetReadDeadline(deadline); err != nil {
			return err
		}
	}
	if write {
		return c.conn.SetWriteDeadline(deadline)
	}
	return nil
}
