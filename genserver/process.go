package genserver

import (
	"github.com/ergo-services/ergo/etf"
	"github.com/ergo-services/ergo/gen"
	"github.com/ergo-services/ergo/lib"
)

// Process is a gen_server as a process of Ergo. Peers' messages do not pass its
// mailbox: who reads them calls Server.Receive with the same Handler. The process
// stands for the server's pid and name, its life and its death.
//
// It traps exits: of all signals only kill, and a stop by its supervisor, end it.
type Process struct {
	// Up is told of the process before it runs, when Ergo has its name already,
	// and Down once it has ended.
	Up, Down func(gen.Process)
}

var _ gen.ProcessBehavior = (*Process)(nil)

// ProcessInit is called by Ergo before the process runs.
func (s *Process) ProcessInit(p gen.Process, _ ...etf.Term) (gen.ProcessState, error) {
	p.SetTrapExit(true)
	return gen.ProcessState{Process: p}, nil
}

// ProcessLoop is the life of the process. It gives the reason of its end.
func (s *Process) ProcessLoop(p gen.ProcessState, started chan<- bool) string {
	s.Up(p.Process)
	defer s.Down(p.Process)
	channels := p.ProcessChannels()
	started <- true
	for {
		select {
		case exit := <-channels.GracefulExit:
			if exit.From == p.Self() {
				return exit.Reason
			}
		case <-channels.Mailbox:
		case direct := <-channels.Direct:
			p.PutSyncReply(direct.Ref, nil, lib.ErrUnsupportedRequest)
		case <-p.Context().Done():
			return "killed"
		}
	}
}
