package dist

import (
	"hash/maphash"
	"slices"
	"sync"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/wire"
)

// MaxWatches bounds the monitors that one peer has on our processes, and likewise its links.
// A monitor or link beyond that, or for which [MaxShared] has no room, is answered as if the
// process had ended with reason system_limit. The first dozen do not count against MaxShared.
const MaxWatches = 1 << 17

// watchSize is the memory that a monitor or a link takes in addition to its terms, as measured.
const watchSize = 160

// watches holds the monitors and links that the peer's processes have on ours. A call that sets
// and removes a monitor takes only the lock mu.
type watches struct {
	mu       sync.Mutex
	monitors monitors
	links    slimMap[link, struct{}]

	held    int // bytes of all monitors and links
	account account
}

type link struct {
	process uint64
	ours    string // our pid as the peer sent it
	theirs  string
}

func linkSize[T string | []byte](ours, theirs T) int { return watchSize + len(ours) + len(theirs) }

func (w *watches) init(s *memory) {
	w.account = account{memory: s, own: ownWatches}
	w.clear()
}

func (w *watches) clear() {
	w.monitors = newMonitors()
	w.links = slimMap[link, struct{}]{}
	w.held = 0
	w.account.hold(0)
}

// settle counts the bytes held. It includes those kept for later monitors, so that not every call
// changes the pool. It reports whether there is room.
func (w *watches) settle() bool {
	return w.account.hold(w.held + w.monitors.idle() + w.links.idle())
}

// shrink releases the memory kept for later monitors and links.
func (w *watches) shrink() {
	w.monitors.shrink()
	w.links.shrink()
	w.settle()
}

// add adds n to the bytes held.
func (w *watches) add(n int) {
	if w.held += n; !w.settle() {
		w.shrink()
	}
}

func (w *watches) addMonitor(process uint64, ref, item, by []byte) bool {
	w.forgetMonitor(ref)
	if len(w.monitors.all) >= MaxWatches {
		return false
	}
	w.held += w.monitors.add(process, ref, item, by)
	if w.settle() {
		return true
	}
	w.forgetMonitor(ref)
	w.shrink()
	return false
}

func (w *watches) forgetMonitor(ref []byte) {
	if m := w.monitors.take(ref); m != nil {
		w.monitors.spare(m)
		w.add(-m.size())
	}
}

// addLink adds a link. It allocates nothing if there is no room.
func (w *watches) addLink(process uint64, ours, theirs []byte) bool {
	if _, ok := w.links.all[link{process, string(ours), string(theirs)}]; ok {
		return true
	}
	if len(w.links.all) >= MaxWatches {
		return false
	}
	if w.held += linkSize(ours, theirs); !w.settle() {
		w.held -= linkSize(ours, theirs)
		w.shrink()
		return false
	}
	w.links.set(link{process, string(ours), string(theirs)}, struct{}{})
	return true
}

// forgetLink removes a link and reports whether it existed.
func (w *watches) forgetLink(l link) bool {
	_, linked := w.links.all[l]
	if linked {
		w.links.remove(l)
		w.add(-linkSize(l.ours, l.theirs))
	}
	return linked
}

func (c *Conn) recvMonitor(m *wire.Message) error {
	by, item, ref := m.Args[0], m.Args[1], m.Args[2]
	p := c.find(item)
	if p == nil {
		c.sendMonitorExit(item, by, ref, "noproc")
		return nil
	}
	w := &c.watches
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.addMonitor(p.ID, ref, item, by) {
		c.sendMonitorExit(item, by, ref, "system_limit")
	} else if c.gone(p) {
		w.forgetMonitor(ref)
		c.sendMonitorExit(item, by, ref, "noproc")
	}
	return nil
}

func (c *Conn) recvDemonitor(m *wire.Message) error {
	c.watches.mu.Lock()
	c.watches.forgetMonitor(m.Args[2])
	c.watches.mu.Unlock()
	return nil
}

