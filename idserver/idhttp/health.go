package idhttp

import (
	"fmt"
	"net/http"
	"time"

	"github.com/flake-go/flake/idserver"
)

// healthz tells that the process answers.
func (s *Server) healthz(w http.ResponseWriter, r *http.Request) *problem {
	return well(w, r, "ok\n")
}

// readyz tells whether all generators can hand out ids, and if not, why.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) *problem {
	if s.draining.Load() {
		return draining()
	}
	for i := range s.Generators {
		g := &s.Generators[i]
		if reason, detail := g.trouble(); reason != "" {
			return noIDs(reason, g.Name+": "+detail, g.wait())
		}
	}
	return well(w, r, "ready\n")
}

func well(w http.ResponseWriter, r *http.Request, answer string) *problem {
	if _, fault := readParameters(r, nil); fault != nil {
		return fault
	}
	w.Header()["Cache-Control"] = noStore
	w.Write([]byte(answer))
	return nil
}

// rests tells whether the mark was not saved since before, which it moves on: as a
// rule nobody asks for ids. Any clock may be wrong, so none is asked.
func (g *Generator) rests(before *time.Time) bool {
	saved, err := g.Server.IDs.LastSaved()
	last := *before
	*before = saved
	return err == nil && !saved.IsZero() && saved.Equal(last)
}

// trouble returns the reason why a generator cannot hand out ids, or soon will not
// be able to, and what there is to say about it; or nothing.
func (g *Generator) trouble() (reason, detail string) {
	if g.Running != nil && !g.Running() {
		return "noproc", "no server is registered for Erlang nodes"
	}
	err := g.Server.IDs.Ready()
	if err == nil {
		return "", ""
	}
	reason, detail = idserver.Reason(err), err.Error()
	switch reason {
	case "clock_running_backwards":
		detail = fmt.Sprintf("the clock is %v behind", g.Server.IDs.Behind())
	case "timestamp_not_saved":
		saved, _ := g.Server.IDs.LastSaved()
		detail = fmt.Sprintf("the time was last saved at %s: %v", saved.UTC().Format(time.RFC3339), err)
	}
	return reason, detail
}
