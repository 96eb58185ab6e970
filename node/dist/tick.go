package dist

import "time"

// maxTick is the longest time between two of our ticks: some peers hang up after 30 s
// of silence, whatever our net_ticktime.
const maxTick = 15 * time.Second

// tick sends a tick when nothing else was sent for a quarter of net_ticktime, and
// writes what others than the reader appended.
//
// It also moves the deadlines, once a tick instead of once a read: a peer that sends
// or takes nothing for net_ticktime is down within a quarter more. Each part of a
// large write that the peer takes moves them too.
func (c *Conn) tick() {
	ticks := time.Tick(min(c.proto.NetTicktime/4, maxTick))
	var received, written uint64
	err := c.extend(true, true)
	defer func() { c.cancel(err) }()
	for err == nil {
		select {
		case <-c.ctx.Done():
			return
		case <-c.out.wake:
			err = c.out.offer()
		case <-ticks:
			if c.asks.Load() {
				c.asked.Store(int64(time.Since(c.since)))
				c.asks.Store(false)
			}
			heard := c.in.octets.Load()
			writes, writing := c.out.state()
			stuck := writing && writes == written
			if err = c.extend(heard != received, !stuck); err == nil && !writing && writes == written {
				err = c.out.tick()
				writes++
			}
			received, written = heard, writes
		}
	}
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
