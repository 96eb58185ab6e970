package idhttp

import (
	"bytes"
	"errors"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxParameters is how many an endpoint has at most.
const maxParameters = 5

// parameters are those that an endpoint knows, and what was given for them.
type parameters struct {
	known []string
	value [maxParameters]string
	given [maxParameters]bool
}

// readBody reads the whole body. Only then the request takes the place of another.
func readBody(r *http.Request) *problem {
	if r.ContentLength == 0 {
		return nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, MaxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return failed(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", MaxBody)
	case err != nil:
		return failed(http.StatusBadRequest, "the body cannot be read: %v", err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

// readParameters reads those of the query and, of a POST, those of a form in the
// body.
func readParameters(r *http.Request, known []string) (parameters, *problem) {
	p := parameters{known: known}
	if fault := p.read(r.URL.RawQuery); fault != nil {
		return p, fault
	}
	if r.Method != http.MethodPost {
		return p, nil
	}
	const form = "application/x-www-form-urlencoded"
	body, _ := io.ReadAll(r.Body) // which readBody has read
	if len(body) == 0 {
		return p, nil
	}
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media != form {
		return p, failed(http.StatusUnsupportedMediaType, "the body is %s: %s wanted, or none",
			quote(r.Header.Get("Content-Type")), form)
	}
	return p, p.read(string(body))
}

// read takes the parameters of a query or form (application/x-www-form-urlencoded
// in the URL standard).
func (p *parameters) read(query string) *problem {
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		var errName, errValue error
		name, errName = url.QueryUnescape(name)
		value, errValue = url.QueryUnescape(value)
		i := slices.Index(p.known, name)
		switch {
		case errName != nil || errValue != nil:
			return failed(http.StatusBadRequest, "%s is not encoded as a query is: two hexadecimal digits wanted after each %%", quote(pair))
		case i < 0:
			fault := failed(http.StatusBadRequest, "%s is not known here", quote(name))
			fault.Type, fault.Title = document+"bad-parameter", "A parameter is wrong"
			fault.Parameter, fault.Reason = name, "badarg"
			if fault.Allowed = strings.Join(p.known, ", "); fault.Allowed == "" {
				fault.Allowed = "no parameters"
			}
			return fault
		case p.given[i]:
			return badParameter(name, value, "one value, and there is another")
		}
		p.value[i], p.given[i] = value, true
	}
	return nil
}

func (p *parameters) get(name string) (value string, given bool) {
	i := slices.Index(p.known, name)
	return p.value[i], p.given[i]
}

// number returns a whole number of a range, or otherwise if there is none.
func (p *parameters) number(name string, otherwise, from, to int) (int, *problem) {
	value, given := p.get(name)
	if !given {
		return otherwise, nil
	}
	n, err := strconv.ParseUint(value, 10, 31)
	if err != nil || int(n) < from || int(n) > to {
		return 0, badParameter(name, value, "a whole number from "+strconv.Itoa(from)+" to "+strconv.Itoa(to))
	}
	return int(n), nil
}

// time returns a time in milliseconds since 1970-01-01 UTC.
func (p *parameters) time(name string) (milli uint64, given bool, fault *problem) {
	value, given := p.get(name)
	if !given {
		return 0, false, nil
	}
	if milli, err := strconv.ParseUint(value, 10, 63); err == nil {
		return milli, true, nil
	}
	if t, err := time.Parse(time.RFC3339, value); err == nil && t.UnixMilli() >= 0 {
		return uint64(t.UnixMilli()), true, nil
	}
	return 0, true, badParameter(name, value, "milliseconds since 1970, at most "+strconv.FormatInt(math.MaxInt64, 10)+
		", or a time from then on such as 2026-11-21T09:30:00.000Z, with %2B for a +")
}
