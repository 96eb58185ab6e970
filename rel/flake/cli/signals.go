package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Signal is the cause of a context that was canceled by a signal.
type Signal struct{ os.Signal }

func (s Signal) Error() string { return fmt.Sprintf("%v signal received", s.Signal) }

// UntilSignal returns a context that ends at the first signal. The second signal ends the process
// immediately, even if the first has not been handled; [signal.NotifyContext] would not do that.
func UntilSignal(signals <-chan os.Signal, exit func(code int)) context.Context {
	ctx, end := context.WithCancelCause(context.Background())
	go func() {
		end(Signal{<-signals})
		exit(128 + int((<-signals).(syscall.Signal))) // the exit code that a shell reports
	}()
	return ctx
}

// Hangups returns a channel that receives each SIGHUP, so that SIGHUP no longer ends the process. If SIGHUP is
// ignored, as under nohup, it stays ignored, and Hangups returns nil.
func Hangups() <-chan os.Signal {
	if signal.Ignored(syscall.SIGHUP) {
		return nil
	}
	// Room for one signal is enough: a reload that is already due will read the same files.
	hangups := make(chan os.Signal, 1)
	signal.Ignore(syscall.SIGHUP) // undoes earlier calls of Notify
	signal.Notify(hangups, syscall.SIGHUP)
	return hangups
}
