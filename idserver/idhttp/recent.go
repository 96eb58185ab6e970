package idhttp

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/flake-go/flake/internal/escape"
)

// Limits on the lines that the page shows. A peer can cause some lines as often as it likes,
// and those lines must not displace all others.
const (
	maxRecent      = 50  // lines
	maxRecentAlike = 4   // lines with the same message
	maxRecentText  = 200 // bytes of a value
	maxRecentMore  = 600 // bytes of all attributes of a line
)

// Recent keeps the latest lines of a log, of level INFO and above.
type Recent struct {
	mu  sync.Mutex // guards all
	all []event    // latest first
}

// event is a line in the form that the page shows.
type event struct{ At, Level, What, More string }

// Handler returns a handler that keeps lines.
func (r *Recent) Handler() slog.Handler { return recentHandler{of: r} }

type recentHandler struct {
	of   *Recent
	more string // the attributes so far
}

func (recentHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo
}

func (h recentHandler) Handle(_ context.Context, line slog.Record) error {
	more := h.more
	line.Attrs(func(a slog.Attr) bool {
		more = and(more, a)
		return true
	})
	h.of.note(line.Time, line.Level, line.Message, more)
	return nil
}

func (h recentHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		h.more = and(h.more, a)
	}
	return h
}

func (h recentHandler) WithGroup(string) slog.Handler { return h }

// and appends an attribute to more, if there is room.
func and(more string, a slog.Attr) string {
	text := a.Key + "=" + plain(a.Value.Resolve().String())
	if more != "" {
		text = more + " " + text
	}
	if len(text) > maxRecentMore {
		return more
	}
	return text
}

// plain makes untrusted text safe to show. It truncates long text, and quotes text that
// has unprintable characters, or a = that would make it look like another attribute.
func plain(text string) string {
	if len(text) > maxRecentText {
		end := maxRecentText
		for !utf8.RuneStart(text[end]) && end > maxRecentText-utf8.UTFMax {
			end--
		}
		text = text[:end] + "..."
	}
	if strings.Contains(text, "=") || !escape.Safe(text) {
		return strconv.Quote(text)
	}
	return text
}

// note keeps a line. If there are too many lines with the same message, the line replaces the
// oldest of them; if there are too many in total, it replaces the oldest line.
func (r *Recent) note(at time.Time, level slog.Level, what, more string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	alike, oldest := 0, 0
	for i := range r.all {
		if r.all[i].What == what {
			alike, oldest = alike+1, i
		}
	}
	switch {
	case alike == maxRecentAlike:
		r.all = slices.Delete(r.all, oldest, oldest+1)
	case len(r.all) == maxRecent:
		r.all = r.all[:maxRecent-1]
	}
	line := event{at.UTC().Format("01-02 15:04:05"), strings.ToLower(level.String()), plain(what), more}
	r.all = slices.Insert(r.all, 0, line)
}

// state returns the lines, latest first.
func (r *Recent) state() []event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}
