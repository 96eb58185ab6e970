package flakehttp

import (
	"fmt"
	"net/http"
	"time"
)

// healthz tells that the process answers.
func (s *Server) healthz(w http.ResponseWriter, r *http.Request) *problem {
	return well(w, r, "ok\n")
}

// readyz tells whether all generators can hand out ids, and if not, why.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) *problem {
	now := time.Now()
	for i := range s.Generators {
		g := &s.Generators[i]
		if reason, detail := g.trouble(now); reason != "" {
			return noIDs(reason, g.Name+": "+detail, g.wait(now))
		}
	}
	return well(w, r, "ready\n")
}

func well(w http.ResponseWriter, r *http.Request, answer string) *problem {
	if _, fault := readParameters(r, nil); fault != nil {
		return fault
	}
	h := w.Header()
	h.Set("Content-Type", text)
	h["Cache-Control"] = noStore
	w.Write([]byte(answer))
	return nil
}

// trouble gives the reason why a generator cannot hand out ids, or soon will not
// be able to, and what there is to say about it; or nothing.
func (g *Generator) trouble(now time.Time) (reason, detail string) {
	last, _ := g.Server.IDs.Last()
	if behind := time.UnixMilli(int64(last)).Sub(now); behind >= time.Millisecond {
		return "clock_running_backwards", fmt.Sprintf("the clock is %v behind the last id", behind.Truncate(time.Millisecond))
	}
	if saved, err := g.Server.IDs.LastSaved(); err != nil {
		return "timestamp_not_saved", fmt.Sprintf("the time was last saved at %s: %v", saved.UTC().Format(time.RFC3339), err)
	}
	return "", ""
}
