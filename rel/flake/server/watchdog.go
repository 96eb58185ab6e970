package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/flake-go/flake/rel/flake/generators"
	"github.com/flake-go/flake/rel/flake/systemd"
)

// A watchdog reports whether all generators make ids.
//
// It takes one id of each, but skips an idle generator, which made no id since the watchdog last took one: another
// would only cause a save. A generator that refuses, because the clock is behind or the disk is full, is not stuck: a
// restart would not help, and /readyz reports it.
type watchdog struct {
	generators []generators.Generator
	taken      map[string]last // by generator, what it was when the watchdog last took one
}

type last struct {
	milli    uint64
	sequence uint32
}

func newWatchdog(gs generators.Set) *watchdog {
	return &watchdog{gs.List, make(map[string]last)}
}

// look returns the name of a generator that has not answered before the end of ctx, or "".
func (w *watchdog) look(ctx context.Context) (stuck string) {
	for _, g := range w.generators {
		ids := g.Server.IDs
		var now last
		now.milli, now.sequence = ids.Last()
		if before, known := w.taken[g.Name]; known && now == before {
			continue
		}
		switch _, err := ids.Reserve(ctx, 1, 0); {
		case err == nil:
			now.milli, now.sequence = ids.Last()
			w.taken[g.Name] = now
		case ctx.Err() != nil:
			return g.Name
		}
	}
	return ""
}

// watch feeds the service manager's watchdog until ctx ends, twice as often as it must.
func (w *watchdog) watch(ctx context.Context, note *systemd.Notifier, log *slog.Logger) {
	if note.Watchdog <= 0 {
		return
	}
	beat := time.NewTicker(note.Watchdog / 2)
	defer beat.Stop()
	for {
		within, cancel := context.WithTimeout(ctx, note.Watchdog/2)
		stuck := w.look(within)
		cancel()
		switch {
		case ctx.Err() != nil:
		case stuck == "":
			note.Say("WATCHDOG=1")
		default:
			log.Error("a generator does not answer: the watchdog is not fed", "generator", stuck)
		}
		select {
		case <-beat.C:
		case <-ctx.Done():
			return
		}
	}
}
