package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/flake-go/flake/node/etf"
)

// signals ends the command while the original is suspended. It would be for as long as it may:
// the peer, which is asked shortly before, sets its last id an hour ahead, so that the command
// has none above it. No caller is given an id meanwhile.
func (o *originalNode) signals() {
	o.peer.says(0)
	says := *o.peer.info.Load()
	before := make(chan etf.Term, 1)
	o.peer.answers(func() etf.Term {
		before <- o.become(etf.Tuple{etf.Atom("state"), time.Now().Add(time.Hour).UnixMilli(), int64(o.worker), int64(0)})
		return says()
	})
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		for again := true; again; {
			p := o.takeover([]string{"FLAKE_FLAKE_TIMESTAMP_PATH=" + filepath.Join(o.folder, signal.String()), `FLAKE_FLAKE_PEERS=["other@127.0.0.1"]`})
			if p.says(`msg="suspended the original"`) {
				p.cmd.Process.Signal(signal) // unless it has just ended
			}
			again = p.tooSlow()
			if status := p.wait(); status == 0 {
				o.t.Errorf("%v: exit status 0", signal)
			}
			if signal == syscall.SIGKILL { // it had no time to
				os.Remove(filepath.Join(o.folder, "sys.toml"))
			}
			o.goesOn(signal.String())
			select {
			case state := <-before:
				o.become(state)
			default: // it ended before it asked
			}
		}
	}
}

// become gives its server another state, and returns the one before.
func (o *originalNode) become(state etf.Term) (before etf.Term) {
	before, err := o.call("flake", etf.Tuple{etf.Atom("become"), state})
	if err != nil {
		o.t.Error(err)
	}
	return before
}

// tooSlow waits for the end, and tells whether it came because the machine is slow: what is done
// while the original is suspended took longer than that may be. The original goes on, and one
// tries again.
func (p *process) tooSlow() bool {
	return p.wait() == exitFailure && late.MatchString(p.output())
}

var late = regexp.MustCompile(`2s have passed|no answer within|the original did not halt: (normal|noproc|{{badmatch,false})`)

// says waits for a text in the output, and reports whether it came before the end.
func (p *process) says(text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.ended && !strings.Contains(p.out.String(), text) {
		p.changed.Wait()
	}
	return strings.Contains(p.out.String(), text)
}
