package ergo

import (
	"context"
	"sync"
)

// ends counts the processes that end by their end functions, until they have been
// restarted. Ergo has a data race if one ends while its supervisor stops it.
type ends struct {
	mu      sync.Mutex
	changed sync.Cond
	n       int
	stopped bool
}

func newEnds() *ends {
	e := new(ends)
	e.changed.L = &e.mu
	return e
}

// begin counts a process, and reports whether it may end.
func (e *ends) begin() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.stopped {
		e.n++
	}
	return !e.stopped
}

// done notes that one has been restarted.
func (e *ends) done() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.n--
	e.changed.Broadcast()
}

// stop lets no more of them end, and waits until all have been restarted. Once ctx has
// ended none is.
func (e *ends) stop(ctx context.Context) {
	wake := context.AfterFunc(ctx, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.changed.Broadcast()
	})
	defer wake()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopped = true
	for e.n > 0 && ctx.Err() == nil {
		e.changed.Wait()
	}
}
