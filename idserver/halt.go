package idserver

import (
	"context"
	"sync/atomic"
)

// Halt is a source that hands out nothing while there is a reason not to. Any number
// of goroutines may use it.
type Halt struct {
	Source
	why atomic.Pointer[error]
}

// Stop has calls for ids fail with an error from now on; nil: they no longer do.
func (h *Halt) Stop(why error) {
	if why == nil {
		h.why.Store(nil)
		return
	}
	h.why.Store(&why)
}

// Why returns the error, or nil.
func (h *Halt) Why() error {
	if why := h.why.Load(); why != nil {
		return *why
	}
	return nil
}

// Reserve is that of the source, or fails.
func (h *Halt) Reserve(ctx context.Context, n int, meta uint8) (Run, error) {
	if why := h.Why(); why != nil {
		return Run{}, why
	}
	return h.Source.Reserve(ctx, n, meta)
}

// Ready is that of the source, or fails.
func (h *Halt) Ready() error {
	if why := h.Why(); why != nil {
		return why
	}
	return h.Source.Ready()
}
