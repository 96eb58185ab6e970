package ergo

import (
	"context"
	"sync"

	ergoetf "github.com/ergo-services/ergo/etf"
	"github.com/ergo-services/ergo/gen"
	"github.com/ergo-services/ergo/lib"

	"github.com/flake-go/flake/node/etf"
)

// process is a Process for Ergo. It traps exits: only its end function and its
// supervisor end it.
type process struct {
	Process
	ends  *ends
	ended bool // by its end function, when it last ran
}

var _ gen.ProcessBehavior = (*process)(nil)

// ProcessInit is called by Ergo before the process runs.
func (s *process) ProcessInit(p gen.Process, _ ...ergoetf.Term) (gen.ProcessState, error) {
	p.SetTrapExit(true)
	return gen.ProcessState{Process: p}, nil
}

// ProcessLoop is the life of the process. It returns the exit reason.
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

// await waits for the end. Only the supervisor calls the process's Exit, and then ends
// too. It must not learn of the process's end while it ends: Ergo has a data race
// there. The supervisor's end is the end of the process's context.
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
			for len(channels.GracefulExit) > 0 { // the supervisor's may be there too
				if exit := <-channels.GracefulExit; exit.From == p.Self() {
					return etf.Atom(exit.Reason)
				}
			}
			return Killed
		}
	}
}

// Killed is the exit reason of a process ended by exit(Pid, kill).
const Killed = etf.Atom("killed")

// ended is the cause that ended a process.
type ended struct{ reason etf.Term }

func (ended) Error() string { return "ended" }
