package idhttp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flake-go/flake/idserver"
)

// parameters are the values of a request's parameters, by name.
type parameters map[string]string

// readBody reads the whole body. A request counts as being answered only after that.
func readBody(r *http.Request) (body []byte, fault *problem) {
	if r.ContentLength == 0 {
		return nil, nil
	}
	var err error
	large := r.ContentLength > MaxBody // then it is not read, as reading tells some callers to send it
	if !large {
		body, err = io.ReadAll(http.MaxBytesReader(nil, r.Body, MaxBody))
		_, large = errors.AsType[*http.MaxBytesError](err)
	}
	if large {
		return nil, failed(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", MaxBody)
	}
	if err != nil {
		return nil, failed(http.StatusBadRequest, "the body cannot be read: %v", err)
	}
	return body, nil
}

// readParameters reads the parameters in the query and, for a POST, those in the form in the
// body.
func readParameters(r *http.Request, body []byte, known []string) (p parameters, fault *problem) {
	fault = p.read(r.URL.RawQuery, known)
	if fault != nil || r.Method != http.MethodPost || len(body) == 0 {
		return p, fault
	}
	const form = "application/x-www-form-urlencoded"
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media != form {
		return p, failed(http.StatusUnsupportedMediaType, "the body is %s: must be %s, or empty",
			quote(r.Header.Get("Content-Type")), form)
	}
	fault = p.read(string(body), known)
	return p, fault
}

// read reads the parameters in a query or form, which is encoded as
// application/x-www-form-urlencoded (URL standard).
func (p *parameters) read(query string, known []string) *problem {
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		name, errName := url.QueryUnescape(name)
		value, errValue := url.QueryUnescape(value)
		_, twice := (*p)[name]
		switch {
		case errName != nil || errValue != nil:
			return failed(http.StatusBadRequest,
				"%s is not encoded as a query: two hexadecimal digits must follow each %%", quote(pair))
		case !slices.Contains(known, name):
			fault := badParameter(name, value, cmp.Or(strings.Join(known, ", "), "no parameters"))
			fault.Detail = quote(name) + " is unknown here"
			return fault
		case twice:
			return badParameter(name, value, "given once")
		case *p == nil:
			*p = make(parameters)
		}
		(*p)[name] = value
	}
	return nil
}

// number returns an integer parameter, or 0 if it is not given. The integer must be between from
// and to.
func (p parameters) number(name string, from, to int) (int, *problem) {
	value, given := p[name]
	if !given {
		return 0, nil
	}
	n, err := strconv.ParseUint(value, 10, 31)
	if err != nil || int(n) < from || int(n) > to {
		return 0, badParameter(name, value, "an integer from "+strconv.Itoa(from)+" to "+strconv.Itoa(to))
	}
	return int(n), nil
}

// time returns a parameter that is a time, in milliseconds since 1970-01-01 UTC. It must be given.
func (p parameters) time(name string) (milli uint64, fault *problem) {
	value := p[name]
	if milli, err := strconv.ParseUint(value, 10, 63); err == nil {
		return milli, nil
	}
	if t, ok := parseTime(value); ok && t.UnixMilli() >= 0 {
		return uint64(t.UnixMilli()), nil
	}
	return 0, badParameter(name, value, "milliseconds since 1970, at most "+strconv.FormatInt(math.MaxInt64, 10)+
		", or a later time such as 2026-11-21T09:30:00.000Z, with %2B for a +")
}

// parseTime reads a time in RFC 3339, whose letters may be in either case, and whose last second of a day in
// UTC may be 60, a leap second: it is the first second of the next day, as for POSIX.
func parseTime(value string) (t time.Time, ok bool) {
	value = strings.ToUpper(value)
	if !rfc3339.MatchString(value) { // time.Parse takes more, such as a comma
		return t, false
	}
	const second = len("2006-01-02T15:04:")
	leap := value[second:second+2] == "60"
	if leap {
		value = value[:second] + "59" + value[second+2:]
	}
	t, err := time.Parse(time.RFC3339, value)
	if leap {
		return t.Add(time.Second), t.UTC().Hour() == 23 && t.UTC().Minute() == 59 // on an error, t is zero
	}
	return t, err == nil
}

var rfc3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// The media types of answers.
const (
	text   = "text/plain; charset=utf-8"
	asJSON = "application/json"
	octets = "application/octet-stream"

	asProblem = "application/problem+json"
	html      = "text/html; charset=utf-8"
)

