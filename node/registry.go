package node

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/flake-go/flake/genserver"
	"github.com/flake-go/flake/node/dist"
	"github.com/flake-go/flake/node/etf"
)

// registry holds the gen_servers and supervisors. Lookups take no lock; each change copies
// the maps, because calls are far more frequent than starts of processes.
type registry struct {
	mu      sync.Mutex // held for changes
	changed sync.Cond
	current atomic.Pointer[processes]
}

type processes struct {
	names map[string]*process
	ids   map[uint64]*process
}

// process is the process of a gen_server or supervisor.
type process struct {
	dist.Process
	server *genserver.Server
}

// caller is the sender of a message to a gen_server.
type caller struct{ *dist.Message }

func (c caller) Later(f func(genserver.Caller)) {
	c.Message.Later(func(m *dist.Message) { f(caller{m}) })
}

func newRegistry() *registry {
	r := &registry{}
	r.changed.L = &r.mu
	r.current.Store(&processes{map[string]*process{}, map[uint64]*process{}})
	return r
}

func (r *registry) change(edit func(*processes)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.current.Load()
	next := &processes{maps.Clone(old.names), maps.Clone(old.ids)}
	edit(next)
	r.current.Store(next)
	r.changed.Broadcast()
}

// awaitEmpty waits until all processes have ended.
func (r *registry) awaitEmpty() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.current.Load().ids) > 0 {
		r.changed.Wait()
	}
}

// add registers a server by name and by the ID of its pid. The server answers on the
// goroutine that reads a connection. If kill is nil, peers cannot kill it.
func (r *registry) add(s *genserver.Server, id uint64, kill func()) {
	receive := func(m *dist.Message) error { return s.Receive(m.Term(), caller{m}) }
	p := &process{dist.Process{ID: id, Receive: receive, Kill: kill}, s}
	r.change(func(ps *processes) {
		ps.names[string(s.Name)] = p
		ps.ids[id] = p
	})
}

func (r *registry) remove(name etf.Atom, id uint64) {
	r.change(func(ps *processes) {
		if p := ps.names[string(name)]; p != nil && p.ID == id {
			delete(ps.names, string(name))
		}
		delete(ps.ids, id)
	})
}

// named returns the process registered as name, or nil.
func (r *registry) named(name etf.Atom) *process { return r.current.Load().names[string(name)] }

// byID returns the process with the ID, or nil.
func (r *registry) byID(id uint64) *process { return r.current.Load().ids[id] }

// list returns the registered names.
func (r *registry) list() (names etf.List) {
	for name := range r.current.Load().names {
		names = append(names, etf.Atom(name))
	}
	return names
}

// Whereis implements dist.Processes.
func (r *registry) Whereis(name []byte) *dist.Process {
	return r.current.Load().names[string(name)].seen()
}

// ByID implements dist.Processes.
func (r *registry) ByID(id uint64) *dist.Process { return r.byID(id).seen() }

// seen returns the process as peers see it, or nil if p is nil.
func (p *process) seen() *dist.Process {
	if p == nil {
		return nil
	}
	return &p.Process
}
