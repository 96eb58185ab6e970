package dist

import (
	"sync"
	"time"
)

// maxTick bounds the time between two of our ticks, because some peers disconnect
// after 30 s of silence, whatever our net_ticktime.
const maxTick = 15 * time.Second

// background allows work for a connection outside its reader while on is set. A goroutine
// waiting for such work would need about as much memory as the rest of the connection.
type background struct {
	mu      sync.Mutex
	on      bool
	running sync.WaitGroup
}

// begin reports whether work may be done; if so, the caller must call end.
func (b *background) begin() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.on {
		b.running.Add(1)
	}
	return b.on
}

func (b *background) end() { b.running.Done() }

// start calls f and then allows work.
func (b *background) start(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
	b.on = true
}

// stop forbids more work and waits for work in progress to end.
func (b *background) stop() {
	b.mu.Lock()
	b.on = false
	b.mu.Unlock()
	b.running.Wait()
}

// ticker is the timer for ticks, with the counts of received bytes and of writes at the last tick.
type ticker struct {
	*time.Timer
	received, written uint64
}

// startTicks starts the ticks and allows writeAside; stopTicks stops both.
func (c *Conn) startTicks() error {
	c.background.start(func() { c.ticker.Timer = time.AfterFunc(c.pause(), c.tickNow) })
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
	c.background.stop()
	c.ticker.Stop()
}

func (c *Conn) pause() time.Duration { return min(c.proto.NetTicktime/4, maxTick) }

// writeAside writes frames that the reader did not append.
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

// tick sends a tick if nothing else was sent since the last call of tick, which was at most a
// quarter of net_ticktime ago.
//
// It also moves the deadlines, because moving them at each read would cost more. So a peer that sends
// or reads nothing is considered down after net_ticktime, or at most a quarter of net_ticktime later.
// The deadline for writes also moves as the peer reads each part of a large write.
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

// extend moves the read or write deadline, or both, to net_ticktime from now.
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
