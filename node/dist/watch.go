package dist

import (
	"sync"
	"sync/atomic"

	ergo "github.com/ergo-services/ergo/etf"

	"github.com/flake-go/flake/node/etf"
)

// MaxWatches bounds the monitors, and the links, that one peer may hold on our
// processes. One more is answered as if the process had ended, with the reason
// system_limit.
const MaxWatches = 1 << 17

// watches are the monitors and links that the peer's processes hold on ours.
//
// Ergo knows only that the connection watches a process; for each process, one
// monitor of Ergo's tells the connection when it ends. So a monitor that comes
// and goes with every call costs no lock but the connection's own, and its
// reference is kept as it came.
type watches struct {
	mu       sync.Mutex
	monitors map[string]monitor  // by the reference
	links    map[link]struct{}   //
	watched  map[uint64]ergo.Ref // Ergo's monitors, by our process
}

// monitor is one that the peer set. The strings are terms.
type monitor struct {
	process uint64
	item    string // our process, by pid or name as the peer gave it
	by      string // the peer's process
}

type link struct {
	process uint64
	ours    string // our pid, as the peer gave it
	theirs  string
}

func (w *watches) init() {
	w.monitors = make(map[string]monitor)
	w.links = make(map[link]struct{})
	w.watched = make(map[uint64]ergo.Ref)
}

func (c *Conn) recvMonitor(m *control) error {
	by, item, ref := m.args[0], m.args[1], m.args[2]
	p, err := c.find(item)
	if err != nil {
		return err
	}
	if p == nil {
		c.sendMonitorExit(item, by, ref, "noproc")
		return nil
	}
	w := &c.watches
	w.mu.Lock()
	full := len(w.monitors) >= MaxWatches
	if !full {
		kept := string(ref) + string(item) + string(by) // one allocation for three strings
		w.monitors[kept[:len(ref)]] = monitor{
			process: p.Pid.ID,
			item:    kept[len(ref) : len(ref)+len(item)],
			by:      kept[len(ref)+len(item):],
		}
	}
	w.mu.Unlock()
	if full {
		c.sendMonitorExit(item, by, ref, "system_limit")
		return nil
	}
	c.watch(p)
	return nil
}

func (c *Conn) recvDemonitor(m *control) error {
	c.watches.mu.Lock()
	delete(c.watches.monitors, string(m.args[2]))
	c.watches.mu.Unlock()
	return nil
}

func (c *Conn) recvLink(m *control) error {
	from, to := m.args[0], m.args[1]
	p, err := c.find(to)
	if err != nil {
		return err
	}
	if p == nil {
		c.sendExit(to, from, "noproc")
		return nil
	}
	w := &c.watches
	w.mu.Lock()
	full := len(w.links) >= MaxWatches
	if !full {
		w.links[link{p.Pid.ID, string(to), string(from)}] = struct{}{}
	}
	w.mu.Unlock()
	if full {
		c.sendExit(to, from, "system_limit")
		return nil
	}
	c.watch(p)
	return nil
}

func (c *Conn) recvUnlink(m *control) error {
	c.unlink(m.args[0], m.args[1])
	return nil
}

func (c *Conn) recvUnlinkID(m *control) error {
	id, from, to := m.args[0], m.args[1], m.args[2]
	c.sendControl(opUnlinkIDAck, id, to, from)
	c.unlink(from, to)
	return nil
}

// unlink forgets a link, and reports whether there was one.
func (c *Conn) unlink(from, to []byte) bool {
	l := link{ergoPid(etf.Pid(to)).ID, string(to), string(from)}
	c.watches.mu.Lock()
	defer c.watches.mu.Unlock()
	_, linked := c.watches.links[l]
	delete(c.watches.links, l)
	return linked
}

// watch has Ergo tell us, by way of MonitorExit, when the process ends.
func (c *Conn) watch(p *Process) {
	w := &c.watches
	w.mu.Lock()
	if _, watched := w.watched[p.Pid.ID]; watched {
		w.mu.Unlock()
		return
	}
	ref := nextRef(c)
	w.watched[p.Pid.ID] = ref
	w.mu.Unlock()
	// Without the lock: Ergo calls MonitorExit under locks of its own.
	c.router.RouteMonitor(c.pid(), p.Pid, ref)
	if c.proto.Processes.ByPid(p.Pid) == nil {
		c.ended(p.Pid.ID, "noproc") // in between, so Ergo may have missed it
	}
}

var refs atomic.Uint32

// nextRef makes a reference that nobody else uses.
func nextRef(c *Conn) ergo.Ref {
	return ergo.Ref{
		Node: ergo.Atom(c.peer.Name), Creation: c.serial, ID: [5]uint32{refs.Add(1), c.serial},
	}
}

// ended tells the peer's processes that one of ours has ended.
func (c *Conn) ended(process uint64, reason string) {
	c.watches.mu.Lock()
	delete(c.watches.watched, process)
	c.watches.mu.Unlock()
	c.tell(reason, func(p uint64) bool { return p == process })
}

// endedAll tells them that all of ours have.
func (c *Conn) endedAll(reason string) {
	c.tell(reason, func(uint64) bool { return true })
}

func (c *Conn) tell(reason string, of func(process uint64) bool) {
	w := &c.watches
	w.mu.Lock()
	defer w.mu.Unlock()
	for ref, m := range w.monitors {
		if of(m.process) {
			delete(w.monitors, ref)
			c.sendMonitorExit([]byte(m.item), []byte(m.by), []byte(ref), reason)
		}
	}
	for l := range w.links {
		if of(l.process) {
			delete(w.links, l)
			c.sendExit([]byte(l.ours), []byte(l.theirs), reason)
		}
	}
	c.out.poke()
}

// unwatchAll forgets Ergo's monitors, at the end of the connection.
func (c *Conn) unwatchAll() {
	w := &c.watches
	w.mu.Lock()
	watched := w.watched
	w.init()
	w.mu.Unlock()
	for _, ref := range watched {
		c.router.RouteDemonitor(c.pid(), ref)
	}
}
