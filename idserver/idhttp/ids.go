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
)

var forms = []string{text, asJSON, octets}

// The parameters of each endpoint.
var (
	ofIDs      = []string{"n", "base", "meta", "generator"}
	ofLeases   = []string{"n", "base", "meta", "generator"}
	ofNotional = []string{"from", "to", "base", "generator"}
)

// ids takes ids: /v1/ids?n=&base=&meta=&generator=.
func (s *Server) ids(w http.ResponseWriter, r *http.Request) *problem {
	q, fault := s.ask(r, ofIDs, idserver.MaxMany)
	if fault != nil {
		return fault
	}
	runs := []formats.Run{{Count: 1}}
	var err error
	if q.n > 0 {
		runs, err = q.take(r, q.n, (*idserver.Server).GetMany)
	} else {
		runs[0].First, err = q.generator.Server.Get(r.Context(), q.meta)
	}
	if err != nil {
		return refused(q.generator, err)
	}
	q.writeIDs(w, runs)
	return nil
}

// leases takes runs of ids: /v1/leases?n=&base=&meta=&generator=.
func (s *Server) leases(w http.ResponseWriter, r *http.Request) *problem {
	q, fault := s.ask(r, ofLeases, idserver.MaxLease)
	if fault != nil {
		return fault
	}
	runs, err := q.take(r, max(1, q.n), (*idserver.Server).Lease)
	if err != nil {
		return refused(q.generator, err)
	}
	q.writeRuns(w, runs)
	return nil
}

// notional returns bounds for scans over ids: /v1/notional?from=&to=&base=&generator=.
func (s *Server) notional(w http.ResponseWriter, r *http.Request) *problem {
	q, fault := s.ask(r, ofNotional, 0)
	if fault != nil {
		return fault
	}
	first, given, fault := q.time("from")
	if fault == nil && !given {
		fault = badParameter("from", "", "a time")
	}
	if fault != nil {
		return fault
	}
	last, given, fault := q.time("to")
	if fault != nil {
		return fault
	}
	if given && last < first {
		to, _ := q.get("to")
		return badParameter("to", to, "a time not before from")
	}
	bounds := []bound{{name: "id"}}
	var err error
	if !given {
		bounds[0].id, err = q.generator.Server.Notional(first)
	} else {
		bounds = []bound{{name: "lowest"}, {name: "highest"}}
		bounds[0].id, bounds[1].id, err = q.generator.Server.Span(first, last)
	}
	if err != nil {
		return refused(q.generator, err)
	}
	q.writeBounds(w, bounds)
	return nil
}

// question is what the endpoints for ids are asked: of whom, and how ids are to be
// written.
type question struct {
	parameters
	generator *Generator
	format    *formats.Format
	media     string
	base      int
	n         int // of ids; 0: that is not given
	meta      idserver.Meta
}

// ask reads the parameters, of which those that most endpoints have: generator;
// base, without which an answer is in the format's own text; and unless most is 0
// the metabyte and the number of ids, up to most.
func (s *Server) ask(r *http.Request, known []string, most int) (q question, fault *problem) {
	if q.parameters, fault = readParameters(r, known); fault != nil {
		return q, fault
	}
	if q.generator, fault = s.generator(&q.parameters); fault != nil {
		return q, fault
	}
	q.format = q.generator.format()
	if q.media, fault = negotiate(r, forms); fault != nil {
		return q, fault
	}
	if q.media != octets {
		q.base, fault = baseOf(&q.parameters, q.format)
	} else if base, given := q.get("base"); given {
		fault = badParameter("base", base, "none with Accept: "+octets)
	}
	if fault == nil && most > 0 {
		if q.n, fault = q.number("n", 0, 1, q.generator.Server.Most(most)); fault == nil {
			fault = q.readMeta()
		}
	}
	return q, fault
}

