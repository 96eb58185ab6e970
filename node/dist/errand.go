package dist

import (
	"bytes"
	"sync"
)

// An answer goes to the node of the process that asked, which may be another than
// the peer: that one passed the call on. If it is not connected, it is connected
// to, as a BEAM would do, while the answer waits.

// maxErrands bounds the nodes that are connected to for answers at a time.
const maxErrands = 16

// answer is a message to a process, to its alias if that is not nil, with a trace
// token if that is not nil. All are terms.
type answer struct{ pid, alias, token, message []byte }

// size is what it takes while it waits.
func (a answer) size() int {
	return waiterSize + len(a.pid) + len(a.alias) + len(a.token) + len(a.message)
}

// errands are the answers that wait, by the node that is connected to.
type errands struct {
	mu  sync.Mutex
	all map[string][]answer
}

// elsewhere reports whether a process is of another node than the peer.
func (c *Conn) elsewhere(pid []byte) bool {
	return string(nodeOf(pid)) != c.peer.Name && c.proto.Connection != nil
}

// forward sends an answer to its node, and reports whether there is a way to it.
func (c *Conn) forward(a answer) bool {
	p, node := c.proto, string(nodeOf(a.pid))
	p.errands.mu.Lock()
	defer p.errands.mu.Unlock()
	waiting, connecting := p.errands.all[node]
	if !connecting {
		if other := p.Connection(node); other != nil {
			other.post(a)
			return true
		}
		if p.Connect == nil || node == p.Node {
			return false
		}
	}
	if !connecting && len(p.errands.all) >= maxErrands || !p.shared.take(a.size()) {
		c.log.Warn("answer dropped: too many wait for nodes that are not connected", "node", node)
		return true
	}
	a = answer{bytes.Clone(a.pid), bytes.Clone(a.alias), bytes.Clone(a.token), bytes.Clone(a.message)}
	if p.errands.all == nil {
		p.errands.all = make(map[string][]answer)
	}
	p.errands.all[node] = append(waiting, a)
	if !connecting {
		p.running.Go(func() { c.connect(node) })
	}
	return true
}

// connect connects to a node that answers wait for. If that fails, they go where
// the calls came from: there are peers whose processes bear another name.
func (c *Conn) connect(node string) {
	if err := c.proto.Connect(node); err != nil && c.proto.Connection(node) == nil {
		c.log.Warn("no way to the node of a call that was passed on", "node", node, "error", err)
		c.proto.deliver(node, c)
	} // else Serve delivers them
}

// deliver posts the answers that wait for a node.
func (p *Proto) deliver(node string, to *Conn) {
	p.errands.mu.Lock()
	defer p.errands.mu.Unlock()
	for _, a := range p.errands.all[node] {
		to.sendHere(a)
		p.shared.give(a.size())
	}
	delete(p.errands.all, node)
	to.out.poke()
}
