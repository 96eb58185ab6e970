package idhttp

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// An endpoint answers requests, or tells why not.
type endpoint struct {
	path    string // in the words of http.ServeMux
	methods []string
	open    bool // to callers without the token, and when all others are refused
	takes   bool // ids, which are then gone
	serve   func(*Server, http.ResponseWriter, *http.Request) *problem
}

var (
	reads = []string{http.MethodGet, http.MethodHead}
	takes = []string{http.MethodGet, http.MethodPost}
)

// nowhere is the endpoint of whatever has none.
const nowhere = "/"

var endpoints = []endpoint{
	{path: "/v1/ids", methods: takes, takes: true, serve: (*Server).ids},
	{path: "/v1/leases", methods: takes, takes: true, serve: (*Server).leases},
	{path: "/v1/ids/{id}", methods: reads, serve: (*Server).decompose},
	{path: "/v1/notional", methods: reads, serve: (*Server).notional},
	{path: "/v1/info", methods: reads, serve: (*Server).info},
	{path: "/healthz", methods: reads, open: true, serve: (*Server).healthz},
	{path: "/readyz", methods: reads, open: true, serve: (*Server).readyz},
	{path: "/metrics", methods: reads, serve: (*Server).showMetrics},
	{path: "/openapi.yaml", methods: reads, serve: (*Server).openAPI},
	{path: "/{$}", methods: reads, serve: (*Server).page},
	{path: "/take", methods: []string{http.MethodPost}, takes: true, serve: (*Server).take},
	{path: "/events", methods: []string{http.MethodGet}, serve: (*Server).events},
	{path: "/assets/{name}", methods: reads, serve: (*Server).asset},
	{path: "/debug/pprof/{name...}", methods: []string{http.MethodGet}, serve: (*Server).profile},
	{path: nowhere, serve: func(_ *Server, _ http.ResponseWriter, r *http.Request) *problem { return missing(r) }},
}

func missing(r *http.Request) *problem {
	return failed(http.StatusNotFound, "there is no %s; /openapi.yaml tells what there is", quote(r.URL.Path))
}

// challenges are of one scheme a line, as Chromium reads no more of it, and first
// the one for which a browser asks for a password, the token.
var challenges = []string{`Basic realm="flake"`, `Bearer realm="flake"`}

func (s *Server) routes() {
	for i := range endpoints {
		e := &endpoints[i]
		s.mux.HandleFunc(e.path, func(w http.ResponseWriter, r *http.Request) {
			fault := s.admit(e, r)
			if fault == nil {
				fault = readBody(r)
			}
			switch {
			case fault != nil:
				if r.ContentLength != 0 { // or net/http would wait for the body
					w.Header().Set("Connection", "close")
				}
			case !getsPlace(r):
				w.Header().Set("Connection", "close")
				if !e.open {
					fault = failed(http.StatusServiceUnavailable, "as many requests are being answered as may be")
					fault.retry = time.Second
				}
			}
			if fault == nil {
				fault = e.serve(s, w, r)
			}
			if fault == nil {
				return
			}
			switch fault.Status {
			case http.StatusUnauthorized:
				w.Header()["Www-Authenticate"] = challenges
			case http.StatusMethodNotAllowed:
				w.Header().Set("Allow", strings.Join(e.methods, ", "))
			}
			fault.write(w)
		})
	}
}

// admit says why a request may not go on to its endpoint.
func (s *Server) admit(e *endpoint, r *http.Request) *problem {
	switch a := s.access.Load(); {
	case a.Token == "" && !a.AnyHost && !isLoopback(r.Host):
		return failed(http.StatusMisdirectedRequest,
			"the host is %s: a name or address of the loopback wanted, or http.open = true in the configuration", quote(r.Host))
	case a.Token != "" && !e.open && !a.knows(r):
		return failed(http.StatusUnauthorized,
			"the token is wanted, as Authorization: Bearer TOKEN, or as the password of any user")
	case e.methods != nil && !slices.Contains(e.methods, r.Method):
		return failed(http.StatusMethodNotAllowed, "%s is not for %s", quote(r.Method), e.path)
	case e.takes && fromElsewhere(r):
		return failed(http.StatusForbidden, "ids are not handed out to pages of other sites; a program that is taken for a browser gets them by POST")
	}
	return nil
}

// fromElsewhere tells whether a request is, or may be, of another site's page. Over HTTP
// beyond the loopback browsers do not say what site it is of, but the origin of a POST; of a
// GET no more than that they are browsers. On the loopback older ones, such as Safari before
// 16.4, say no more either.
func fromElsewhere(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "cross-site"
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		return err != nil || u.Host != r.Host
	}
	_, withToken := bearer(r) // which no page has a browser send
	return r.Method == http.MethodGet && !withToken && strings.HasPrefix(r.UserAgent(), "Mozilla/")
}

// knows tells whether a request has the token. How long that takes tells nothing
// of the token.
func (a *Access) knows(r *http.Request) bool {
	_, given, ok := r.BasicAuth()
	if !ok {
		if given, ok = bearer(r); !ok {
			return false
		}
	}
	want, got := sha256.Sum256([]byte(a.Token)), sha256.Sum256([]byte(given))
	return subtle.ConstantTimeCompare(want[:], got[:]) == 1
}

// bearer returns the token of a request that has it in the way of RFC 6750.
func bearer(r *http.Request) (token string, ok bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(token), strings.EqualFold(scheme, "Bearer")
}

// isLoopback tells whether a Host header names the loopback.
func isLoopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, _ := netip.ParseAddr(host) // of what is none, one that is not the loopback
	return ip.Unmap().IsLoopback()
}
