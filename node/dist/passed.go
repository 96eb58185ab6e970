package dist

import (
	"slices"

	"github.com/flake-go/flake/node/wire"
)

// Answers to calls that another peer passed on are not what a connection is blamed
// for. They wait apart from its own, are written behind these, are held by who
// passed the calls on, and are dropped when there is no room.

// maxPassedOn bounds what waits for a peer of what one other passed on, but for one
// answer of any size.
const maxPassedOn = 4 << 20

// passed are the frames that wait for a peer, by who passed their calls on.
type passed struct {
	waiting []passedFrame
	flying  []passedFrame // of the write under way
	held    lean[*share, int]
}

type passedFrame struct {
	by    *share
	frame []byte
}

// passedSize is what one takes besides its bytes.
const passedSize = 64

func (f *passedFrame) size() int { return passedSize + cap(f.frame) }

// add reports whether there is room for a frame.
func (p *passed) add(f passedFrame) bool {
	held := p.held.all[f.by]
	if held > 0 && held+f.size() > maxPassedOn || !f.by.take(f.size()) {
		return false
	}
	p.held.set(f.by, held+f.size())
	p.waiting = append(p.waiting, f)
	return true
}

// next appends to a write as much as it is to have.
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

// written gives back what the last write had.
func (p *passed) written() {
	p.give(p.flying)
	p.flying = nil
}

// drop gives back what waits, of one or of all.
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

// pass has an answer written that is not the peer's own, and reports whether there
// was room for it.
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

// forget drops what waits of who passed it on.
func (o *output) forget(by *share) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.passed.drop(by)
}
