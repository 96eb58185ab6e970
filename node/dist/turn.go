package dist

// Turn waits until it is the turn of an answer of up to size octets, which Post
// then takes. The peer's large answers go one at a time: done waits until this
// one is written, so that never more than one is between others and the peer.
// Not ok: the connections hold too much for it, or this one has ended.
func (c *Conn) Turn(size int) (done func(), ok bool) {
	select {
	case c.turn <- struct{}{}:
	case <-c.ctx.Done():
		return nil, false
	}
	room := 0
	if size > ownLarge {
		room = size
	}
	// Once while it is built, and once while it waits to be written.
	if !c.share.take(2 * room) {
		<-c.turn
		return nil, false
	}
	c.out.allow(room)
	return func() {
		c.out.flush() // an error is the reader's to see
		c.out.allow(-room)
		c.share.give(2 * room)
		<-c.turn
	}, true
}
