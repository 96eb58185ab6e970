package output

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/idserver/idhttp"
	hosts "github.com/flake-go/flake/node/host"
)

// Log is the node's log. Its Level may be changed at any time.
type Log struct {
	*slog.Logger
	Level  *slog.LevelVar
	limits *limiter
	Recent idhttp.Recent // the part that the page shows
	out    *output
}

// OpenLog returns a log whose lines go to w. Lines are dropped while w is not read.
func OpenLog(cfg config.Log, w io.Writer) *Log {
	l := &Log{Level: new(slog.LevelVar)}
	l.Level.Set(cfg.Level)
	handler := func(w io.Writer) slog.Handler {
		o := &slog.HandlerOptions{Level: l.Level, ReplaceAttr: asText}
		if cfg.Format == config.LogJSON {
			return slog.NewJSONHandler(w, o)
		}
		return slog.NewTextHandler(w, o)
	}
	direct := slog.New(handler(w))
	l.out = open(w, func(n int64) { direct.Warn("log lines dropped: they were not read in time", "lines", n) })
	l.limits = limit(slog.NewMultiHandler(l.Recent.Handler(), handler(l.out)))
	l.Logger = slog.New(l.limits)
	return l
}

// asText makes JSON show durations, addresses and workers as text logs do: "1.5s", not a
// number of nanoseconds.
func asText(_ []string, a slog.Attr) slog.Attr {
	switch v := a.Value.Any().(type) {
	case time.Time, error:
	case fmt.Stringer:
		a.Value = slog.StringValue(v.String())
	}
	return a
}

// Close reports how many lines were left out, and writes the lines that are still queued.
func (l *Log) Close() {
	l.limits.messages.report()
	l.out.Close()
}

// A peer can cause log lines as often as it likes. So lines with the same message are limited
// to a burst, and then to one per interval. If the lines contain the peer's address, that
// limit applies to each host, so that no host can hide what another host does. The limit for
// all hosts together, and the limit for errors, is crowd times as high.
const (
	burst    = 10
	crowd    = 10
	interval = time.Second

	maxKinds = 200  // distinct messages counted separately; all others share one limit
	maxHosts = 1000 // hosts counted for a message; beyond that, all are forgotten

	// reportAfter is the time from the first line left out until a line says how many were left out.
	reportAfter = 10 * time.Second
)

// limit returns a handler that passes as many lines as the limits allow, and reports how many it left out.
func limit(next slog.Handler) *limiter {
	return &limiter{next, &messages{log: slog.New(next), all: make(map[string]*kind)}}
}

type limiter struct {
	slog.Handler
	messages *messages
}

type messages struct {
	log *slog.Logger // not limited

	mu        sync.Mutex // guards all, with its kinds, and reporting
	all       map[string]*kind
	reporting bool // a call of report is scheduled
}

type kind struct {
	bucket
	hosts   map[netip.Addr]*bucket
	leftOut int // lines that are not reported yet
	level   slog.Level
}

func (l *limiter) Handle(ctx context.Context, r slog.Record) error {
	if !l.messages.take(&r) {
		return nil
	}
	return l.Handler.Handle(ctx, r)
}

func (l *limiter) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &limiter{l.Handler.WithAttrs(attrs), l.messages}
}

func (l *limiter) WithGroup(name string) slog.Handler {
	return &limiter{l.Handler.WithGroup(name), l.messages}
}

// take reports whether a line may be written now.
func (s *messages) take(r *slog.Record) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	message := r.Message
	if s.all[message] == nil && len(s.all) >= maxKinds {
		message = "others"
	}
	k := s.all[message]
	if k == nil {
		k = &kind{hosts: make(map[netip.Addr]*bucket)}
		s.all[message] = k
	}
	if k.take(r) {
		return true
	}
	k.leftOut++
	k.level = max(k.level, r.Level)
	if !s.reporting {
		s.reporting = true
		time.AfterFunc(reportAfter, s.report)
	}
	return false
}

func (k *kind) take(r *slog.Record) bool {
	most := 1
	if r.Level >= slog.LevelError {
		most = crowd
	}
	if at, ok := hostOf(r); ok {
		most = crowd
		if k.hosts[at] == nil {
			if len(k.hosts) >= maxHosts {
				clear(k.hosts)
			}
			k.hosts[at] = new(bucket)
		}
		if !k.hosts[at].take(r.Time, 1) {
			return false
		}
	}
	return k.bucket.take(r.Time, most)
}

func hostOf(r *slog.Record) (at netip.Addr, ok bool) {
	r.Attrs(func(a slog.Attr) bool {
		addr, isAddr := a.Value.Any().(net.Addr)
		if isAddr && a.Key == "address" {
			at, ok = hosts.Of(addr), true
		}
		return !ok
	})
	return at, ok
}

// report logs how many lines of each message were left out.
func (s *messages) report() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reporting = false
	for message, k := range s.all {
		if k.leftOut > 0 {
			s.log.Log(context.Background(), k.level, "lines left out: too many with this message",
				"message", message, "lines", k.leftOut)
			k.leftOut, k.level = 0, 0
		}
	}
}

// bucket has a token for each line that may be written now.
type bucket struct {
	tokens float64
	at     time.Time
}

func (b *bucket) take(now time.Time, times int) bool {
	most := float64(burst * times)
	b.tokens = min(most, b.tokens+max(0, float64(now.Sub(b.at))/float64(interval))*float64(times))
	b.at = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
