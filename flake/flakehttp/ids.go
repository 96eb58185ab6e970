package flakehttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/flake-go/flake/flake/flakeserver"
)

var forms = []string{text, asJSON, octets}

// The parameters of each endpoint.
var (
	ofIDs      = []string{"n", "base", "meta", "generator"}
	ofLeases   = []string{"n", "base", "generator"}
	ofNotional = []string{"from", "to", "base", "generator"}
)

// ids takes ids: /v1/ids?n=&base=&meta=&generator=.
func (s *Server) ids(w http.ResponseWriter, r *http.Request) *problem {
	q := question{Request: flakeserver.Request{Op: flakeserver.OpGet}}
	fault := s.ask(&q, r, ofIDs)
	if fault == nil {
		q.N, fault = q.number("n", 0, 1, flakeserver.MaxMany)
	}
	if q.N > 0 {
		q.Op = flakeserver.OpGetMany
	}
	if fault == nil {
		fault = q.metabyte()
	}
	return q.serve(w, r, fault, q.writeIDs)
}

// leases takes runs of ids: /v1/leases?n=&base=&generator=.
func (s *Server) leases(w http.ResponseWriter, r *http.Request) *problem {
	q := question{Request: flakeserver.Request{Op: flakeserver.OpLease}}
	fault := s.ask(&q, r, ofLeases)
	if fault == nil {
		q.N, fault = q.number("n", 1, 1, flakeserver.MaxLease)
	}
	return q.serve(w, r, fault, q.writeRuns)
}

// notional gives bounds for scans over ids: /v1/notional?from=&to=&base=&generator=.
func (s *Server) notional(w http.ResponseWriter, r *http.Request) *problem {
	q := question{Request: flakeserver.Request{Op: flakeserver.OpNotional}}
	fault := s.ask(&q, r, ofNotional)
	if fault == nil {
		fault = q.times()
	}
	return q.serve(w, r, fault, q.writeSpan)
}

// question is a request on its way to a reply and to its body.
type question struct {
	parameters
	flakeserver.Request
	reply     flakeserver.Reply
	generator *Generator
	media     string
}

// ask reads the parameters, of which those that most endpoints have: generator
// and base, without which an answer is in the format's own text.
func (s *Server) ask(q *question, r *http.Request, known []string) (fault *problem) {
	if q.parameters, fault = readParameters(r, known); fault != nil {
		return fault
	}
	if q.generator, fault = s.generator(&q.parameters); fault != nil {
		return fault
	}
	if q.media, fault = negotiate(r, forms); fault != nil {
		return fault
	}
	if q.media != octets {
		q.Base, fault = baseOf(&q.parameters)
		return fault
	}
	if base, given := q.get("base"); given {
		return badParameter("base", base, "none with Accept: "+octets)
	}
	q.Base = flakeserver.Octets
	return nil
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

const canonical = "canonical"

func baseOf(p *parameters) (int, *problem) {
	value, given := p.get("base")
	if !given || value == canonical {
		return flakeserver.Canonical, nil
	}
	base, _ := strconv.ParseUint(value, 10, 8) // 0 of what is no number
	if base < 2 || base > 62 {
		return 0, badParameter("base", value, "a whole number from 2 to 62, or "+canonical)
	}
	return int(base), nil
}

// metabyte reads meta, for a format that takes one.
func (q *question) metabyte() *problem {
	value, given := q.get("meta")
	if !given {
		return nil
	}
	if format := q.generator.Server.IDs.Format(); !format.Meta() {
		return badParameter("meta", value, "none with ids of "+format.Name())
	}
	if q.N > 0 {
		return badParameter("meta", value, "none with n")
	}
	meta, fault := q.number("meta", 0, 0, 255)
	q.Meta, q.HasMeta = uint8(meta), true
	return fault
}

// times reads from and to.
func (q *question) times() *problem {
	var given bool
	var fault *problem
	if q.First, given, fault = q.time("from"); fault != nil {
		return fault
	}
	if !given {
		return badParameter("from", "", "a time")
	}
	if q.Last, given, fault = q.time("to"); fault != nil || !given {
		return fault
	}
	q.Op = flakeserver.OpSpan
	if q.Last < q.First {
		to, _ := q.get("to")
		return badParameter("to", to, "a time not before from")
	}
	return nil
}

// serve answers the request, with the body that write makes, unless there is a
// fault by now.
func (q *question) serve(w http.ResponseWriter, r *http.Request, fault *problem, write func(http.ResponseWriter)) *problem {
	if fault == nil {
		fault = q.answer(r)
	}
	if fault != nil {
		return fault
	}
	q.begin(w)
	write(w)
	return nil
}

// answer has the request served.
func (q *question) answer(r *http.Request) *problem {
	ctx := r.Context()
	if q.N > flakeserver.MaxInline {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, turnTime)
		defer cancel()
	}
	q.reply = q.generator.Server.Serve(ctx, q.Request)
	err := q.reply.Err
	if err == nil {
		return nil
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("others ask for so many ids that there were not %d in %v", q.N, turnTime)
	}
	return refused(q.generator, err)
}

// refused says why a generator did not answer.
func refused(g *Generator, err error) *problem {
	reason := flakeserver.Reason(err)
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

// begin tells what the body will be.
func (q *question) begin(w http.ResponseWriter) {
	h := w.Header()
	h["Content-Type"] = mediaHeader[q.media]
	h["Cache-Control"] = noStore
}

// Headers as package net/http has them, made once.
var (
	noStore     = []string{"no-store"}
	mediaHeader = map[string][]string{text: {text}, asJSON: {asJSON}, octets: {octets}}
)
