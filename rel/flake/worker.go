package main

import (
	"fmt"
	"log/slog"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake"
)

// worker returns the worker id of the configuration, or of a network interface.
func worker(cfg config.Flake) (w flake.Worker, from string, err error) {
	if cfg.WorkerID != nil {
		w, err = flake.ParseWorker(cfg.WorkerID.String())
		return w, "worker_id", err
	}
	w, name, err := flake.InterfaceWorker(cfg.Interface)
	return w, "interface " + name, err
}

// keeper gives the worker id that is kept beside a mark.
type keeper func(mark string) (w flake.Worker, from string, err error)

func keptWorker(m *flake.Marks, mark, path string, log *slog.Logger) (w flake.Worker, from string, err error) {
	w, made, err := flake.KeptWorker(m, mark)
	if made {
		log.Info("a worker id is made up, and kept in the file of the timestamp: without that, the next start makes up another",
			"worker_id", w, "path", path)
	}
	return w, "random, kept in " + path, err
}

// planKept plans a generator whose worker id is kept beside its mark.
func planKept(mark string, kept keeper) planner {
	return func(uint64) (string, place, opener, error) {
		w, from, err := kept(mark)
		return fmt.Sprintf("%s (%s)", w, from), flakePlace(w, true), openFlake(w), err
	}
}
