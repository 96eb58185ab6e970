package idhttp

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/idserver/inspect"
)

// decompose takes an id apart: /v1/ids/{id}?base=&generator=. Unless a generator is
// named, it is read as of the one that is the likeliest to have made it.
func (s *Server) decompose(w http.ResponseWriter, r *http.Request) *problem {
	p, fault := readParameters(r, []string{"base", "generator"})
	if fault != nil {
		return fault
	}
	asked, fault := s.asked(&p)
	if fault != nil {
		return fault
	}
	base, fault := baseOf(&p, formatsOf(asked)...)
	if fault != nil {
		return fault
	}
	if _, fault := negotiate(r, []string{asJSON}); fault != nil {
		return fault
	}
	g, value, as := &asked[0], r.PathValue("id"), base
	if all := inspect.Read(makersOf(asked), value, base, false, time.Now()); len(all) > 0 {
		g, value, as = &asked[all[0].Maker], all[0].Text, all[0].Base
	}
	id, _, err := g.Server.Decompose(value, as)
	if err != nil {
		return badParameter("id", value, textsOf(asked, base))
	}
	parts := inspect.PartsOf(g.format(), id)
	parts.Generator = g.Name
	h := w.Header()
	h.Set("Content-Type", asJSON)
	h["Cache-Control"] = noStore
	json.NewEncoder(w).Encode(parts)
	return nil
}

// makersOf are generators as what may have made an id.
func makersOf(all []Generator) []inspect.Maker {
	makers := make([]inspect.Maker, len(all))
	for i := range all {
		makers[i] = inspect.Maker{Format: all[i].format(), Worker: all[i].Server.IDs.Worker}
	}
	return makers
}

func (g *Generator) format() *formats.Format { return g.Server.IDs.Format() }

// textsOf says how an id of generators is written.
func textsOf(all []Generator, base int) string {
	var names []string
	for i := range all {
		if name := all[i].format().Name; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	id := "an id of " + strings.Join(names, " or ")
	if base == formats.Canonical {
		return id + " in a text of its own, or in a base that is given"
	}
	return id + " in " + formats.NameOf(base)
}
