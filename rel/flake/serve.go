package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
)

// serve runs the node until ctx ends.
func serve(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := newFlags("flake")
	flags.Bool("noinput", false, "do not read standard input")
	cfg, _, err := flags.load(args, 0, stderr)
	if err != nil {
		return err
	}
	log := slog.New(limit(slog.NewTextHandler(stderr, nil)))
	slog.SetDefault(log) // Ergo writes to package log

	s, err := start(ctx, cfg, stdout, log)
	if err != nil {
		return err
	}
	s.announce(stdout)
	<-ctx.Done()
	log.Info("stopping")
	if err := s.stop(); err != nil {
		return fmt.Errorf("the last time was not saved, so the next start may have to wait: %w", err)
	}
	return nil
}
