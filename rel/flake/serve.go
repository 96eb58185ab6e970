package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/flake-go/flake/idserver/idhttp"
)

// serve runs the node until ctx ends or the prompt is left. The prompt needs a
// terminal as standard input.
func serve(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := newFlags("flake")
	noinput := flags.Bool("noinput", false, "do not read standard input: no prompt, though it is a terminal")
	cfg, _, err := flags.load(args, 0, stderr)
	if err != nil {
		return err
	}
	var p *prompt
	if !*noinput && isTerminal(os.Stdin) && isTerminal(stdout) {
		p = newPrompt(cfg.Node.Name, stdout)
		stdout = p
		if isTerminal(stderr) {
			stderr = p
		}
	}
	// If a reader is gone, lines are lost, but the node goes on.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	if p == nil {
		out := newOutput(stdout)
		defer out.Close()
		stdout = out
	}
	errs := newOutput(stderr)
	defer errs.Close()
	recent := new(idhttp.Recent)
	log := slog.New(limit(recent.Handler(slog.NewTextHandler(errs, nil))))
	slog.SetDefault(log) // Ergo writes to package log

	s, err := start(ctx, cfg, stdout, log, recent)
	if err != nil {
		return err
	}
	go boundMemory(ctx, s.node.Connections, cfg.Node.TLS.On)
	go releaseMemory(ctx)
	s.announce(stdout)
	if p != nil {
		p.functions = s.node.Functions()
		p.run(ctx, log)
	} else {
		<-ctx.Done()
	}
	log.Info("stopping")
	if err := s.stop(); err != nil {
		return fmt.Errorf("the last time was not saved, so the next start may have to wait: %w", err)
	}
	return nil
}
