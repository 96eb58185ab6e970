package idhttp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/idserver/inspect"
)

var forms = []string{text, asJSON, octets}

// ids answers with new ids: /v1/ids?n=&base=&meta=&generator=.
func (d *Door) ids(w http.ResponseWriter, r *http.Request, p parameters) *problem {
	q, fault := d.ask(r, p, idserver.MaxMany)
	if fault != nil {
		return fault
	}
	runs := []formats.Run{{Count: 1}}
	var err error
	if q.n > 0 {
		runs, err = q.take(r, idserver.KindGetMany, q.n)
	} else {
		runs[0].First, err = q.generator.Server.Get(r.Context(), q.meta)
	}
	if err != nil {
		return refused(q.generator, err)
	}
	q.writeIDs(w, runs)
	return nil
}

// leases answers with new runs of ids: /v1/leases?n=&base=&meta=&generator=.
func (d *Door) leases(w http.ResponseWriter, r *http.Request, p parameters) *problem {
	q, fault := d.ask(r, p, idserver.MaxLease)
	if fault != nil {
		return fault
	}
	runs, err := q.take(r, idserver.KindLease, max(1, q.n))
	if err != nil {
		return refused(q.generator, err)
	}
	q.writeRuns(w, runs)
	return nil
}

// notional answers with bounds for scans over ids: /v1/notional?from=&to=&base=&generator=.
func (d *Door) notional(w http.ResponseWriter, r *http.Request, p parameters) *problem {
	q, fault := d.ask(r, p, 0)
	if fault != nil {
		return fault
	}
	first, fault := p.time("from")
	if fault != nil {
		return fault
	}
	kind, last := idserver.KindNotional, first
	if value, given := p["to"]; given {
		kind = idserver.KindSpan
		if last, fault = p.time("to"); fault != nil {
			return fault
		}
		if last < first {
			return badParameter("to", value, "a time not before from")
		}
	}
	lowest, highest, err := q.generator.Server.Span(kind, first, last)
	if err != nil {
		from, to := q.format.Times()
		name := "from"
		if from <= first && first <= to {
			name = "to"
		}
		fault := badParameter(name, p[name], fmt.Sprintf("a time of ids of %s, %d to %d in milliseconds since 1970",
			q.generator.Name, from, to))
		fault.counted = true
		return fault
	}
	b := q.body(w)
	if kind == idserver.KindSpan {
		b.add(`{"lowest":"`, lowest, 0)
		b.add(`","highest":"`, highest, 0)
	} else {
		b.add(`{"id":"`, lowest, 0)
	}
	b.end(`"}`)
	return nil
}

// decompose decodes an id: /v1/ids/{id}?base=&generator=. If no generator is named, the id
// is read as one from the generator that most likely made it.
func (d *Door) decompose(w http.ResponseWriter, r *http.Request, p parameters) *problem {
	asked, fault := d.asked(p)
	if fault != nil {
		return fault
	}
	base, fault := baseOf(p, formatsOf(asked)...)
	if fault != nil {
		return fault
	}
	if _, fault := negotiate(r, []string{asJSON}); fault != nil {
		return fault
	}
	value := r.PathValue("id")
	g, text, as := &asked[0], "", base // the empty text is not an id
	if all := inspect.Read(makersOf(asked), value, base, false, time.Now()); len(all) > 0 {
		g, text, as = &asked[all[0].Maker], all[0].Text, all[0].Base
	}
	id, err := g.Server.Decompose(text, as)
	if err != nil {
		allowed := textsOf(asked, base)
		if base == formats.Canonical {
			others := inspect.Read(makersOf(asked), value, 62, false, time.Now())
			if len(others) > 0 && others[0].Likely { // such as an id from {get, 62}
				allowed += "; with base=62, it is one"
			}
		}
		fault := badParameter("id", value, allowed)
		fault.counted = true
		return fault
	}
	parts := inspect.PartsOf(g.format(), id)
	parts.Generator = g.Name
	return writeJSON(w, parts)
}

func makersOf(all []Generator) []inspect.Maker {
	makers := make([]inspect.Maker, len(all))
	for i := range all {
		makers[i] = inspect.Maker{Format: all[i].format(), Worker: all[i].Server.IDs.Worker}
	}
	return makers
}

func (g *Generator) format() *formats.Format { return g.Server.IDs.Format() }

