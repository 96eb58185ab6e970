package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/flake-go/flake/config"
)

// serve runs the node.
func serve(f *flags) action {
	f.identify()
	noinput := f.Bool("noinput", false, "do not read standard input: no prompt, though it is a terminal")
	version := f.Bool("version", false, "show the version instead, as flake version does")
	check := f.Bool("check-config", false, "show what would run and where each value is from, check what can be checked without starting, and end")
	return func(ctx context.Context, _ []string, stdout, stderr io.Writer) error {
		if *version {
			return printVersion(stdout)
		}
		if *check {
			return checkConfig(f.load, stdout, stderr)
		}
		return serveNode(ctx, f.load, *noinput, stdout, stderr)
	}
}

// serveNode runs the node until ctx ends or the prompt is left. The prompt needs a
// terminal as standard input.
func serveNode(ctx context.Context, load func() (config.Config, error), noinput bool, stdout, stderr io.Writer) error {
	cfg, err := load()
	if err != nil {
		return err
	}
	var hup <-chan struct{}
	if !isTerminal(os.Stdin) && !isTerminal(stdout) && !isTerminal(stderr) {
		hup = hangups(ctx)
	}
	var p *prompt
	if !noinput && isTerminal(os.Stdin) && isTerminal(stdout) {
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
	lines := openLog(cfg.Log, stderr)
	defer lines.Close()
	log := lines.Logger
	warnIgnored(cfg, log)
	slog.SetDefault(log) // Ergo writes to package log

	note := openNotifier(log)
	defer note.close()
	started := note.starting()
	s, err := start(ctx, cfg, stdout, lines)
	started()
	if err != nil {
		return err
	}
	go boundMemory(ctx, s.node.Connections, s.memory, cfg.Node.TLS.On)
	go releaseMemory(ctx)
	s.announce(stdout)
	note.ready("hands out ids")
	operated := s.operate(ctx, hup, load, note)
	if p != nil {
		p.functions = s.node.Functions()
		p.run(ctx, log)
	} else {
		<-ctx.Done()
	}
	operated()
	log.Info("stopping")
	s.drain(ctx, note)
	if err := s.stop(); err != nil {
		return fmt.Errorf("the last time was not saved, so the next start may have to wait: %w", err)
	}
	return nil
}
