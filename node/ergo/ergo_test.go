package ergo

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	ergoetf "github.com/ergo-services/ergo/etf"
	"github.com/ergo-services/ergo/gen"

	"github.com/flake-go/flake/node/etf"
)

// life is one run of a process, with the methods that the package calls.
type life struct {
	gen.Process
	ctx context.Context
}

func (life) Self() ergoetf.Pid          { return ergoetf.Pid{ID: 1} }
func (l life) Context() context.Context { return l.ctx }

// rig is a node with one process, which the test starts in place of Ergo.
type rig struct {
	*Node
	end  func(etf.Term) // of the last run
	down []etf.Term     // the reasons of the runs that have ended
}

func newRig(ctx context.Context) *rig {
	r := &rig{}
	ctx, end := context.WithCancel(ctx)
	r.Node = &Node{processes: ownContext{ctx}, end: end, children: []*process{{Process{
		Up:   func(_ uint64, end func(etf.Term)) { r.end = end },
		Down: func(_ uint64, reason etf.Term) { r.down = append(r.down, reason) },
	}, make(chan struct{}, 1)}}}
	return r
}

// run starts the process and returns its end function.
func (r *rig) run(t *testing.T) (end func(etf.Term)) {
	t.Helper()
	p := r.children[0]
	state, err := p.ProcessInit(life{ctx: r.processes})
	if err != nil {
		t.Error(err)
	}
	started := make(chan bool)
	go p.ProcessLoop(state, started)
	<-started
	return r.end
}

func (r *rig) ended(t *testing.T, want ...etf.Term) {
	t.Helper()
	if synctest.Wait(); !slices.Equal(r.down, want) {
		t.Errorf("ended with %v, want %v", r.down, want)
	}
}

// A process ends with the first call of its end function, or with the node. Later calls have no
// effect.
func TestProcess(t *testing.T) {
	for name, end := range map[string]func(r *rig, cancel func()){
		"stopped": func(r *rig, _ func()) { r.Stop() },
		"ctx":     func(_ *rig, cancel func()) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				r := newRig(ctx)
				first := r.run(t)
				first(int64(7))
				first(Killed)
				r.ended(t, int64(7))
				last := r.run(t)
				first(Killed)
				r.ended(t, int64(7))
				end(r, cancel)
				r.ended(t, int64(7), shutdown)
				last(Killed)
				r.ended(t, int64(7), shutdown)
			})
		})
	}
}

// If an end function has ended a process, Stop waits until the process runs again or ctx ends.
// After that, end functions have no effect.
func TestStopWaits(t *testing.T) {
	for name, restarts := range map[string]bool{"restarted": true, "the node ends": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				r := newRig(ctx)
				r.run(t)(Killed)
				r.ended(t, Killed)
				var left bool
				go func() {
					r.Stop()
					left = true
				}()
				if synctest.Wait(); left || r.processes.Err() != nil {
					t.Fatal("Stop does not wait, or ends the context of the process too early")
				}
				if restarts {
					r.run(t)(Killed)
					r.ended(t, Killed, shutdown)
				} else {
					cancel()
				}
				if synctest.Wait(); !left || r.processes.Err() == nil {
					t.Error("Stop still waits, or has not ended the context of the process")
				}
			})
		})
	}
}