// negotiate returns the offered media type that the caller prefers, or, if it prefers several
// equally, the first of them (RFC 9110, section 12.5.1).
func negotiate(r *http.Request, offered []string) (string, *problem) {
	list := strings.Join(r.Header["Accept"], ",")
	if list == "" {
		return offered[0], nil
	}
	best, most := "", 0.0
	for _, media := range offered {
		if q := quality(list, media); q > most {
			best, most = media, q
		}
	}
	if best == "" {
		var all []string
		for _, media := range offered {
			all = append(all, bare(media))
		}
		allowed := strings.Join(all, ", ")
		fault := failed(http.StatusNotAcceptable, "Accept is %s: must allow one of %s", quote(list), allowed)
		fault.Allowed = allowed
		return "", fault
	}
	return best, nil
}

// quality returns the caller's weight for a media type, from 0 to 1: the weight of the most
// specific range that matches.
func quality(accept, media string) (q float64) {
	media = bare(media)
	kind, _, _ := strings.Cut(media, "/")
	ranges, rank := []string{"*/*", kind + "/*", media}, -1
	for element := range strings.SplitSeq(accept, ",") {
		among, weight, _ := strings.Cut(element, ";")
		if r := slices.Index(ranges, strings.ToLower(strings.TrimSpace(among))); r > rank {
			q, rank = weightOf(weight), r
		}
	}
	return q
}

// weightOf returns the parameter q, or 1 if it is missing or invalid.
func weightOf(parameters string) float64 {
	for p := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(p, "=")
		if strings.EqualFold(strings.TrimSpace(name), "q") {
			if q, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil && q >= 0 {
				return min(q, 1)
			}
		}
	}
	return 1
}

// bare returns a media type without its parameters.
func bare(media string) string {
	media, _, _ = strings.Cut(media, ";")
	return media
}

// Header values in the form that package net/http uses, made once.
var (
	noStore     = []string{"no-store"}
	mediaHeader = map[string][]string{text: {text}, asJSON: {asJSON}, octets: {octets}}
)

// problem describes an error of a request or of the node, as in RFC 9457. Parameter names a
// wrong parameter, and Allowed describes what it may be; Reason is the atom that an Erlang
// caller gets.
type problem struct {
	Type      string `json:"type"` // a link to a description of this kind of problem
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail"`
	Parameter string `json:"parameter,omitempty"`
	Allowed   string `json:"allowed,omitempty"`
	Reason    string `json:"reason,omitempty"`

	retry   time.Duration // when to try again; 0 if the problem does not pass by itself
	counted bool          // an id server has counted it, or it answers /readyz
}

// document begins the links to problems that have a type of their own.
const document = "/openapi.yaml#"

func failed(status int, format string, args ...any) *problem {
	return &problem{
		Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, args...),
	}
}

// busy returns the problem for a request that there is currently no room for.
func busy(retry time.Duration, format string, args ...any) *problem {
	p := failed(http.StatusServiceUnavailable, format, args...)
	p.retry = retry
	return p
}

// badParameter returns the problem for a parameter whose value is not allowed.
func badParameter(name, value, allowed string) *problem {
	p := failed(http.StatusBadRequest, "%s is %s: must be %s", name, quote(value), allowed)
	p.Type, p.Title = document+"bad-parameter", "A parameter is wrong"
	p.Parameter, p.Allowed, p.Reason = name, allowed, idserver.Reason(idserver.ErrBadArgument)
	return p
}

// quote quotes untrusted text, cut to a length that fits on a line.
func quote(text string) string {
	const shown = 64
	if len(text) > shown {
		return fmt.Sprintf("%q... (%d bytes)", text[:shown], len(text))
	}
	return strconv.Quote(text)
}

// write answers the request with the problem.
func (p *problem) write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", asProblem)
	h.Set("Cache-Control", "no-store")
	if p.retry > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(p.retry.Seconds()))))
	}
	w.WriteHeader(p.Status)
	json.NewEncoder(w).Encode(p)
}

func writeJSON(w http.ResponseWriter, v any) *problem {
	h := w.Header()
	h["Content-Type"], h["Cache-Control"] = mediaHeader[asJSON], noStore
	json.NewEncoder(w).Encode(v)
	return nil
}
