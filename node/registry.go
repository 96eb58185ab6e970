package node

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/flake-go/flake/node/dist"
	"github.com/flake-go/flake/node/etf"
)

// registry finds the gen_servers and supervisors for the connections, without locks:
// calls outnumber starts of processes by far, so each start copies.
type registry struct {
	mu      sync.Mutex // held to change
	changed sync.Cond
	current atomic.Pointer[processes]
}

type processes struct {
	names map[string]*dist.Process
	ids   map[uint64]*dist.Process
}

func newRegistry() *registry {
	r := &registry{}
	r.changed.L = &r.mu
	r.current.Store(&processes{map[string]*dist.Process{}, map[uint64]*dist.Process{}})
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

func (r *registry) add(name etf.Atom, p *dist.Process) {
	r.change(func(ps *processes) {
		ps.names[string(name)] = p
		ps.ids[p.ID] = p
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
func (r *registry) named(name etf.Atom) *dist.Process { return r.current.Load().names[string(name)] }

// list returns the registered names.
func (r *registry) list() (names etf.List) {
	for name := range r.current.Load().names {
		names = append(names, etf.Atom(name))
	}
	return names
}

// Whereis implements dist.Processes.
func (r *registry) Whereis(name []byte) *dist.Process { return r.current.Load().names[string(name)] }

// ByID implements dist.Processes.
func (r *registry) ByID(id uint64) *dist.Process { return r.current.Load().ids[id] }
