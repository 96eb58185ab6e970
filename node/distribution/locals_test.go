package distribution

import (
	"bytes"
	"fmt"
	"sync"
	"testing/synctest"

	"github.com/flake-go/flake/node/etf"
)

// locals are the local processes: flake, and box, which only records messages.
type locals struct {
	onFind func(*locals) // called when a process was found by its ID, unless nil
	mu     sync.Mutex
	names  map[string]*Process
	flake  *recorder
}

func newLocals() *locals {
	l := &locals{flake: new(recorder)}
	l.names = map[string]*Process{
		"flake": {ID: ourID, Receive: l.flake.Receive, Kill: func() { l.flake.note("killed") }},
		"box":   {ID: boxID, Receive: new(recorder).Receive},
	}
	return l
}

func (l *locals) Whereis(name []byte) *Process {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.names[string(name)]
}

func (l *locals) ByID(id uint64) *Process {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.names {
		if p.ID == id {
			if l.onFind != nil {
				l.onFind(l)
			}
			return p
		}
	}
	return nil
}

// recorder is a handler that records what it receives.
type recorder struct {
	journal
	receive func(*Message) error
}

func (r *recorder) Receive(m *Message) error {
	if r.receive != nil {
		return r.receive(m)
	}
	term := etf.NewReader(m.Term())
	term.Raw()
	if err := term.Finish(); err != nil {
		return err
	}
	r.note("%x", m.Term())
	return nil
}

// journal is text that goroutines append to.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(b)
}

func (j *journal) note(format string, args ...any) { fmt.Fprintf(j, format+"\n", args...) }

// String returns the text; take also clears it.
func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.String()
}

func (j *journal) take() string {
	synctest.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	defer j.b.Reset()
	return j.b.String()
}
