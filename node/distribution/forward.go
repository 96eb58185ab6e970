package distribution

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
	"github.com/flake-go/flake/node/wire"
)

// An answer is sent to the node of the calling process. If that node is not the peer, the peer
// has forwarded the call. As on a BEAM, the answer then waits until that node is connected. If
// connecting fails, the answer is sent to the peer after all, because some peers put another
// node's name in their pids.

const (
	// A delivery holds the answers that wait for one node. maxDeliveries bounds the deliveries at
	// the same time, and maxDeliveriesOfPeer those that one peer has started by forwarding calls.
	maxDeliveries       = 16
	maxDeliveriesOfPeer = 4

	// deliveryPause is how long to wait before trying an unreachable node again, and
	// maxUnreachable how many such nodes are remembered.
	deliveryPause  = 10 * time.Second
	maxUnreachable = 1024
)

// answer is a message to a process: to its alias or, if that is nil, to a pid, an alias or
// {Name, Node}. token is a trace token or nil. All of these are encoded terms. by is the connection
// on which the call arrived.
type answer struct {
	to, alias, token, message []byte
	by                        *Conn
}

func (a answer) size() int {
	return queuedSize + len(a.to) + len(a.alias) + len(a.token) + len(a.message)
}

// deliveries holds the waiting answers, by node.
type deliveries struct {
	mu          sync.Mutex // guards all and unreachable
	all         map[string]*delivery
	unreachable map[string]time.Time // when connecting last failed
}

type delivery struct {
	by      *Conn // the peer that forwarded the first of the calls
	waiting []answer
}

// begin adds a delivery. It returns nil if a limit or deliveryPause forbids it.
func (s *deliveries) begin(node string, by *Conn) *delivery {
	if time.Since(s.unreachable[node]) < deliveryPause || len(s.all) >= maxDeliveries {
		return nil
	}
	ofPeer := 0
	for _, e := range s.all {
		if e.by == by {
			ofPeer++
		}
	}
	if ofPeer >= maxDeliveriesOfPeer {
		return nil
	}
	e := &delivery{by: by}
	if s.all == nil {
		s.all = make(map[string]*delivery)
	}
	s.all[node] = e
	return e
}

func (s *deliveries) fail(node string) {
	if s.unreachable == nil || len(s.unreachable) >= maxUnreachable {
		s.unreachable = make(map[string]time.Time)
	}
	s.unreachable[node] = time.Now()
}

// forward sends an answer to the node of its process, or adds it to a delivery to that node. It
// returns false if it can do neither.
func (c *Conn) forward(a answer) bool {
	p, node := c.proto, string(nodeOf(a.to))
	p.deliveries.mu.Lock()
	defer p.deliveries.mu.Unlock()
	e := p.deliveries.all[node]
	if e == nil {
		if other := p.Connection(node); other != nil {
			other.passOn(a)
			return true
		}
		if node == p.Node {
			return false
		}
	}
	if !c.memory.take(a.size()) {
		return false
	}
	if e == nil {
		if e = p.deliveries.begin(node, c); e == nil {
			c.memory.give(a.size())
			return false
		}
		p.Go(func() { p.connect(node) })
	}
	a = answer{bytes.Clone(a.to), bytes.Clone(a.alias), bytes.Clone(a.token), bytes.Clone(a.message), c}
	e.waiting = append(e.waiting, a)
	return true
}

func (p *Proto) connect(node string) {
	if err := p.Connect(node); err != nil && p.Connection(node) == nil {
		p.Log.Warn("cannot connect to the node of a forwarded call; answered through the peer that forwarded it",
			"peer", node, "err", err)
		p.deliver(node, nil)
	} // otherwise Serve delivers the answers
}

// deliver sends the answers that wait for a node over the new connection to it. If to is nil,
// connecting has failed: the answers are sent to the peers that forwarded the calls.
func (p *Proto) deliver(node string, to *Conn) {
	p.deliveries.mu.Lock()
	defer p.deliveries.mu.Unlock()
	if to == nil {
		p.deliveries.fail(node)
	}
	if e := p.deliveries.all[node]; e != nil {
		for _, a := range e.waiting {
			if to != nil {
				to.guard(func() error { to.passOn(a); return nil })
			} else {
				a.by.sendHere(a)
				a.by.out.poke()
			}
			a.by.memory.give(a.size())
		}
		delete(p.deliveries.all, node)
	}
}

