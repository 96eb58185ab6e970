package idhttp

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flake-go/flake/idserver"
)

// Access determines which requests are answered. It can change while the door serves.
type Access struct {
	// Token, if not empty, must be sent by callers.
	Token string

	// AnyHost allows requests to name any host. If it is false and there is no token, the host
	// must be a loopback name or address. Otherwise another site could make its name resolve to
	// this machine, and its pages could read the answers.
	AnyHost bool

	// Pprof allows requests for profiles of the program, provided that there is a token.
	Pprof bool
}

// SetAccess sets the access for later requests.
func (d *Door) SetAccess(a Access) { d.access.Store(&a) }

// An endpoint answers requests to a path.
type endpoint struct {
	path       string // a pattern of http.ServeMux
	methods    []string
	parameters []string
	open       bool // it answers callers without the token, and when other endpoints are busy
	takes      bool // it takes ids, which are then never returned again
	calls      bool // a request is a call of an id server, which counts it
	unchecked  bool // it accepts any parameters
	serve      func(*Door, http.ResponseWriter, *http.Request, parameters) *problem
}

var (
	reads = []string{http.MethodGet, http.MethodHead}
	takes = []string{http.MethodGet, http.MethodPost}

	ofID       = []string{"base", "generator"}
	ofIDs      = []string{"n", "base", "meta", "generator"}
	ofNotional = []string{"from", "to", "base", "generator"}
)

// nowhere is the endpoint of unknown paths.
const nowhere = "/"

var endpoints = []endpoint{
	{path: "/v1/ids", methods: takes, parameters: ofIDs, takes: true, calls: true, serve: (*Door).ids},
	{path: "/v1/leases", methods: takes, parameters: ofIDs, takes: true, calls: true, serve: (*Door).leases},
	{path: "/v1/ids/{id}", methods: reads, parameters: ofID, calls: true, serve: (*Door).decompose},
	{path: "/v1/notional", methods: reads, parameters: ofNotional, calls: true, serve: (*Door).notional},
	{path: "/v1/info", methods: reads, serve: (*Door).info},
	{path: "/healthz", methods: reads, open: true, serve: (*Door).healthz},
	{path: "/readyz", methods: reads, parameters: []string{"generators"}, open: true, serve: (*Door).readyz},
	{path: "/metrics", methods: reads, serve: (*Door).showMetrics},
	{path: "/openapi.yaml", methods: reads, serve: (*Door).file},
	{path: "/{$}", methods: reads, parameters: []string{"id", "base", "generator"}, serve: (*Door).page},
	{path: "/take", methods: takes[1:], parameters: ofID[1:], takes: true, calls: true, serve: (*Door).take},
	{path: "/events", methods: takes[:1], serve: (*Door).events},
	{path: "/assets/{name}", methods: reads, serve: (*Door).file},
	{path: "/debug/pprof/{name...}", methods: takes[:1], unchecked: true, serve: (*Door).profile},
	{path: nowhere, unchecked: true, serve: (*Door).nowhere},
}

func (*Door) nowhere(_ http.ResponseWriter, r *http.Request, _ parameters) *problem {
	return missing(r)
}

func missing(r *http.Request) *problem {
	return failed(http.StatusNotFound, "%s does not exist; see /openapi.yaml", quote(r.URL.Path))
}

// challenges have one scheme per line, because Chromium reads only the first scheme on a line.
// The first scheme makes browsers ask for a password, which is the token.
var challenges = []string{`Basic realm="flake"`, `Bearer realm="flake"`}

func (d *Door) routes() {
	for i := range endpoints {
		e := &endpoints[i]
		d.mux.HandleFunc(e.path, func(w http.ResponseWriter, r *http.Request) {
			p, fault := d.handle(e, w, r)
			if fault == nil {
				return
			}
			d.note(e, r, p, fault)
			switch fault.Status {
			case http.StatusUnauthorized:
				w.Header()["Www-Authenticate"] = challenges
				if media, _ := negotiate(r, []string{asProblem, html}); media == html {
					unauthorized(w)
					return
				}
			case http.StatusMethodNotAllowed:
				w.Header().Set("Allow", strings.Join(e.methods, ", "))
			}
			fault.write(w)
		})
	}
}

// handle answers a request, or returns the problem to answer it with, and the parameters read until
// then.
func (d *Door) handle(e *endpoint, w http.ResponseWriter, r *http.Request) (p parameters, fault *problem) {
	fault = d.admit(e, r)
	var body []byte
	if fault == nil {
		body, fault = readBody(r)
	}
	if fault != nil {
		if r.ContentLength != 0 { // otherwise net/http would wait for the body
			w.Header().Set("Connection", "close")
		}
		return nil, fault
	}
	// A request without the token does not count, because strangers could fill the limits with requests
	// whose answers they do not read.
	if e.open && !d.access.Load().trusts(r) || !mayAnswer(r) {
		w.Header().Set("Connection", "close")
		if !e.open {
			return nil, busy(time.Second, "too many requests are being answered")
		}
	}
	if !e.unchecked {
		if p, fault = readParameters(r, body, e.parameters); fault != nil {
			return p, fault
		}
	}
	return p, e.serve(d, w, r, p)
}

