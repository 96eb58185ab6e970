package dist

import (
	"slices"

	"github.com/flake-go/flake/node/wire"
)

// A connection is not blamed for answers to calls that another peer passed on. They
// wait apart from its own, are written after those, count against whoever passed the
// calls on, and are dropped if there is no room.

// maxPassedOn bounds what waits for a peer and was passed on by one other, except for
// a single answer of any size.
const maxPassedOn = 4 << 20

// passed are the frames that wait for a peer, by whoever passed on their calls.
type passed struct {
	waiting []passedFrame
	flying  []passedFrame // of the write under way
	held    lean[*share, int]
}

type passedFrame struct {
	by    *share
	frame []byte
}

// passedSize is what a frame takes besides its bytes.
const passedSize = 64

func (f *passedFrame) size() int { return passedSize + cap(f.frame) }

// add adds a frame and reports whether there is room for it.
func (p *passed) add(f passedFrame) bool {
	held := p.held.all[f.by]
	if held > 0 && held+f.size() > maxPassedOn || !f.by.take(f.size()) {
		return false
	}
	p.held.set(f.by, held+f.size())
	p.waiting = append(p.waiting, f)
	return true
}

// next appends what the next write is to carry.
func (p *passed) next(b []byte) []byte {
	n := 0
	for _, f := range p.waiting {
		if len(b) > 0 && len(b)+len(f.frame) > 2*fullOutput {
			break
		}
		if n++; len(b) == 0 && len(f.frame) > fullOutput {
			b = f.frame
		} else {
			b = append(b, f.frame...)
		}
	}
	p.flying, p.waiting = p.waiting[:n:n], p.waiting[n:]
	if len(p.waiting) == 0 {
		p.waiting = nil
	}
	return b
}

// written releases what the last write held.
func (p *passed) written() {
	p.give(p.flying)
	p.flying = nil
}

// drop releases what waits, of one share or of all.
func (p *passed) drop(by *share) {
	p.waiting = slices.DeleteFunc(p.waiting, func(f passedFrame) bool {
		of := by == nil || f.by == by
		if of {
			p.give([]passedFrame{f})
		}
		return of
	})
}

func (p *passed) give(frames []passedFrame) {
	for _, f := range frames {
		f.by.give(f.size())
		if held := p.held.all[f.by] - f.size(); held > 0 {
			p.held.set(f.by, held)
		} else {
			p.held.remove(f.by)
		}
	}
	clear(frames)
}

// pass has an answer written that is not the peer's own, and reports whether there was
// room for it.
func (o *output) pass(by *share, frame []byte) bool {
	wire.Close(frame, 0)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || !o.passed.add(passedFrame{by, frame}) {
		return false
	}
	o.remind()
	return true
}

// forget drops what waits and was passed on by the share's connection.
func (o *output) forget(by *share) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.passed.drop(by)
}
