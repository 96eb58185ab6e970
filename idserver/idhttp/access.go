package idhttp

import (
	"net/http"
	"net/http/pprof"
	"strconv"
	"time"
)

// Access says who is answered what. It can change while the server runs.
type Access struct {
	// Token is what callers must send; empty: nothing.
	Token string

	// AnyHost has requests answered for any host that they name. Without it, and
	// without a token, it must be a name or address of the loopback: another
	// one is of a page elsewhere that has its name resolved to this machine.
	AnyHost bool

	// Pprof has profiles of the program answered, if there is a token.
	Pprof bool
}

// SetAccess replaces the access for requests that come from now on.
func (s *Server) SetAccess(a Access) { s.access.Store(&a) }

// Drain tells whoever asks whether the node is ready that it is not, as it is about to
// end. All else is answered as before, each time on a connection that is closed then, so
// that the caller's next one may lead to another node.
func (s *Server) Drain() { s.draining.Store(true) }

// draining is what readyz says after Drain.
func draining() *problem {
	return noIDs("stopping", "the node is about to end: ids are still to be had, but ask another", time.Second)
}

// MaxProfile bounds how long a profile may take. There is one at a time; one more is
// answered 503.
const MaxProfile = time.Minute

// profile answers with a profile of the program. It does not show the command line,
// which may have the cookie in it.
func (s *Server) profile(w http.ResponseWriter, r *http.Request) *problem {
	if a := s.access.Load(); !a.Pprof || a.Token == "" {
		return missing(r)
	}
	if fromElsewhere(r) { // with the token that the browser knows
		return failed(http.StatusForbidden, "profiles are not taken for pages of other sites; ask with Authorization: Bearer TOKEN")
	}
	if text := r.FormValue("seconds"); text != "" {
		if n, err := strconv.Atoi(text); err != nil || n < 1 || n > int(MaxProfile.Seconds()) {
			return badParameter("seconds", text, "a whole number from 1 to 60")
		}
	}
	select {
	case s.profiling <- struct{}{}:
		defer func() { <-s.profiling }()
	default:
		fault := failed(http.StatusServiceUnavailable, "a profile is being taken already")
		fault.retry = time.Second
		return fault
	}
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