// disown drops all waiting answers to calls that c's peer forwarded.
func (p *Proto) disown(c *Conn) {
	p.deliveries.mu.Lock()
	defer p.deliveries.mu.Unlock()
	for _, e := range p.deliveries.all {
		e.waiting = slices.DeleteFunc(e.waiting, func(a answer) bool { return a.by == c })
	}
	if c.passedOn.Load() {
		for other := range p.served.Range {
			other.(*Conn).out.forget(&c.memory)
		}
	}
}

// passOn sends an answer to a call that another peer forwarded, in a form that c's peer can read.
// If there is no room, the answer is dropped.
func (c *Conn) passOn(a answer) {
	if !c.reaches(a.to) {
		return
	}
	if c.caps != a.by.caps {
		var err error
		if a.message, err = c.recode(a.message); err != nil {
			c.proto.Log.Warn("answer dropped: the peer cannot read it", "peer", c.peer.Name, "by", a.by.peer.Name, "err", err)
			return
		}
	}
	if a.token != nil {
		a.token = c.tokenFor(a.token)
	}
	a.by.passedOn.Store(true)
	if !c.out.pass(&a.by.memory, c.appendAnswer(wire.Open(make([]byte, 0, a.size())), a)) {
		c.proto.Log.Warn("answer dropped: the peer has not read earlier ones", "peer", c.peer.Name, "by", a.by.peer.Name)
	}
}

// tokenFor returns a trace token in a form that c's peer can read, or nil. As on a BEAM, a peer
// without BIG_SEQTRACE_LABELS gets only small integers as labels.
func (c *Conn) tokenFor(token []byte) []byte {
	r := etf.NewReader(token)
	r.Tuple()
	r.Raw()
	if label := r.Peek(); label != etf.SmallIntegerExt && label != etf.IntegerExt &&
		!c.peer.Flags.Has(handshake.BigSeqtraceLabels) {
		return nil
	}
	token, _ = c.recode(token)
	return token
}

// recode returns a term in a form that c's peer can read, or nil and an error.
func (c *Conn) recode(b []byte) ([]byte, error) {
	term, err := etf.Decode(b)
	if err != nil {
		return nil, err
	}
	return etf.Append(nil, term, c.caps)
}

// An answer to a call that another peer forwarded counts against that peer, not against the
// connection that sends it. It is written after the connection's own answers, and is dropped if
// there is no room.

// maxPassedOn bounds the bytes of answers that wait for one peer and count against one other
// peer. A single answer may be larger.
const maxPassedOn = 4 << 20

// passed holds the frames of such answers to one peer. held counts their bytes by the connection
// on which the calls arrived.
type passed struct {
	waiting []passedFrame
	flying  []passedFrame // in the current write
	held    slimMap[*memory, int]
}

type passedFrame struct {
	by    *memory
	frame []byte
}

// passedSize is the memory that a frame uses in addition to its bytes.
const passedSize = 64

func (f *passedFrame) size() int { return passedSize + cap(f.frame) }

func (p *passed) add(f passedFrame) bool {
	held := p.held.all[f.by]
	if held > 0 && held+f.size() > maxPassedOn || !f.by.take(f.size()) {
		return false
	}
	p.held.set(f.by, held+f.size())
	p.waiting = append(p.waiting, f)
	return true
}

// next appends to b the frames for the next write.
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

func (p *passed) written() {
	p.give(p.flying)
	p.flying = nil
}

// drop releases the waiting frames that count against m, or all of them if m is nil.
func (p *passed) drop(m *memory) {
	p.waiting = slices.DeleteFunc(p.waiting, func(f passedFrame) bool {
		of := m == nil || f.by == m
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

// pass adds a frame that counts against owner, and reports whether there was room for it.
func (o *output) pass(owner *memory, frame []byte) bool {
	wire.Close(frame, 0)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || !o.passed.add(passedFrame{owner, frame}) {
		return false
	}
	o.remind()
	return true
}

func (o *output) forget(owner *memory) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.passed.drop(owner)
}
