package idhttp

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"
)

// problem is what is wrong with a request or with the node, as RFC 9457 has it.
// Parameter and Allowed say which parameter, and what it may be; Reason is the
// atom that an Erlang caller gets.
type problem struct {
	Type      string `json:"type"` // where this kind of problem is described
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail"`
	Parameter string `json:"parameter,omitempty"`
	Allowed   string `json:"allowed,omitempty"`
	Reason    string `json:"reason,omitempty"`

	retry time.Duration // when it may be over; 0: never by itself
}

// document describes the types of problems that say more than their status.
const document = "/openapi.yaml#"

func failed(status int, format string, args ...any) *problem {
	return &problem{
		Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, args...),
	}
}

// badParameter says that a parameter is wrong, and what is allowed.
func badParameter(name, value, allowed string) *problem {
	p := failed(http.StatusBadRequest, "%s is %s: allowed is %s", name, quote(value), allowed)
	p.Type, p.Title = document+"bad-parameter", "A parameter is wrong"
	p.Parameter, p.Allowed, p.Reason = name, allowed, "badarg"
	return p
}

// quote shows what came from outside, cut to a length fit for a line.
func quote(text string) string {
	const shown = 64
	if len(text) > shown {
		return fmt.Sprintf("%q... (%d bytes)", text[:shown], len(text))
	}
	return strconv.Quote(text)
}

// write answers with the problem.
func (p *problem) write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	if p.retry > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(p.retry.Seconds()))))
	}
	w.WriteHeader(p.Status)
	json.NewEncoder(w).Encode(p)
}