// generator finds the one that is named, or else the first.
func (s *Server) generator(p *parameters) (*Generator, *problem) {
	asked, fault := s.asked(p)
	if fault != nil {
		return nil, fault
	}
	return &asked[0], nil
}

// asked are the one that is named, or else all.
func (s *Server) asked(p *parameters) ([]Generator, *problem) {
	name, given := p.get("generator")
	if !given {
		return s.Generators, nil
	}
	there := ""
	for i := range s.Generators {
		g := &s.Generators[i]
		if g.Name == name {
			return s.Generators[i : i+1], nil
		}
		if i > 0 {
			there += ", "
		}
		there += g.Name
	}
	return nil, badParameter("generator", name, "one of "+there)
}

// baseOf reads a base that any of some formats has.
func baseOf(p *parameters, all ...*formats.Format) (int, *problem) {
	value, given := p.get("base")
	if !given {
		return formats.Canonical, nil
	}
	names := namesOf(all)
	if slices.Contains(names, value) {
		base, _ := formats.BaseOf(value)
		return base, nil
	}
	base, _ := strconv.ParseUint(value, 10, 8) // 0 of what is no number
	if base < 2 || base > 62 {
		return 0, badParameter("base", value, "a whole number from 2 to 62, or "+strings.Join(names, ", "))
	}
	return int(base), nil
}

// namesOf are the names of the bases that any of some formats has: of one of them all.
func namesOf(all []*formats.Format) (names []string) {
	for _, f := range all {
		if of := f.BaseNames(); len(of) > len(names) {
			names = of
		}
	}
	return names
}

func formatsOf(all []Generator) (of []*formats.Format) {
	for i := range all {
		of = append(of, all[i].format())
	}
	return of
}

// readMeta reads the metabyte, for a format that takes one.
func (q *question) readMeta() *problem {
	value, given := q.get("meta")
	if given && !q.format.Meta {
		return badParameter("meta", value, "none with ids of "+q.format.Name)
	}
	number, fault := q.number("meta", 0, 0, math.MaxUint8)
	q.meta = idserver.Meta{Byte: uint8(number), Given: given}
	return fault
}

// many is a method that takes many ids.
type many func(*idserver.Server, context.Context, int, idserver.Meta, *idserver.Turn) ([]formats.Run, error)

// take takes n ids. If these are so many that others go before, it does not wait for
// long.
func (q *question) take(r *http.Request, n int, take many) ([]formats.Run, error) {
	ctx, server := r.Context(), q.generator.Server
	if n > idserver.MaxInline {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, turnTime)
		defer cancel()
	}
	turn := server.TurnOfOther(n)
	defer turn.End()
	runs, err := take(server, ctx, n, q.meta, turn)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("others ask for so many ids that there were not %d in %v", n, turnTime)
	}
	return runs, err
}

// refused says why a generator did not answer.
func refused(g *Generator, err error) *problem {
	reason := idserver.Reason(err)
	if reason == "badarg" {
		p := failed(http.StatusBadRequest, "%s: %v", g.Name, err)
		p.Type, p.Title, p.Reason = document+"bad-parameter", "A parameter is wrong", reason
		return p
	}
	return noIDs(reason, fmt.Sprintf("%s: %v", g.Name, err), g.wait())
}

// noIDs says that a generator cannot hand out ids for now.
func noIDs(reason, detail string, retry time.Duration) *problem {
	p := failed(http.StatusServiceUnavailable, "%s", detail)
	p.Type, p.Title, p.Reason, p.retry = document+"no-ids", "No ids for now", reason, retry
	return p
}

// wait is how long it may take until there are ids again: until the clock has
// caught up, and at least a second.
func (g *Generator) wait() time.Duration {
	return max(time.Second, g.Server.IDs.Behind())
}

// Headers as package net/http has them, made once.
var (
	noStore     = []string{"no-store"}
	mediaHeader = map[string][]string{text: {text}, asJSON: {asJSON}, octets: {octets}}
)
