package dist

import "bytes"

// maxAlike is how many messages Alike takes at a time: as many calls as fullBuffer
// has room for, though the buffer be larger.
const maxAlike = 1024

// Alike takes messages that have arrived next and are the one being handled over
// again but for its octets [from:to): for the same process, from the same sender.
// Who takes them has to handle them. They are valid as long as message is. Only a
// Handler may call this.
func (c *Conn) Alike(message []byte, from, to int) [][]byte {
	clear(c.alike)
	c.alike = c.alike[:0]
	frame := c.frame
	before := len(frame) - len(message)
	if before < 0 || len(message) == 0 || &frame[before] != &message[0] {
		return nil // it was made here
	}
	for len(c.alike) < maxAlike {
		next, ok := c.in.nextLike(frame, before+from, before+to)
		if !ok {
			break
		}
		c.alike = append(c.alike, next[before:])
	}
	return c.alike
}

// nextLike gives the next whole frame that has arrived, if it is like the given
// one but for the octets [from:to).
func (f *frames) nextLike(frame []byte, from, to int) (next []byte, ok bool) {
	next, _, _ = f.peek()
	if len(next) != len(frame) || !bytes.Equal(next[:from], frame[:from]) || !bytes.Equal(next[to:], frame[to:]) {
		return nil, false
	}
	f.r += frameHeader + len(next)
	return next, true
}
