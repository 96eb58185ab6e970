package ergo

import (
	"context"
	"sync"

	ergoetf "github.com/ergo-services/ergo/etf"
	"github.com/ergo-services/ergo/gen"
	"github.com/ergo-services/ergo/lib"

	"github.com/flake-go/flake/node/etf"
)

// process is a Process for Ergo. It traps exits, so that only its end function and its
// supervisor can end it.
type process struct {
	Process
	ends  *ends
	ended bool // the last run was ended by the end function
}

var _ gen.ProcessBehavior = (*process)(nil)

// ProcessInit is called by Ergo before the process runs.
func (s *process) ProcessInit(p gen.Process, _ ...ergoetf.Term) (gen.ProcessState, error) {
	p.SetTrapExit(true)
	return gen.ProcessState{Process: p}, nil
}

// ProcessLoop runs the process and returns its exit reason.
func (s *process) ProcessLoop(p gen.ProcessState, started chan<- bool) string {
	id := p.Self().ID
	ctx, end := context.WithCancelCause(p.Context()) // Ergo's own Kill is not safe once the process ends
	var once sync.Once
	s.Up(id, func(reason etf.Term) {
		once.Do(func() {
			if s.ends.begin() {
				end(ended{reason})
			}
		})
	})
	if s.ended {
		s.ends.done()
	}
	reason := s.await(ctx, p, started)
	_, s.ended = context.Cause(ctx).(ended)
	s.Down(id, reason)
	text, _ := reason.(etf.Atom)
	return string(text)
}

// await waits for the end of the process and returns the reason. Only the supervisor
// calls the process's Exit, and then ends too, which ends the process's context. await
// waits for that, because Ergo has a data race if a child ends while its supervisor does.
func (s *process) await(ctx context.Context, p gen.ProcessState, started chan<- bool) (reason etf.Term) {
	channels := p.ProcessChannels()
	started <- true
	for {
		select {
		case exit := <-channels.GracefulExit:
			if exit.From == p.Self() {
				<-ctx.Done()
				return etf.Atom(exit.Reason)
			}
		case <-channels.Mailbox:
		case direct := <-channels.Direct:
			p.PutSyncReply(direct.Ref, nil, lib.ErrUnsupportedRequest)
		case <-ctx.Done():
			if e, ok := context.Cause(ctx).(ended); ok {
				return e.reason
			}
			for len(channels.GracefulExit) > 0 { // both may be ready
				if exit := <-channels.GracefulExit; exit.From == p.Self() {
					return etf.Atom(exit.Reason)
				}
			}
			return Killed
		}
	}
}

// Killed is the exit reason of a process that exit(Pid, kill) ended.
const Killed = etf.Atom("killed")

// ended is the cause of a context that the end function canceled.
type ended struct{ reason etf.Term }

func (ended) Error() string { return "ended" }

// ends counts the processes that end by their end functions and are not yet restarted.
// Ergo has a data race if a process ends while its supervisor stops it.
type ends struct {
	mu      sync.Mutex
	changed sync.Cond
	n       int
	stopped bool
}

func newEnds() *ends {
	e := new(ends)
	e.changed.L = &e.mu
	return e
}

// begin counts a process and reports whether it may end.
func (e *ends) begin() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.stopped {
		e.n++
	}
	return !e.stopped
}

// done is called when a process has been restarted.
func (e *ends) done() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.n--
	e.changed.Broadcast()
}

// stop keeps further processes from ending, and waits until all are restarted, which
// does not happen once ctx has ended.
func (e *ends) stop(ctx context.Context) {
	wake := context.AfterFunc(ctx, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.changed.Broadcast()
	})
	defer wake()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopped = true
	for e.n > 0 && ctx.Err() == nil {
		e.changed.Wait()
	}
}
