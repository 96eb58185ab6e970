package idhttp

import (
	"net/http"
	"strconv"
	"strings"
)

// The media types of answers.
const (
	text   = "text/plain; charset=utf-8"
	asJSON = "application/json"
	octets = "application/octet-stream"
)

// negotiate picks what the caller likes best of what there is, the first of
// equals; RFC 9110, section 12.5.1.
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
		var there []string
		for _, media := range offered {
			there = append(there, bare(media))
		}
		fault := failed(http.StatusNotAcceptable, "Accept is %s: %s wanted", quote(list), strings.Join(there, ", "))
		fault.Allowed = strings.Join(there, ", ")
		return "", fault
	}
	return best, nil
}

// quality is how much a media type is liked, from 0 to 1: what the most specific
// range that it falls in says.
func quality(accept, media string) float64 {
	media = bare(media)
	kind, _, _ := strings.Cut(media, "/")
	q, rank := 0.0, 0
	for element := range strings.SplitSeq(accept, ",") {
		among, weight, _ := strings.Cut(element, ";")
		r := 0
		switch strings.ToLower(strings.TrimSpace(among)) {
		case media:
			r = 3
		case kind + "/*":
			r = 2
		case "*/*":
			r = 1
		}
		if r > rank {
			q, rank = weightOf(weight), r
		}
	}
	return q
}

// weightOf reads the parameter q; without one, or with one that is none, it is 1.
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

// bare is a media type without its parameters.
func bare(media string) string {
	media, _, _ = strings.Cut(media, ";")
	return media
}
