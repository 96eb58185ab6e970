package main

import (
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/idserver/idhttp"
)

// nodeLog is the node's log. Its level may be changed at any time.
type nodeLog struct {
	*slog.Logger
	level  *slog.LevelVar
	held   *limiter
	recent idhttp.Recent // what the page shows of it
	out    *output
}

// openLog has lines go to w, as far as w is read.
func openLog(cfg config.Log, w io.Writer) *nodeLog {
	l := &nodeLog{level: new(slog.LevelVar)}
	l.level.Set(cfg.Level)
	handler := func(w io.Writer) slog.Handler {
		o := &slog.HandlerOptions{Level: l.level, ReplaceAttr: asText}
		if cfg.Format == config.LogJSON {
			return slog.NewJSONHandler(w, o)
		}
		return slog.NewTextHandler(w, o)
	}
	direct := slog.New(handler(w))
	l.out = openOutput(w, func(n int) { direct.Warn("log lines dropped: they were not read in time", "lines", n) })
	l.held = limit(l.recent.Handler(handler(l.out)))
	l.Logger = slog.New(l.held)
	return l
}

// asText has JSON say what text does of durations, addresses and workers: "1.5s", not a
// number of nanoseconds.
func asText(_ []string, a slog.Attr) slog.Attr {
	switch v := a.Value.Any().(type) {
	case time.Time, error:
	case fmt.Stringer:
		a.Value = slog.StringValue(v.String())
	}
	return a
}

// Close writes what is left.
func (l *nodeLog) Close() {
	l.held.messages.tell()
	l.out.Close()
}
