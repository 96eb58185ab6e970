package idhttp

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/idserver/inspect"
)

// Drain makes /readyz report that the node is not ready, because it will soon stop. Other
// requests are answered as before, but the connection is closed after each, so that the
// caller's next request may reach another node.
func (d *Door) Drain() { d.draining.Store(true) }

// healthz reports that the process is running.
func (d *Door) healthz(w http.ResponseWriter, _ *http.Request, _ parameters) *problem {
	return writeText(w, "ok\n")
}

// readyz reports whether all generators, or those listed in the parameter, can return ids, and
// if not, why.
func (d *Door) readyz(w http.ResponseWriter, _ *http.Request, p parameters) *problem {
	list, given := p["generators"]
	asked := strings.Split(list, ",")
	for _, name := range asked {
		if given && !slices.ContainsFunc(d.Generators, func(g Generator) bool { return g.Name == name }) {
			return badParameter("generators", name, "names of generators, with commas between them")
		}
	}
	if d.draining.Load() {
		return noIDs(idserver.ErrStopping, idserver.ErrStopping.Error(), time.Second)
	}
	for i := range d.Generators {
		g := &d.Generators[i]
		if given && !slices.Contains(asked, g.Name) {
			continue
		}
		if detail, err := g.trouble(); err != nil {
			return noIDs(err, "generator "+g.Name+": "+detail, g.wait())
		}
	}
	return writeText(w, "ready\n")
}

func writeText(w http.ResponseWriter, answer string) *problem {
	w.Header()["Cache-Control"] = noStore
	w.Write([]byte(answer))
	return nil
}

// idle reports whether no save has happened since *before, and advances *before. It reads no
// clock, because any clock may be wrong.
func (g *Generator) idle(before *time.Time) bool {
	saved, err := g.Server.IDs.LastSaved()
	last := *before
	*before = saved
	return err == nil && !saved.IsZero() && saved.Equal(last)
}

// trouble returns why a generator cannot return ids, or soon will not be able to: an error
// from [idserver.Results], and a description of the error.
func (g *Generator) trouble() (detail string, err error) {
	if g.Running != nil && !g.Running() {
		return idserver.ErrNotRegistered.Error(), idserver.ErrNotRegistered
	}
	err = g.Server.IDs.Ready()
	switch {
	case err == nil:
		return "", nil
	case errors.Is(err, flake.ErrClockBackwards):
		detail = fmt.Sprintf("the clock is %v behind", g.Server.IDs.Behind())
	case errors.Is(err, flake.ErrTimestampNotSaved):
		saved, _ := g.Server.IDs.LastSaved()
		detail = fmt.Sprintf("the time was last saved at %s: %s", saved.UTC().Format(time.RFC3339), textOf(err))
	default:
		detail = textOf(err)
	}
	return detail, err
}

// textOf returns the text of a generator's error without the library's prefix, flake, which would look
// like the generator's name.
func textOf(err error) string {
	return strings.ReplaceAll(strings.TrimPrefix(err.Error(), "flake: "), ": flake: ", ": ")
}

// trouble is a reason why some generators cannot return ids, in the form that the page shows.
type trouble struct {
	*idserver.Result
	What       string   // the detail from the first generator
	names      []string // the generators' names
	since, now time.Time
}

// addTrouble adds a generator's trouble to all, joining generators with the same result.
func addTrouble(all []trouble, name, what string, err error, since, now time.Time) []trouble {
	result := idserver.ResultOf(err)
	for i := range all {
		if t := &all[i]; t.Result == result {
			t.names = append(t.names, name)
			if since.Before(t.since) {
				t.since = since
			}
			return all
		}
	}
	return append(all, trouble{result, what, []string{name}, since, now})
}

// Names lists the first few generators, and how many more there are.
func (t trouble) Names() string {
	const shown = 3
	if more := len(t.names) - shown; more > 0 {
		return strings.Join(t.names[:shown], ", ") + " and " + strconv.Itoa(more) + " more"
	}
	return strings.Join(t.names, ", ")
}

func (t trouble) Since() string {
	return t.since.UTC().Format(time.DateTime) + " UTC, for " + inspect.Span(t.now.Sub(t.since).Milliseconds())
}

// onsets records when each generator's current state began.
type onsets struct {
	mu  sync.Mutex // guards all
	all []onset    // by generator
}

type onset struct {
	result *idserver.Result
	at     time.Time
}

// note records the trouble of generator i, or nil if it has none, and returns when that state
// began.
func (o *onsets) note(i int, err error, now time.Time) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	if result := idserver.ResultOf(err); o.all[i].result != result {
		o.all[i] = onset{result, now}
	}
	return o.all[i].at
}

// Report is the answer to /v1/info: the node's state and counts. Times are in ms since 1970,
// and durations in ms.
type Report struct {
	Node        string            `json:"node"`
	Version     string            `json:"version"`
	Ready       bool              `json:"ready"`                 // as /readyz reports
	Connections *int              `json:"connections,omitempty"` // nil if unknown
	Generators  []GeneratorReport `json:"generators"`
}

// GeneratorReport contains the properties that Erlang callers get by calling info, and whether
// the generator can return ids.
type GeneratorReport struct {
	Name string `json:"name"`
	idserver.Info
	Ready  bool   `json:"ready"`
	Reason string `json:"reason,omitempty"` // why it is not ready, as in the problem no-ids
	Detail string `json:"detail,omitempty"`
}

func (d *Door) info(w http.ResponseWriter, _ *http.Request, _ parameters) *problem {
	v := &Report{
		Node: d.Node.Name, Version: d.Node.Version, Ready: !d.draining.Load(),
		Connections: new(d.Node.Traffic().Connections),
	}
	for i := range d.Generators {
		g := &d.Generators[i]
		detail, err := g.trouble() // before Info, because trouble advances a mark that is behind
		r := GeneratorReport{Name: g.Name, Info: g.Server.Info(), Ready: err == nil, Detail: detail}
		if err != nil {
			v.Ready, r.Reason = false, idserver.Reason(err)
		}
		v.Generators = append(v.Generators, r)
	}
	return writeJSON(w, v)
}
