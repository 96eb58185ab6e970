package genserver

import (
	"context"

	ergo "github.com/ergo-services/ergo/etf"
	"github.com/ergo-services/ergo/gen"
	"github.com/ergo-services/ergo/lib"

	"github.com/flake-go/flake/node/etf"
)

// Process is a gen_server as a process of Ergo. Peers' messages do not pass its
// mailbox: who reads them calls Receive with the same Handler. The process
// stands for the server's pid and name, its life and its death.
//
// It traps exits: of all signals only kill, and a stop by its supervisor, end it.
// So does a system message to terminate.
type Process struct {
	// Up is told of the process, and how to end it with a reason of Reason's,
	// before anyone can find it by name. Ergo's own Kill is not safe once the
	// process ends. Down is told once it has ended.
	Up   func(p gen.Process, end func(reason string))
	Down func(gen.Process)
}

var _ gen.ProcessBehavior = (*Process)(nil)

// ProcessInit is called by Ergo before the process runs.
func (s *Process) ProcessInit(p gen.Process, _ ...ergo.Term) (gen.ProcessState, error) {
	p.SetTrapExit(true)
	return gen.ProcessState{Process: p}, nil
}

// ProcessLoop is the life of the process. It gives the reason of its end.
//
// Only its supervisor calls the process's Exit, and then ends, too. It must not
// learn of the process's end in the course of its own: Ergo has a data race
// there. Its end is the end of the process's context.
func (s *Process) ProcessLoop(p gen.ProcessState, started chan<- bool) string {
	ctx, end := context.WithCancelCause(p.Context())
	s.Up(p.Process, func(reason string) { end(ended(reason)) })
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
			if reason, ok := context.Cause(ctx).(ended); ok {
				return string(reason)
			}
			return Killed
		}
	}
}

// Killed is the reason of who was ended by exit(Pid, kill).
const Killed = "killed"

// ended is the reason with which a process was ended.
type ended string

func (e ended) Error() string { return string(e) }

// maxReason bounds a reason: whoever watches the process is sent it.
const maxReason = 200

// Reason makes a reason of Ergo's, a string, of a term: of an atom its text, of any
// other its external form, version byte included. A long one is Killed.
func Reason(t etf.Term) string {
	atom, ok := t.(etf.Atom)
	text := string(atom)
	if !ok {
		b, err := etf.Append([]byte{etf.VersionMagic}, t, etf.AllCaps)
		if err != nil {
			return Killed
		}
		text = string(b)
	}
	if len(text) > maxReason {
		return Killed
	}
	return text
}
