package config

import (
	"fmt"
	"log/slog"
	"strings"
)

func (l *Log) settings() []setting {
	return []setting{
		{"log.level", `"debug", "info", "warn" or "error" wanted`, setLevel(&l.Level), func() bool { return true },
			func() string { return fmt.Sprintf("%q", strings.ToLower(l.Level.String())) }},
		{"log.format", `"text" or "json" wanted`, setString(&l.Format),
			func() bool { return l.Format == LogText || l.Format == LogJSON },
			func() string { return fmt.Sprintf("%q", l.Format) }},
	}
}

var levels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

func setLevel(p *slog.Level) func(any) bool {
	return func(v any) bool {
		name, _ := v.(string)
		level, ok := levels[name]
		if ok {
			*p = level
		}
		return ok
	}
}
