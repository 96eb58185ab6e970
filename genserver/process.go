package genserver

import (
	"context"

	"github.com/ergo-services/ergo/etf"
	"github.com/ergo-services/ergo/gen"
	"github.com/ergo-services/ergo/lib"
)

// Process is a gen_server as a process of Ergo. Peers' messages do not pass its
// mailbox: who reads them calls Receive with the same Handler. The process
// stands for the server's pid and name, its life and its death.
//
// It traps exits: of all signals only kill, and a stop by its supervisor, end it.
type Process struct {
	// Up is told of the process, and how to kill it, before anyone can find it
	// by name. Ergo's own Kill is not safe once the process ends. Down is told
	// once it has ended.
	Up   func(p gen.Process, kill func())
	Down func(gen.Process)
}

var _ gen.ProcessBehavior = (*Process)(nil)

// ProcessInit is called by Ergo before the process runs.
func (s *Process) ProcessInit(p gen.Process, _ ...etf.Term) (gen.ProcessState, error) {
	p.SetTrapExit(true)
	return gen.ProcessState{Process: p}, nil
}

// ProcessLoop is the life of the process. It gives the reason of its end.
//
// Only its supervisor calls the process's Exit, and then ends, too. It must not
// learn of the process's end in the course of its own: Ergo has a data race
// there. Its end is the end of the process's context.
func (s *Process) ProcessLoop(p gen.ProcessState, started chan<- bool) string {
	ctx, kill := context.WithCancel(p.Context())
	defer kill()
	s.Up(p.Process, kill)
	defer s.Down(p.Process)
	channels := p.ProcessChannels()
	started <- true
	for {
		select {
		case exit := <-channels.GracefulExit:
			if exit.From == p.Self() {
				<-ctx.Done()
				return exit.Reason
			}
		case <-channels.Mailbox:
		case direct := <-channels.Direct:
			p.PutSyncReply(direct.Ref, nil, lib.ErrUnsupportedRequest)
		case <-ctx.Done():
			return "killed"
		}
	}
}