// textsOf describes how ids of these generators are written.
func textsOf(all []Generator, base int) string {
	var names []string
	for i := range all {
		if name := all[i].format().Name; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	id := "an id of " + strings.Join(names, " or ")
	if base == formats.Canonical {
		return id + " in its own text, or in another base if base is given"
	}
	return id + " in " + formats.NameOf(base)
}

// question is a request for ids, or about ids: which generator it means, and how ids are
// written.
type question struct {
	generator *Generator
	format    *formats.Format
	media     string
	base      int
	n         int // the number of ids; 0 if not given
	meta      idserver.Meta
}

// ask reads the generator and the base; without a base, ids are in the format's own text. If they are
// given, ask also reads the metabyte and the number of ids, which must not exceed limit.
func (d *Door) ask(r *http.Request, p parameters, limit int) (q question, fault *problem) {
	asked, fault := d.asked(p)
	if fault != nil {
		return q, fault
	}
	q.generator = &asked[0]
	q.format = q.generator.format()
	if q.media, fault = negotiate(r, forms); fault != nil {
		return q, fault
	}
	if q.media != octets {
		q.base, fault = baseOf(p, q.format)
	} else if base, given := p["base"]; given {
		fault = badParameter("base", base, "left out with Accept: "+octets)
	}
	if fault == nil {
		if q.n, fault = p.number("n", 1, q.generator.Server.Most(limit)); fault == nil {
			fault = q.readMeta(p)
		}
	}
	return q, fault
}

// asked returns the named generator or, if none is named, all generators. The first of all
// generators is the default.
func (d *Door) asked(p parameters) ([]Generator, *problem) {
	name, given := p["generator"]
	if !given {
		return d.Generators, nil
	}
	var names []string
	for i := range d.Generators {
		if d.Generators[i].Name == name {
			return d.Generators[i : i+1], nil
		}
		names = append(names, d.Generators[i].Name)
	}
	return nil, badParameter("generator", name, "one of "+strings.Join(names, ", "))
}

// baseOf returns the base in the parameters. A base given by name must be one that at least one
// of the given formats has.
func baseOf(p parameters, all ...*formats.Format) (int, *problem) {
	value, given := p["base"]
	if !given {
		return formats.Canonical, nil
	}
	names := formats.BaseNames(all...)
	if slices.Contains(names, value) {
		base, _ := formats.BaseOf(value)
		return base, nil
	}
	base, _ := strconv.ParseUint(value, 10, 8) // 0 if it is not a number
	if base < 2 || base > 62 {
		return 0, badParameter("base", value, "an integer from 2 to 62, or "+strings.Join(names, ", "))
	}
	return int(base), nil
}

func formatsOf(all []Generator) (list []*formats.Format) {
	for i := range all {
		list = append(list, all[i].format())
	}
	return list
}

// readMeta reads the metabyte, which is allowed only if the format has one.
func (q *question) readMeta(p parameters) *problem {
	value, given := p["meta"]
	if given && !q.format.Meta {
		return badParameter("meta", value, "left out with ids of "+q.format.Name)
	}
	number, fault := p.number("meta", 0, math.MaxUint8)
	q.meta = idserver.Meta{Byte: uint8(number), Given: given}
	return fault
}

// take takes n ids. If it must take them in turns, it waits for at most turnTime.
func (q *question) take(r *http.Request, kind idserver.Kind, n int) ([]formats.Run, error) {
	ctx, server := r.Context(), q.generator.Server
	if n > idserver.MaxInline {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, turnTime)
		defer cancel()
	}
	turn := server.TurnOfOther(n)
	defer turn.End()
	runs, err := server.Take(ctx, kind, n, q.meta, turn)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("cannot take %d ids in %v, because other callers ask for many", n, turnTime)
	}
	return runs, err
}

// refused returns the problem for a request that the generator refused.
func refused(g *Generator, err error) *problem {
	return noIDs(err, g.Name+": "+textOf(err), g.wait())
}

// noIDs returns the problem for a generator that cannot return ids now.
func noIDs(err error, detail string, retry time.Duration) *problem {
	p := busy(retry, "%s", detail)
	p.Type, p.Title, p.Reason, p.counted = document+"no-ids", "No ids for now", idserver.Reason(err), true
	return p
}

// wait returns how long it may take until the generator can return ids again: until the clock
// has caught up, but at least a second.
func (g *Generator) wait() time.Duration {
	return max(time.Second, g.Server.IDs.Behind())
}
