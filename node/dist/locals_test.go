package dist

import (
	"bytes"
	"fmt"
	"sync"
	"testing/synctest"

	ergo "github.com/ergo-services/ergo/etf"
	"github.com/ergo-services/ergo/gen"
	"github.com/ergo-services/ergo/node"

	"github.com/flake-go/flake/node/etf"
)

// locals are the local processes: flake, with a handler, and box, with a mailbox.
type locals struct {
	mu    sync.Mutex
	names map[string]*Process
	flake *recorder
}

func newLocals() *locals {
	l := &locals{flake: new(recorder)}
	l.names = map[string]*Process{
		"flake": {Pid: ourPid, Handler: l.flake, Kill: func() { l.flake.note("killed") }},
		"box":   {Pid: ergo.Pid{Node: here, ID: 1 << 40, Creation: creation}},
	}
	return l
}

func (l *locals) Whereis(name []byte) *Process {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.names[string(name)]
}

func (l *locals) ByPid(pid ergo.Pid) *Process {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.names {
		if p.Pid.ID == pid.ID {
			return p
		}
	}
	return nil
}

// remove has the process not be found any more.
func (l *locals) remove(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.names, name)
}

// recorder is a handler that keeps what it is sent.
type recorder struct {
	journal
	receive func(message []byte, c Caller) error
}

func (r *recorder) Receive(message []byte, c Caller) error {
	if r.receive != nil {
		return r.receive(message, c)
	}
	term := etf.NewReader(message)
	term.Raw()
	if err := term.Finish(); err != nil {
		return err
	}
	r.note("%x", message)
	return nil
}

// journal is text that goroutines add to.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(b)
}

func (j *journal) note(format string, args ...any) { fmt.Fprintf(j, format+"\n", args...) }

// String gives the text; take forgets it, too.
func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.String()
}

func (j *journal) take() string {
	synctest.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	defer j.b.Reset()
	return j.b.String()
}

// router is Ergo's router as far as a connection needs it.
type router struct {
	node.CoreRouter
	journal
	onMonitor func() // called in the course of RouteMonitor

	mu       sync.Mutex
	monitors map[ergo.Ref]ergo.Pid
}

func newRouter() *router { return &router{monitors: make(map[ergo.Ref]ergo.Pid)} }

func (r *router) RouteSend(from, to ergo.Pid, message ergo.Term) error {
	r.note("send %s/%d to %d: %s", from.Node, from.ID, to.ID, etf.Format(nil, message))
	return nil
}

func (r *router) RouteSendAlias(from ergo.Pid, to ergo.Alias, message ergo.Term) error {
	r.note("send alias %v: %s", to.ID, etf.Format(nil, message))
	return nil
}

func (r *router) RouteMonitor(_, pid ergo.Pid, ref ergo.Ref) error {
	r.note("monitor %d", pid.ID)
	if r.onMonitor != nil {
		r.onMonitor()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.monitors[ref] = pid
	return nil
}

func (r *router) RouteDemonitor(_ ergo.Pid, ref ergo.Ref) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.note("demonitor %d", r.monitors[ref].ID)
	delete(r.monitors, ref)
	return nil
}

func (r *router) RouteExit(to, terminated ergo.Pid, reason string) error {
	r.note("exit of %d to %d: %s", terminated.ID, to.ID, reason)
	return nil
}

func (r *router) RouteMonitorExit(terminated ergo.Pid, reason string, ref ergo.Ref) error {
	r.note("down %d %v: %s", terminated.ID, ref.ID, reason)
	return nil
}

func (r *router) RouteMonitorExitReg(terminated gen.ProcessID, reason string, ref ergo.Ref) error {
	r.note("down %s %v: %s", terminated, ref.ID, reason)
	return nil
}
