package cli

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
)

// Signal is the cause of a context that ended with a signal.
type Signal struct{ os.Signal }

func (s Signal) Error() string { return fmt.Sprintf("%v signal received", s.Signal) }

// UntilSignal returns a context that ends with the first signal. The second ends the
// process at once, even if the first has not been handled, which
// [signal.NotifyContext] would not do. SIGHUP counts unless [Hangups] has taken it.
func UntilSignal(signals <-chan os.Signal, exit func(code int)) context.Context {
	t := &trap{hangups: make(chan struct{}, 1)}
	ctx, end := context.WithCancelCause(context.WithValue(context.Background(), trapKey{}, t))
	go func() {
		for s := range signals {
			switch {
			case s == syscall.SIGHUP && t.on.Load():
				select {
				case t.hangups <- struct{}{}:
				default: // a reload is already due, and will read what this one would
				}
			case ctx.Err() == nil:
				end(Signal{s})
			default:
				exit(128 + int(s.(syscall.Signal))) // as a shell reports it
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

// Hangups takes SIGHUP, which no longer ends the process: the channel reports it.
func Hangups(ctx context.Context) <-chan struct{} {
	t, ok := ctx.Value(trapKey{}).(*trap)
	if !ok {
		return nil
	}
	t.on.Store(true)
	return t.hangups
}
