package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/flake-go/flake/node/etf"
)

// signals ends the command while the original is suspended. It would be for as long as it may:
// its last id is an hour ahead then, so the command has none above it. No caller is given an
// id in that time.
func (o *originalNode) signals() {
	o.ahead("true")
	defer o.ahead("false")
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		for again := true; again; {
			p := o.takeover([]string{"FLAKE_FLAKE_TIMESTAMP_PATH=" + filepath.Join(o.folder, signal.String())})
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
		}
	}
}

func (o *originalNode) ahead(on etf.Atom) {
	if _, err := o.call("persistent_timer", etf.Tuple{etf.Atom("ahead"), on}); err != nil {
		o.t.Error(err)
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
