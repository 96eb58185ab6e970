package ergo

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"

	ergoetf "github.com/ergo-services/ergo/etf"
	"github.com/ergo-services/ergo/gen"
	"github.com/ergo-services/ergo/lib"

	"github.com/flake-go/flake/node/etf"
)

// life is a process of Ergo, with the methods that the package calls.
type life struct {
	gen.Process
	ctx    context.Context
	kill   func()
	exits  chan gen.ProcessGracefulExitRequest
	mail   chan gen.ProcessMailboxMessage
	direct chan gen.ProcessDirectMessage

	traps, down bool
	end         func(reason etf.Term)
	reason      etf.Term
	told        error
}

func (l *life) Self() ergoetf.Pid        { return ergoetf.Pid{ID: 1} }
func (l *life) Context() context.Context { return l.ctx }
func (l *life) SetTrapExit(trap bool)    { l.traps = trap }

func (l *life) ProcessChannels() gen.ProcessChannels {
	return gen.ProcessChannels{GracefulExit: l.exits, Mailbox: l.mail, Direct: l.direct}
}

func (l *life) PutSyncReply(_ ergoetf.Ref, _ ergoetf.Term, err error) error {
	l.told = err
	return nil
}

// A process is ended by its context, its end function or its supervisor; in the last case it
// waits for the supervisor to end. It ignores all other messages.
func TestProcess(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(l *life)
		want etf.Term
	}{
		"killed": {func(l *life) { l.kill() }, Killed},
		"ended":  {func(l *life) { l.end(int64(7)) }, int64(7)},
		"stopped": {func(l *life) {
			l.exits <- gen.ProcessGracefulExitRequest{From: l.Self(), Reason: "shutdown"}
			synctest.Wait()
			if l.down {
				t.Error("the process ends before its context")
			}
			l.kill()
		}, etf.Atom("shutdown")},
		"signalled": {func(l *life) {
			l.exits <- gen.ProcessGracefulExitRequest{From: ergoetf.Pid{ID: 2}, Reason: "shutdown"}
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
			p := &process{node: &Node{ctx: t.Context()}, Process: Process{
				Up:   func(_ uint64, end func(etf.Term)) { l.end = end },
				Down: func(_ uint64, why etf.Term) { l.down, l.reason = true, why },
			}}
			state, err := p.ProcessInit(l)
			if err != nil || !l.traps {
				t.Errorf("%s: %v, traps exits: %t", name, err, l.traps)
			}
			started := make(chan bool)
			done := make(chan struct{})
			go func() {
				p.ProcessLoop(state, started)
				close(done)
			}()
			<-started
			test.end(l)
			<-done
			if l.reason != test.want {
				t.Errorf("%s: ended with %v, want %v", name, l.reason, test.want)
			}
		})
	}
}

// A process that its supervisor ends exits with the supervisor's reason, even if the supervisor has
// already ended.
func TestProcessSeenLate(t *testing.T) {
	for range 100 {
		l := &life{exits: make(chan gen.ProcessGracefulExitRequest, 1)}
		l.ctx, l.kill = context.WithCancel(t.Context())
		p := &process{node: &Node{ctx: t.Context()}, Process: Process{
			Up:   func(uint64, func(etf.Term)) {},
			Down: func(_ uint64, why etf.Term) { l.reason = why },
		}}
		state, _ := p.ProcessInit(l)
		l.exits <- gen.ProcessGracefulExitRequest{From: l.Self(), Reason: "shutdown"}
		l.kill()
		p.ProcessLoop(state, make(chan bool, 1))
		if l.reason != etf.Atom("shutdown") {
			t.Fatalf("ended with %v", l.reason)
		}
	}
}

// A process that its end function ended delays Shutdown until it runs again or the node ends.
// Once Shutdown has been called, end functions have no effect.
func TestEnding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var end func(etf.Term)
		down := 0
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		n := &Node{ctx: ctx}
		p := &process{node: n, Process: Process{
			Up:   func(_ uint64, f func(etf.Term)) { end = f },
			Down: func(uint64, etf.Term) { down++ },
		}}
		run := func() {
			state, _ := p.ProcessInit(&life{ctx: ctx})
			go p.ProcessLoop(state, make(chan bool, 1))
			synctest.Wait()
		}
		shutdown := func(what string, want bool) {
			t.Helper()
			synctest.Wait()
			if got := n.ending.TryLock(); got != want {
				t.Errorf("%s: may shut down %t, want %t", what, got, want)
			}
		}
		run()
		first := end
		first(Killed)
		first(Killed)
		shutdown("one has ended", false)
		run()
		second := end
		second(Killed)
		shutdown("another has ended", false)
		run()
		shutdown("it runs again", true)
		first(Killed)
		end(Killed)
		if synctest.Wait(); down != 2 {
			t.Errorf("%d have ended, want 2", down)
		}

		n.ending.Unlock()
		end = nil
		run()
		end(Killed)
		shutdown("a third has ended", false)
		cancel()
		shutdown("all end", true)
	})
}

// Shutdown waits for a process that has ended until it runs again.
func TestShutdownWaits(t *testing.T) {
	ends, down := make(chan func(etf.Term), 1), make(chan struct{}, 2)
	n := &Node{ctx: t.Context()}
	p := &process{node: n, Process: Process{
		Up:   func(_ uint64, end func(etf.Term)) { ends <- end },
		Down: func(uint64, etf.Term) { down <- struct{}{} },
	}}
	run := func() (end func(etf.Term)) {
		state, _ := p.ProcessInit(&life{ctx: t.Context()})
		go p.ProcessLoop(state, make(chan bool, 1))
		return <-ends
	}
	run()(Killed)
	<-down
	stopped := make(chan struct{})
	go func() {
		n.Shutdown()
		close(stopped)
	}()
	for n.ending.TryRLock() { // until Shutdown waits
		n.ending.RUnlock()
		select {
		case <-stopped:
			t.Fatal("Shutdown does not wait")
		default:
			runtime.Gosched()
		}
	}
	end := run()
	<-stopped
	if end(Killed); len(down) > 0 {
		t.Error("a process can be ended after Shutdown")
	}
}
