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

// What the page shows of the log. A peer can cause some lines as often as it likes: they
// do not push out others.
const (
	maxRecent      = 50  // lines
	maxRecentAlike = 4   // with one message
	maxRecentText  = 200 // bytes of a value
	maxRecentMore  = 600 // of all values of a line
)

// Recent keeps the last lines of a log, of level INFO and above.
type Recent struct {
	mu  sync.Mutex
	all []event // the oldest first
}

type event struct {
	at         time.Time
	level      slog.Level
	what, more string
}

// Handler returns a handler that keeps lines, and gives all to the next.
func (r *Recent) Handler(next slog.Handler) slog.Handler { return keeper{next: next, of: r} }

type keeper struct {
	next slog.Handler
	of   *Recent
	more string // the attributes so far
}

func (k keeper) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo || k.next.Enabled(ctx, level)
}

func (k keeper) Handle(ctx context.Context, line slog.Record) error {
	if line.Level >= slog.LevelInfo {
		more := k.more
		line.Attrs(func(a slog.Attr) bool {
			more = and(more, a)
			return true
		})
		k.of.note(line.Time, line.Level, line.Message, more)
	}
	if !k.next.Enabled(ctx, line.Level) {
		return nil
	}
	return k.next.Handle(ctx, line)
}

func (k keeper) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		k.more = and(k.more, a)
	}
	k.next = k.next.WithAttrs(attrs)
	return k
}

func (k keeper) WithGroup(name string) slog.Handler {
	k.next = k.next.WithGroup(name)
	return k
}

// and adds an attribute, if there is room for it.
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

// plain returns a text that anybody may have written, as one that can be shown: not
// longer than it may be, and without what would change how others look, or look like
// another attribute.
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

// note keeps a line instead of the oldest one like it, or of all, if there are too many.
func (r *Recent) note(at time.Time, level slog.Level, what, more string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	alike, first := 0, 0
	for i := range slices.Backward(r.all) {
		if r.all[i].what == what {
			alike, first = alike+1, i
		}
	}
	switch {
	case alike == maxRecentAlike:
		r.all = slices.Delete(r.all, first, first+1)
	case len(r.all) == maxRecent:
		r.all = slices.Delete(r.all, 0, 1)
	}
	r.all = append(r.all, event{at, level, plain(what), more})
}

// eventState is a line as the page shows it.
type eventState struct{ At, Level, What, More string }

// state returns the lines, the latest first.
func (r *Recent) state() (all []eventState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range slices.Backward(r.all) {
		all = append(all, eventState{e.at.UTC().Format("01-02 15:04:05"), strings.ToLower(e.level.String()), e.what, e.more})
	}
	return all
}
