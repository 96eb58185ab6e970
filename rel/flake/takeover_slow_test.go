package main

import (
	"context"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/rel/flake/migrate"
)

// signals ends the takeover command with a signal while the original is suspended.
func (o *originalNode) signals() {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		o.trick(etf.Tuple{etf.Atom("slow"), int64(1500), etf.Atom(signal.String())})
		p := o.takeover(nil)
		o.await(signal.String())
		p.signal(signal)
		if status := p.wait(); status == 0 {
			o.t.Errorf("%v: exit status 0", signal)
		}
		if signal == syscall.SIGKILL { // the command could not clean up
			o.cleanUp()
		}
		o.mustContinue(signal.String())
	}
	o.trick(etf.Atom("none"))
}

// late tells the original to halt when the guard's time is up. The time counts from the start of the guard. If it
// counted from when the guard began to wait, it would not be up yet.
func (o *originalNode) late() {
	t := o.t
	ctx, cancel := context.WithTimeout(t.Context(), patience/4)
	defer cancel()
	o.trick(etf.Tuple{etf.Atom("slow"), int64(1500), etf.Atom("late")})
	defer o.trick(etf.Atom("none"))
	for again := true; again; {
		h := &migrate.Handover{Node: nodeName, Worker: o.worker}
		var err error
		if h.Conn, err = (client.Dialer{Cookie: cookie, EPMD: "127.0.0.1:" + o.port}).Dial(ctx, nodeName); err != nil {
			t.Fatal(err)
		}
		if err = h.Prepare(ctx); err == nil {
			err = h.Suspend(ctx)
		}
		if err == nil {
			time.Sleep(migrate.MostSuspended - time.Second) // and the trick takes 1.5 s, so the guard's time is up
			err = h.Halt(ctx)
		}
		h.Conn.Close()
		again = late.MatchString(err.Error()) && ctx.Err() == nil
		if !again && !strings.HasSuffix(err.Error(), "did not halt: late") {
			t.Error(err)
		}
	}
	o.mustContinue("late")
}

// trick sets what the stand-in's server does once it is suspended.
func (o *originalNode) trick(trick etf.Term) {
	o.tell("persistent_timer", etf.Tuple{etf.Atom("trick"), trick})
}

func (o *originalNode) tell(server etf.Atom, request etf.Term) {
	o.t.Helper()
	if _, err := o.call(server, request); err != nil {
		o.t.Fatal(err)
	}
}

// tooSlow waits until the command ends, and reports whether it failed because the machine was too
// slow to take over in the time for which the original may be suspended. The original then
// continues, and the test tries again.
func (p *process) tooSlow() bool {
	return p.wait() == exitFailure && late.MatchString(p.output())
}

var late = regexp.MustCompile(`no answer within|the original did not halt: (normal|noproc|late\n)`)

// says waits for text in the output, and reports whether it appeared before the process ended.
func (p *process) says(text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.ended && !strings.Contains(p.out.String(), text) {
		p.changed.Wait()
	}
	return strings.Contains(p.out.String(), text)
}
