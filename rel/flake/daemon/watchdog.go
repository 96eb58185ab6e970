package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/flake-go/flake/rel/flake/setup"
	"github.com/flake-go/flake/rel/flake/systemd"
)

// A watchdog checks that all generators make ids.
//
// It takes one id from each generator, but skips a generator that has made no id since the watchdog last
// took one, because another id would only cause a save. A generator that returns an error, because the clock is
// behind or the disk is full, is not stuck: a restart would not help, and /readyz reports it.
type watchdog map[string]string // by generator: time and sequence of the last id when the watchdog took one

// look returns the name of a generator that did not answer before ctx ended, or "".
func (w watchdog) look(ctx context.Context, all []*setup.Generator) (stuck string) {
	for _, g := range all {
		ids := g.Server.IDs
		if w[g.Name] == fmt.Sprint(ids.Last()) {
			continue
		}
		switch _, err := ids.Reserve(ctx, 1, 0); {
		case err == nil:
			w[g.Name] = fmt.Sprint(ids.Last())
		case ctx.Err() != nil:
			return g.Name
		}
	}
	return ""
}

// watch keeps the service manager's watchdog satisfied until ctx ends, at twice the required rate.
func watch(ctx context.Context, all []*setup.Generator, note *systemd.Notifier, log *slog.Logger) {
	if note.Watchdog <= 0 {
		return
	}
	w := make(watchdog)
	for beat := time.Tick(note.Watchdog / 2); ; {
		within, cancel := context.WithTimeout(ctx, note.Watchdog/2)
		stuck := w.look(within, all)
		cancel()
		switch {
		case ctx.Err() != nil:
		case stuck == "":
			note.Say("WATCHDOG=1")
		default:
			log.Error("a generator does not answer: the watchdog is not fed", "generator", stuck)
		}
		select {
		case <-beat:
		case <-ctx.Done():
			return
		}
	}
}
