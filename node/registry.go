package node

import (
	"maps"
	"sync"
	"sync/atomic"

	ergo "github.com/ergo-services/ergo/etf"
	"github.com/ergo-services/ergo/gen"

	"github.com/flake-go/flake/genserver"
	"github.com/flake-go/flake/node/dist"
	"github.com/flake-go/flake/node/etf"
)

// registry finds processes for the connections, without locks: calls outnumber
// starts of processes by far, so each start copies.
type registry struct {
	core gen.Core // for processes that are no gen_servers of ours

	mu      sync.Mutex // held to change
	changed sync.Cond
	current atomic.Pointer[processes]
}

// processes are our gen_servers and supervisors. One that is being restarted is
// nil in names: Ergo has its name before Up is told, and a call that went to its
// mailbox meanwhile would never be answered.
type processes struct {
	names map[string]*dist.Process
	pids  map[uint64]*dist.Process
}

func newRegistry() *registry {
	r := &registry{}
	r.changed.L = &r.mu
	r.current.Store(&processes{})
	return r
}

func (r *registry) change(edit func(*processes)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.current.Load()
	next := &processes{names: maps.Clone(old.names), pids: maps.Clone(old.pids)}
	if next.names == nil {
		next.names, next.pids = map[string]*dist.Process{}, map[uint64]*dist.Process{}
	}
	edit(next)
	r.current.Store(next)
	r.changed.Broadcast()
}

// awaitEmpty waits until all gen_servers have ended.
func (r *registry) awaitEmpty() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.current.Load().pids) > 0 {
		r.changed.Wait()
	}
}

// add has a process found by its name and pid. A nil kill makes it one that
// peers cannot kill.
func (r *registry) add(p gen.Process, h dist.Handler, kill func()) {
	local := &dist.Process{Pid: p.Self(), Handler: h, Kill: kill}
	r.change(func(ps *processes) {
		ps.names[p.Name()] = local
		ps.pids[local.Pid.ID] = local
	})
}

func (r *registry) remove(p gen.Process) {
	r.change(func(ps *processes) {
		if local := ps.names[p.Name()]; local != nil && local.Pid == p.Self() {
			delete(ps.names, p.Name())
		}
		delete(ps.pids, p.Self().ID)
	})
}

// named gives the gen_server or supervisor of ours with the name, or nil.
func (r *registry) named(name etf.Atom) *dist.Process { return r.current.Load().names[string(name)] }

// list gives the registered names.
func (r *registry) list() (names etf.List) {
	for name := range r.current.Load().names {
		names = append(names, etf.Atom(name))
	}
	return names
}

// Whereis implements dist.Processes.
func (r *registry) Whereis(name []byte) *dist.Process {
	if p := r.current.Load().names[string(name)]; p != nil || len(name) == 0 {
		return p
	}
	return mailbox(r.core.ProcessByName(string(name)))
}

// ByPid implements dist.Processes.
func (r *registry) ByPid(pid ergo.Pid) *dist.Process {
	if p := r.current.Load().pids[pid.ID]; p != nil {
		return p
	}
	return mailbox(r.core.ProcessByPid(pid))
}

// mailbox is a process that takes its messages from its mailbox. A gen_server is
// none: one that was not added is about to start or has just ended, and what is
// sent to it would be lost.
func mailbox(p gen.Process) *dist.Process {
	if p == nil {
		return nil
	}
	switch p.Behavior().(type) {
	case nil, *genserver.Process:
		return nil
	}
	return &dist.Process{Pid: p.Self(), Kill: p.Kill}
}
