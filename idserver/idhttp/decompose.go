package idhttp

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flake-go/flake/idserver"
)

// decomposed is an id taken apart. Numbers are strings, as they may exceed 2^53.
type decomposed struct {
	ID        string  `json:"id"` // the format's own text
	Format    string  `json:"format"`
	Generator string  `json:"generator"`      // as whose it was read
	Time      string  `json:"time,omitempty"` // RFC 3339, up to the year 9999
	Fields    []field `json:"fields"`
}

type field struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Offset int    `json:"offset"` // of the first bit, from the most significant one
	Width  int    `json:"width"`  // in bits
}

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
	base, fault := baseOf(&p)
	if fault != nil {
		return fault
	}
	if _, fault := negotiate(r, []string{asJSON}); fault != nil {
		return fault
	}
	g, value, as := &asked[0], r.PathValue("id"), base
	if all := candidatesOf(asked, value, base, false, time.Now()); len(all) > 0 {
		g, value, as = all[0].g, all[0].text, all[0].base
	}
	id, fields, err := g.Server.Decompose(value, as)
	if err != nil {
		return badParameter("id", value, textsOf(asked, base))
	}
	d := decomposed{
		ID:        string(g.format().AppendCanonical(nil, id)),
		Format:    g.format().Name(),
		Generator: g.Name,
	}
	for _, f := range fields {
		if f.Name == "time" {
			if t := time.UnixMilli(int64(f.Value)).UTC(); f.Value < uint64(endOfTime) {
				d.Time = t.Format(time.RFC3339Nano)
			}
		}
		d.Fields = append(d.Fields, field{f.Name, strconv.FormatUint(f.Value, 10), f.Offset, f.Width})
	}
	h := w.Header()
	h.Set("Content-Type", asJSON)
	h["Cache-Control"] = noStore
	json.NewEncoder(w).Encode(d)
	return nil
}

// endOfTime is the year 10000, which RFC 3339 cannot write, in ms since 1970.
var endOfTime = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()

func (g *Generator) format() idserver.Format { return g.Server.IDs.Format() }

// textsOf says how an id of generators is written.
func textsOf(all []Generator, base int) string {
	var names []string
	for i := range all {
		if name := all[i].format().Name(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	id := "an id of " + strings.Join(names, " or ")
	if base == idserver.Canonical {
		return id + " in a text of its own, or in a base that is given"
	}
	return id + " in base " + strconv.Itoa(base)
}
