package genserver

import (
	"context"
	"testing"
	"testing/synctest"

	ergo "github.com/ergo-services/ergo/etf"
	"github.com/ergo-services/ergo/gen"
	"github.com/ergo-services/ergo/lib"
)

// life is a process of Ergo, as far as it is asked for.
type life struct {
	gen.Process
	ctx    context.Context
	kill   func()
	exits  chan gen.ProcessGracefulExitRequest
	mail   chan gen.ProcessMailboxMessage
	direct chan gen.ProcessDirectMessage

	traps, down bool
	end         func(reason string)
	told        error
}

func (l *life) Self() ergo.Pid           { return ergo.Pid{ID: 1} }
func (l *life) Context() context.Context { return l.ctx }
func (l *life) SetTrapExit(trap bool)    { l.traps = trap }

func (l *life) ProcessChannels() gen.ProcessChannels {
	return gen.ProcessChannels{GracefulExit: l.exits, Mailbox: l.mail, Direct: l.direct}
}

func (l *life) PutSyncReply(_ ergo.Ref, _ ergo.Term, err error) error {
	l.told = err
	return nil
}

// A process ends by kill, by who was told how, or by its supervisor, of which it
// waits for the end; and by nothing else that it is sent.
func TestProcess(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(l *life)
		want string
	}{
		"killed": {func(l *life) { l.kill() }, Killed},
		"ended":  {func(l *life) { l.end("why") }, "why"},
		"stopped": {func(l *life) {
			l.exits <- gen.ProcessGracefulExitRequest{From: l.Self(), Reason: "shutdown"}
			synctest.Wait()
			if l.down {
				t.Error("it ends before its context")
			}
			l.kill()
		}, "shutdown"},
		"signalled": {func(l *life) {
			l.exits <- gen.ProcessGracefulExitRequest{From: ergo.Pid{ID: 2}, Reason: "shutdown"}
			l.mail <- gen.ProcessMailboxMessage{}
			l.direct <- gen.ProcessDirectMessage{}
			synctest.Wait()
			if l.down || l.told != lib.ErrUnsupportedRequest {
				t.Errorf("down: %t; a request is answered %v", l.down, l.told)
			}
			l.kill()
		}, Killed},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := &life{
				exits:  make(chan gen.ProcessGracefulExitRequest),
				mail:   make(chan gen.ProcessMailboxMessage),
				direct: make(chan gen.ProcessDirectMessage),
			}
			l.ctx, l.kill = context.WithCancel(t.Context())
			p := &Process{
				Up:   func(_ gen.Process, end func(string)) { l.end = end },
				Down: func(gen.Process) { l.down = true },
			}
			state, err := p.ProcessInit(l)
			if err != nil || !l.traps {
				t.Errorf("%s: %v, traps exits: %t", name, err, l.traps)
			}
			started, reason := make(chan bool), make(chan string)
			go func() { reason <- p.ProcessLoop(state, started) }()
			<-started
			test.end(l)
			if got := <-reason; got != test.want || !l.down {
				t.Errorf("%s: %q, down: %t, want %q", name, got, l.down, test.want)
			}
		})
	}
}
