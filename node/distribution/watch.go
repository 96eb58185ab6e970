package distribution

import (
	"hash/maphash"
	"slices"
	"sync"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/wire"
)

// maxWatches bounds the monitors that one peer can have on our processes, and also its links.
// A monitor or link beyond that, or for which [MaxShared] has no room, is answered as if the
// process had ended with reason system_limit. The first dozen do not count against MaxShared.
const maxWatches = 1 << 17

// watch is a monitor or a link that the peer set on one of our processes.
type watch struct {
	process uint64
	terms   []byte // the elements of the signal that reports the end, between the operation and the reason
}

// watchSize is the memory, as measured, that a watch uses in addition to its terms.
const watchSize = 160

func (w *watch) size() int { return watchSize + cap(w.terms) }

// maxSpares is the maximum number of removed watches kept for reuse.
const maxSpares = 256

// watchSet holds watches by the hashes of their keys: a monitor's reference, or the pids of a link.
// The hashes do not collide, because a hash has 64 bits and its seed is secret.
type watchSet struct {
	slimMap[uint64, *watch]
	end      wire.Op // the signal that reports the end of a process
	elements int     // of that signal
}

// watches holds the monitors and links that the peer's processes have on ours. Most monitors last
// for one call, so removed watches are reused. A call that sets and removes a monitor locks only
// mu, not the pool.
type watches struct {
	mu              sync.Mutex // guards all fields but seed
	seed            maphash.Seed
	monitors, links watchSet
	spares          []*watch
	held            int // bytes of all watches and spares
	account         account
}

func (w *watches) init(s *memory) {
	w.seed = maphash.MakeSeed()
	w.account = account{memory: s, own: ownWatches}
	w.clear()
}

func (w *watches) clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.monitors = watchSet{end: wire.OpMonitorPExit, elements: 5}
	w.links = watchSet{end: wire.OpExit, elements: 4}
	w.spares, w.held = nil, 0
	w.account.resize(0)
}

// settle sets the account to the bytes held plus more bytes, and reports whether there is room.
// Memory kept for later watches counts too, so that not every call changes the pool.
func (w *watches) settle(more int) bool {
	return w.account.resize(w.held + more + w.monitors.idle() + w.links.idle())
}

func (w *watches) rest() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shrink()
}

// shrink releases the memory kept for later watches.
func (w *watches) shrink() {
	for _, s := range w.spares {
		w.held -= s.size()
	}
	w.spares = nil
	w.monitors.shrink()
	w.links.shrink()
	w.settle(0)
}

// add adds a watch and reports whether there is room for it. The watch replaces any earlier one
// with the same key.
func (w *watches) add(set *watchSet, process uint64, key, first, second, third []byte) bool {
	hash := maphash.Bytes(w.seed, key)
	w.remove(set, hash)
	if len(set.all) >= maxWatches {
		return false
	}
	var s *watch
	n := len(first) + len(second) + len(third)
	more := watchSize + n
	if last := len(w.spares) - 1; last >= 0 {
		s, w.spares = w.spares[last], w.spares[:last]
		w.held -= s.size()
		more = watchSize + max(n, cap(s.terms))
	}
	if !w.settle(more) { // before anything is allocated
		w.shrink()
		return false
	}
	if s == nil {
		s = new(watch)
	}
	terms := slices.Grow(s.terms[:0], n)
	s.process, s.terms = process, append(append(append(terms, first...), second...), third...)
	set.set(hash, s)
	if w.held += s.size(); w.settle(0) {
		return true
	}
	w.remove(set, hash) // and shrinks, unless there is room now
	return false
}

func (w *watches) forget(set *watchSet, key []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.remove(set, maphash.Bytes(w.seed, key))
}

func (w *watches) remove(set *watchSet, hash uint64) bool {
	s := set.all[hash]
	if s == nil {
		return false
	}
	set.remove(hash)
	if len(w.spares) < maxSpares {
		w.spares = append(w.spares, s)
	} else {
		w.held -= s.size()
	}
	if !w.settle(0) {
		w.shrink()
	}
	return true
}

func (c *Conn) recvMonitor(m *wire.Message) error {
	by, item, ref := m.Args[0], m.Args[1], m.Args[2]
	c.watch(&c.watches.monitors, ref, item, by, ref)
	return nil
}

func (c *Conn) recvLink(m *wire.Message) error {
	from, to := m.Args[0], m.Args[1]
	c.watch(&c.watches.links, slices.Concat(to, from), to, from, nil)
	return nil
}

// watch adds a watch on the process that the first term names. If it cannot, it reports to the peer
// that the process has ended.
func (c *Conn) watch(set *watchSet, key, first, second, third []byte) {
	w, reason := &c.watches, "noproc"
	w.mu.Lock()
	defer w.mu.Unlock()
	p := c.find(first)
	switch {
	case p == nil:
	case !w.add(set, p.ID, key, first, second, third):
		reason = "system_limit"
	case c.proto.Processes.ByID(p.ID) != nil:
		return
	default: // the process has ended, perhaps before the watch was added
		w.remove(set, maphash.Bytes(w.seed, key))
	}
	c.sendTerms(set.end, set.elements, first, second, third, c.atom(reason))
}

func (c *Conn) recvDemonitor(m *wire.Message) error {
	c.watches.forget(&c.watches.monitors, m.Args[2])
	return nil
}

func (c *Conn) recvUnlink(m *wire.Message) error {
	c.unlink(m.Args[0], m.Args[1])
	return nil
}

func (c *Conn) recvUnlinkID(m *wire.Message) error {
	id, from, to := m.Args[0], m.Args[1], m.Args[2]
	c.unlink(from, to) // before the acknowledgment, after which no exit signal may be sent
	c.sendControl(wire.OpUnlinkIDAck, id, to, from)
	return nil
}

func (c *Conn) unlink(from, to []byte) bool {
	return c.watches.forget(&c.watches.links, slices.Concat(to, from))
}

// maxReason bounds the bytes of an exit reason, because it is sent to every watching process.
const maxReason = 200

// ended reports the end of a local process to the peer's processes that watch it. A reason that is
// larger than maxReason, or that the peer cannot read, is replaced by the atom killed.
func (c *Conn) ended(id uint64, reason etf.Term) {
	b, err := etf.Append(nil, reason, c.caps)
	if err != nil || len(b) > maxReason {
		b = c.atom("killed")
	}
	w := &c.watches
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, set := range []*watchSet{&w.monitors, &w.links} {
		for hash, s := range set.all {
			if s.process == id {
				w.remove(set, hash)
				c.sendTerms(set.end, set.elements, s.terms, b)
			}
		}
	}
	c.out.poke()
}
