package distribution

import "time"

// maxTick bounds the time between two of our ticks, because some peers disconnect
// after 30 s of silence, whatever our net_ticktime.
const maxTick = 15 * time.Second

// ticker is the timer for ticks, with the counts of received bytes and of writes at the last tick.
// It is not a goroutine, because a waiting goroutine needs about as much memory as the rest of the
// connection.
type ticker struct {
	*time.Timer
	received, written uint64
}

func (c *Conn) tickNow() {
	if err := c.tick(); err != nil {
		c.cancel(err)
	}
	if c.ctx.Err() == nil { // otherwise the timer would keep the ended connection in memory
		c.ticker.Reset(c.pause())
	}
}

func (c *Conn) pause() time.Duration { return min(c.proto.NetTicktime/4, maxTick) }

// tick sends a tick if nothing else was sent since the last call of tick, which was at most a
// quarter of net_ticktime ago.
//
// It also moves the deadlines, because moving them at each read would cost more. So a peer that
// sends or reads nothing is considered down after 1 to 1.25 times net_ticktime. The write deadline
// also moves when the peer has read a part of a large write.
func (c *Conn) tick() error {
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