// note counts and logs a refused request: as a call, or else as a caller. The id server has counted
// the calls that it refused itself.
func (d *Door) note(e *endpoint, r *http.Request, p parameters, fault *problem) {
	what := "HTTP call refused"
	switch {
	case fault.counted && fault.Status == http.StatusServiceUnavailable:
		return // the node's trouble has log lines of its own
	case fault.counted:
	case e.calls && slices.Contains(invalid, fault.Status):
		asked, unknown := d.asked(p)
		if unknown != nil {
			asked = d.Generators
		}
		asked[0].Server.Count(idserver.KindInvalid, idserver.ErrBadArgument)
	default:
		what = "HTTP caller refused"
		d.refused.Add(1)
	}
	var from net.Addr
	if c := connWith(r); c != nil {
		from = c.RemoteAddr()
	}
	d.Log.Warn(what, "request", e.path, "status", fault.Status, "address", from, "err", fault.Detail)
}

// invalid are the statuses of requests that are wrong in themselves.
var invalid = []int{
	http.StatusBadRequest, http.StatusNotAcceptable, http.StatusRequestEntityTooLarge,
	http.StatusUnsupportedMediaType,
}

// admit returns the reason why a request must not reach its endpoint, or nil.
func (d *Door) admit(e *endpoint, r *http.Request) *problem {
	metrics := ofMetrics(r)
	switch a := d.access.Load(); {
	case metrics && e.path != "/metrics" && !e.open:
		return missing(r)
	case hostMatters(a, metrics, r) && !isLoopback(r.Host):
		return failed(http.StatusMisdirectedRequest,
			"the host is %s: must be a loopback name or address, unless the configuration has http.open = true",
			quote(r.Host))
	case !e.open && !a.trusts(r):
		return failed(http.StatusUnauthorized,
			"the token is missing or wrong: send Authorization: Bearer TOKEN, or the token as the password of any user")
	case e.methods != nil && !slices.Contains(e.methods, r.Method):
		return failed(http.StatusMethodNotAllowed, "%s is not allowed for %s", quote(r.Method), e.path)
	case e.takes && crossSite(r):
		return failed(http.StatusForbidden,
			"pages of other sites get no ids; a program that looks like a browser can use POST")
	}
	return nil
}

// hostMatters reports whether another site's page could read the answer if the site's name
// resolved to this machine.
func hostMatters(a *Access, metrics bool, r *http.Request) bool {
	if at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); metrics && ok {
		return isLoopback(at.String())
	}
	return a.Token == "" && !a.AnyHost
}

// crossSite reports whether a request is, or may be, from another site's page. Over plain HTTP,
// except on loopback, browsers send no Sec-Fetch-Site, and Origin only with a POST. Older browsers,
// such as Safari before 16.4, do the same everywhere. A GET of this site's own page then has a
// Referer, which no other page can forge; without it, a GET shows only that it comes from a browser,
// so it may be from another site.
func crossSite(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "cross-site"
	}
	if from := cmp.Or(r.Header.Get("Origin"), r.Header.Get("Referer")); from != "" {
		u, err := url.Parse(from)
		return err != nil || u.Host != r.Host
	}
	_, withToken := bearer(r) // a page cannot make a browser send the Bearer scheme
	return r.Method == http.MethodGet && !withToken && strings.HasPrefix(r.UserAgent(), "Mozilla/")
}

// trusts reports whether a request has the token, or needs none.
func (a *Access) trusts(r *http.Request) bool { return a.Token == "" || ofMetrics(r) || a.knows(r) }

// knows reports whether a request contains the token. How long it takes does not depend on how
// much of the token is right.
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

// bearer returns the token that a request sends as RFC 6750 describes.
func bearer(r *http.Request) (token string, ok bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(token), strings.EqualFold(scheme, "Bearer")
}

// isLoopback reports whether a Host header has a loopback name or address.
func isLoopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, _ := netip.ParseAddr(host) // on an error the zero Addr, which is not loopback
	return ip.Unmap().IsLoopback()
}

// MaxProfile bounds how long a profile may take. Only one profile is taken at a time; a second
// request is answered with 503.
const MaxProfile = time.Minute

// profile answers with a profile of the program. It never shows the command line, which may
// contain the cookie.
func (d *Door) profile(w http.ResponseWriter, r *http.Request, _ parameters) *problem {
	if a := d.access.Load(); !a.Pprof || a.Token == "" {
		return missing(r)
	}
	if crossSite(r) { // the browser may send a remembered token
		return failed(http.StatusForbidden,
			"profiles are not taken for pages of other sites; send Authorization: Bearer TOKEN")
	}
	if text := r.FormValue("seconds"); text != "" {
		if n, _ := strconv.Atoi(text); n < 1 || n > int(MaxProfile.Seconds()) { // on an error, n is out of range too
			return badParameter("seconds", text, "an integer from 1 to 60")
		}
	}
	if !d.profiling.TryLock() {
		return busy(time.Second, "another profile is being taken")
	}
	defer d.profiling.Unlock()
	switch r.PathValue("name") {
	case "cmdline", "symbol":
		return missing(r)
	case "profile":
		pprof.Profile(w, r)
	case "trace":
		pprof.Trace(w, r)
	default:
		pprof.Index(w, r)
	}
	return nil
}
