package main

import (
	"context"
	"log/slog"
	"strings"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/ulid"
	"github.com/flake-go/flake/flake/uuidv7"
	"github.com/flake-go/flake/idserver"
)

// worker returns the worker id of the configuration, or of its network interface. It warns
// of one that may not be this machine's for good, or not its alone.
func worker(cfg config.Flake, log *slog.Logger) (w flake.Worker, from string, err error) {
	if cfg.WorkerID != nil {
		w, err = flake.ParseWorker(cfg.WorkerID.String())
		return w, "worker_id", err
	}
	card, err := flake.NetworkCard(cfg.Interface)
	if err != nil {
		return w, "", err
	}
	if len(card.Doubts) > 0 {
		log.Warn(`another machine may have this MAC, or this one another after its next boot: set flake.worker_id to one that no other node has, or to "random"`,
			"interface", card.Name, "worker", card.Worker, "why", "it "+strings.Join(card.Doubts, ", "))
	}
	return card.Worker, "interface " + card.Name, nil
}

// keeper gives the worker id that is kept beside a mark.
type keeper func(mark string) (w flake.Worker, from string, err error)

func keptWorker(m *flake.Marks, mark, path string, log *slog.Logger) (w flake.Worker, from string, err error) {
	w, made, err := flake.KeptWorker(m, mark)
	if made {
		log.Info("a worker id is made up, and kept in the file of the timestamp: without that, the next start makes up another",
			"worker", w, "file", path)
	}
	return w, "random, kept in " + path, err
}

// planKept plans a generator whose worker id is kept beside its mark.
func planKept(format, mark string, kept keeper) planner {
	var w flake.Worker
	var from string
	known := false
	return func(uint64) (_ identity, _ place, _ opener, err error) {
		if !known {
			w, from, err = kept(mark)
			known = err == nil
		}
		return identity{w.String(), from}, workerPlace(format, w, true), openWorker(format, w), err
	}
}

// openWorker opens a generator of a format whose ids have a worker id.
func openWorker(format string, w flake.Worker) opener {
	return func(ctx context.Context, mark string, o flake.Options) (*opened, error) {
		switch format {
		case config.FormatUUIDv7:
			ids, err := uuidv7.Open(ctx, mark, w, o)
			return sourceOf(ids, err, idserver.UUIDv7)
		case config.FormatULID:
			ids, err := ulid.Open(ctx, mark, w, o)
			return sourceOf(ids, err, idserver.ULID)
		}
		ids, err := flake.Open(ctx, mark, w, o)
		return sourceOf(ids, err, idserver.Flake)
	}
}
