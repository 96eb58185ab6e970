package dist

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/wire"
)

// An answer goes to the node of the asking process, which may not be the peer: then
// the peer passed the call on. If that node is not connected, the answer waits while
// we connect to it, as a BEAM would. If there is no way to it, the answer goes back
// the way the call came: some peers' processes bear another name.

const (
	// maxErrands bounds the nodes being connected to for answers, and maxErrandsOfPeer
	// those for calls that one peer passed on.
	maxErrands       = 16
	maxErrandsOfPeer = 4

	// errandPause is how long an unreachable node is not tried again, and
	// maxUnreachable how many such nodes are remembered.
	errandPause    = 10 * time.Second
	maxUnreachable = 1024
)

// answer is a message to a process, or to its alias if that is not nil, with a trace
// token if that is not nil. All are terms.
type answer struct{ pid, alias, token, message []byte }

// size is what the answer takes while it waits.
func (a answer) size() int {
	return waiterSize + len(a.pid) + len(a.alias) + len(a.token) + len(a.message)
}

// errands are the waiting answers, by the node being connected to.
type errands struct {
	mu          sync.Mutex
	all         map[string]*errand
	unreachable map[string]time.Time // since when
}

type errand struct {
	by      *Conn // whose peer passed the first of the calls on
	waiting []passedAnswer
}

// passedAnswer is an answer to a call that a peer passed on.
type passedAnswer struct {
	answer
	by *Conn
}

// begin makes an errand, or returns nil if it may not.
func (s *errands) begin(node string, by *Conn) *errand {
	since, failed := s.unreachable[node]
	if failed && time.Since(since) < errandPause || len(s.all) >= maxErrands {
		return nil
	}
	ofPeer := 0
	for _, e := range s.all {
		if e.by == by {
			ofPeer++
		}
	}
	if ofPeer >= maxErrandsOfPeer {
		return nil
	}
	e := &errand{by: by}
	if s.all == nil {
		s.all = make(map[string]*errand)
	}
	s.all[node] = e
	return e
}

// fail records that there is no way to a node.
func (s *errands) fail(node string) {
	if s.unreachable == nil || len(s.unreachable) >= maxUnreachable {
		s.unreachable = make(map[string]time.Time)
	}
	s.unreachable[node] = time.Now()
}

// elsewhere reports whether a process belongs to a node other than the peer.
func (c *Conn) elsewhere(pid []byte) bool {
	return string(nodeOf(pid)) != c.peer.Name && c.proto.Connection != nil
}

// forward sends an answer to its node, and reports whether there is a way there.
func (c *Conn) forward(a answer) bool {
	p, node := c.proto, string(nodeOf(a.pid))
	p.errands.mu.Lock()
	defer p.errands.mu.Unlock()
	e := p.errands.all[node]
	if e == nil {
		if other := p.Connection(node); other != nil {
			other.passOn(a, c)
			return true
		}
		if p.Connect == nil || node == p.Node {
			return false
		}
	}
	if !c.share.take(a.size()) {
		return false
	}
	if e == nil {
		if e = p.errands.begin(node, c); e == nil {
			c.share.give(a.size())
			return false
		}
		p.Go(func() { p.connect(node) })
	}
	a = answer{bytes.Clone(a.pid), bytes.Clone(a.alias), bytes.Clone(a.token), bytes.Clone(a.message)}
	e.waiting = append(e.waiting, passedAnswer{a, c})
	return true
}

// connect connects to a node for which answers wait.
func (p *Proto) connect(node string) {
	if err := p.Connect(node); err != nil && p.Connection(node) == nil {
		p.Log.Warn("no way to the node of a call that was passed on", "peer", node, "err", err)
		p.deliver(node, nil)
	} // else Serve delivers them
}

// deliver sends the answers waiting for a node, or sends them back the way the calls
// came if there is no connection to it.
func (p *Proto) deliver(node string, to *Conn) {
	p.errands.mu.Lock()
	defer p.errands.mu.Unlock()
	if to == nil {
		p.errands.fail(node)
	}
	if e := p.errands.all[node]; e != nil {
		for _, a := range e.waiting {
			if to != nil {
				to.passOn(a.answer, a.by)
			} else {
				a.by.sendHere(a.answer)
				a.by.out.poke()
			}
			a.by.share.give(a.size())
		}
		delete(p.errands.all, node)
	}
}

// disown drops the waiting answers to calls that the peer of c passed on.
func (p *Proto) disown(c *Conn) {
	p.errands.mu.Lock()
	defer p.errands.mu.Unlock()
	for _, e := range p.errands.all {
		e.waiting = slices.DeleteFunc(e.waiting, func(a passedAnswer) bool {
			return a.by == c
		})
	}
	if c.passedOn.Load() {
		for other := range p.served.Range {
			other.(*Conn).out.forget(&c.share)
		}
	}
}

// passOn sends an answer to a call that by's peer passed on, in terms that this peer
// can read. If there is no room it is dropped.
func (c *Conn) passOn(a answer, by *Conn) {
	if c.caps != by.caps {
		term, err := etf.Decode(a.message)
		if err == nil {
			a.message, err = etf.Append(nil, term, c.caps)
		}
		if err != nil {
			c.proto.Log.Warn("answer dropped: this peer cannot read it", "peer", c.peer.Name, "by", by.peer.Name, "err", err)
			return
		}
	}
	by.passedOn.Store(true)
	if !c.out.pass(&by.share, c.appendAnswer(wire.Open(make([]byte, 0, a.size())), a)) {
		c.proto.Log.Warn("answer dropped: the peer has not read earlier ones", "peer", c.peer.Name, "by", by.peer.Name)
	}
}
