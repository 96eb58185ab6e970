package cli

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
)

// Signal is the cause of a context that a signal ended.
type Signal struct{ os.Signal }

func (s Signal) Error() string { return fmt.Sprintf("%v signal received", s.Signal) }

// UntilSignal returns a context that ends at the first signal. The second signal ends the
// process immediately, even if the first has not been handled; [signal.NotifyContext] would not do
// that. SIGHUP counts as a signal unless [Hangups] was called.
func UntilSignal(signals <-chan os.Signal, exit func(code int)) context.Context {
	t := &trap{hangups: make(chan struct{}, 1)}
	ctx, end := context.WithCancelCause(context.WithValue(context.Background(), trapKey{}, t))
	go func() {
		for s := range signals {
			switch {
			case s == syscall.SIGHUP && t.on.Load():
				select {
				case t.hangups <- struct{}{}:
				default: // the reload that is already due will read the same files
				}
			case ctx.Err() == nil:
				end(Signal{s})
			default:
				exit(128 + int(s.(syscall.Signal))) // the exit code that a shell reports
			}
		}
	}()
	return ctx
}

// trap keeps SIGHUP from ending the process.
type trap struct {
	on      atomic.Bool
	hangups chan struct{}
}

type trapKey struct{}

// Hangups returns a channel that reports each SIGHUP, which then no longer ends the process.
func Hangups(ctx context.Context) <-chan struct{} {
	t, ok := ctx.Value(trapKey{}).(*trap)
	if !ok {
		return nil
	}
	t.on.Store(true)
	return t.hangups
}
