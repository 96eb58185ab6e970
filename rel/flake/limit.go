package main

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// A peer can cause its log lines as often as it likes. So among lines with the same
// message, burst may come at once and one per interval after that.
const (
	burst    = 10
	interval = time.Second
	maxKinds = 1000 // distinct messages counted
)

// limit passes as many lines as the bounds allow. The next line of a message says how
// many were left out before it. Errors are never left out.
func limit(next slog.Handler) slog.Handler {
	return &limiter{next: next, seen: &seen{kinds: make(map[string]*kind)}}
}

type limiter struct {
	next slog.Handler
	seen *seen
}

type seen struct {
	mu    sync.Mutex
	kinds map[string]*kind
}

// kind is one message; tokens are the lines it may have now.
type kind struct {
	tokens  float64
	at      time.Time
	omitted int
}

func (l *limiter) Enabled(ctx context.Context, level slog.Level) bool {
	return l.next.Enabled(ctx, level)
}

func (l *limiter) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelError {
		omitted, ok := l.seen.take(r.Message, r.Time)
		if !ok {
			return nil
		}
		if omitted > 0 {
			r = r.Clone()
			r.AddAttrs(slog.Int("omitted_before", omitted))
		}
	}
	return l.next.Handle(ctx, r)
}

func (s *seen) take(message string, now time.Time) (omitted int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kinds[message]
	if k == nil {
		if len(s.kinds) >= maxKinds {
			clear(s.kinds)
		}
		k = &kind{tokens: burst, at: now}
		s.kinds[message] = k
	}
	k.tokens = min(burst, k.tokens+now.Sub(k.at).Seconds()/interval.Seconds())
	k.at = now
	if k.tokens < 1 {
		k.omitted++
		return 0, false
	}
	k.tokens--
	omitted, k.omitted = k.omitted, 0
	return omitted, true
}

func (l *limiter) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &limiter{next: l.next.WithAttrs(attrs), seen: l.seen}
}

func (l *limiter) WithGroup(name string) slog.Handler {
	return &limiter{next: l.next.WithGroup(name), seen: l.seen}
}