func (c *Conn) recvLink(m *wire.Message) error {
	from, to := m.Args[0], m.Args[1]
	p := c.find(to)
	if p == nil {
		c.sendExit(to, from, "noproc")
		return nil
	}
	w := &c.watches
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.addLink(p.ID, to, from) {
		c.sendExit(to, from, "system_limit")
	} else if c.gone(p) {
		w.forgetLink(link{p.ID, string(to), string(from)})
		c.sendExit(to, from, "noproc")
	}
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

// unlink removes a link and reports whether it existed.
func (c *Conn) unlink(from, to []byte) bool {
	_, id, _ := etf.PidParts(to)
	l := link{id, string(to), string(from)}
	c.watches.mu.Lock()
	defer c.watches.mu.Unlock()
	return c.watches.forgetLink(l)
}

// gone reports whether a process has ended since it was found. If so, its end may have
// been reported before the watch was set.
func (c *Conn) gone(p *Process) bool { return c.proto.Processes.ByID(p.ID) == nil }

// ended reports the end of a local process to the peer's processes that watch it.
func (c *Conn) ended(id uint64, reason etf.Term) {
	c.tell(c.reason(reason), func(process uint64) bool { return process == id })
}

// endedAll reports the end of all local processes.
func (c *Conn) endedAll(reason string) {
	c.tell(c.atom(reason), func(uint64) bool { return true })
}

// maxReason bounds the bytes of an exit reason, because it is sent to every watching process.
const maxReason = 200

// reason returns an exit reason as a term, or killed if it is large or the peer cannot read it.
func (c *Conn) reason(reason etf.Term) []byte {
	b, err := etf.Append(nil, reason, c.caps)
	if err != nil || len(b) > maxReason {
		return c.atom("killed")
	}
	return b
}

func (c *Conn) tell(reason []byte, of func(process uint64) bool) {
	w := &c.watches
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.monitors.all {
		if of(m.process) {
			c.sendControl(wire.OpMonitorPExit, m.item(), m.by(), m.ref(), reason)
			w.forgetMonitor(m.ref())
		}
	}
	for l := range w.links.all {
		if of(l.process) {
			w.forgetLink(l)
			c.sendControl(wire.OpExit, []byte(l.ours), []byte(l.theirs), reason)
		}
	}
	c.out.poke()
}

func (c *Conn) unwatchAll() {
	c.watches.mu.Lock()
	defer c.watches.mu.Unlock()
	c.watches.clear()
}

// monitor is a monitor that the peer set. Its terms are the reference; our process, by the pid
// or name that the peer sent; and the peer's process.
type monitor struct {
	process      uint64
	terms        []byte
	toItem, toBy int // start of the second term, and of the third
}

func (m *monitor) ref() []byte  { return m.terms[:m.toItem] }
func (m *monitor) item() []byte { return m.terms[m.toItem:m.toBy] }
func (m *monitor) by() []byte   { return m.terms[m.toBy:] }
func (m *monitor) size() int    { return watchSize + cap(m.terms) }

// monitors holds monitors by the hashes of their references. The hashes do not collide, because a
// hash has 64 bits and its seed is secret. Most monitors last for one call, so removed ones are
// reused.
type monitors struct {
	seed maphash.Seed
	slimMap[uint64, *monitor]
	spares []*monitor
	spared int // bytes of spares
}

const (
	maxSpares = 256 // up to this many concurrent calls allocate no monitors
	maxSpare  = 512 // bytes of terms; those from OTP have 100 and a name
)

func newMonitors() monitors { return monitors{seed: maphash.MakeSeed()} }

// add adds a monitor and returns its size. The reference must be new.
func (s *monitors) add(process uint64, ref, item, by []byte) int {
	var m *monitor
	if last := len(s.spares) - 1; last >= 0 {
		m, s.spares = s.spares[last], s.spares[:last]
		s.spared -= m.size()
	} else {
		m = new(monitor)
	}
	m.process = process
	m.terms = slices.Grow(m.terms[:0], len(ref)+len(item)+len(by))
	m.terms = append(append(append(m.terms, ref...), item...), by...)
	m.toItem, m.toBy = len(ref), len(ref)+len(item)
	s.set(maphash.Bytes(s.seed, ref), m)
	return m.size()
}

// take removes and returns the monitor with the reference, or returns nil.
func (s *monitors) take(ref []byte) *monitor {
	hash := maphash.Bytes(s.seed, ref)
	m := s.all[hash]
	s.remove(hash)
	return m
}

// spare keeps a taken monitor for reuse.
func (s *monitors) spare(m *monitor) {
	if len(s.spares) < maxSpares && cap(m.terms) <= maxSpare {
		s.spares = append(s.spares, m)
		s.spared += m.size()
	}
}

// idle returns how many bytes are kept for later monitors.
func (s *monitors) idle() int { return s.spared + s.slimMap.idle() }

// shrink releases the memory kept for later monitors.
func (s *monitors) shrink() {
	s.spares, s.spared = nil, 0
	s.slimMap.shrink()
}
