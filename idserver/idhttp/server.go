// Package idhttp is flake's door for HTTP: a URL becomes a call of a method of
// [idserver.Server], and what that returns a body. What can be asked is said in
// openapi.yaml, beside this file and served as /openapi.yaml.
//
// A request passes
//
//	server.go     the listener: how many connections, how long, how large
//	door.go       the host, the token, other sites' pages, the method, the count
//	parameters.go query and form, each parameter known and given once
//	accept.go     the media type of the answer (RFC 9110, section 12.5.1)
//	ids.go ...    to a method of the generator's
//	encode.go     runs of ids as text, JSON or bytes, a buffer at a time
//	problem.go    or what is wrong, and what is allowed (RFC 9457)
//
// Besides that it shows what the node is: metrics.go for Prometheus, report.go for other
// programs, page.go and events.go for people. lately.go, takers.go, steps.go and recent.go
// keep what they tell of the last while.
//
// Start at [New]. Not supported: HTTP/2, as one request is one answer here.
package idhttp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/node/latency"
)

// Options say what is served.
type Options struct {
	// Generators are those that can be asked, one or more; the first is asked
	// unless the parameter generator names another.
	Generators []Generator

	// Node tells of the node around them.
	Node Node

	// Access is what it is at first; see SetAccess.
	Access Access

	// TLS, unless nil, gives the settings for the next connection.
	TLS func() *tls.Config

	// Connections are how many may be open at a time; 0: MaxConnections and
	// SpareConnections.
	Connections int

	Recent *Recent      // what the page shows of the log, or nil
	Log    *slog.Logger // nil: slog.Default
}

// Generator is one that can be asked by its name.
type Generator struct {
	Name   string
	Server *idserver.Server
	Saves  *Saves // or nil: none are counted

	// Running tells whether Erlang nodes reach it, too; nil: that is not asked.
	Running func() bool
}

// Server is an [http.Handler] and what it needs to serve a listener.
type Server struct {
	Options
	started  time.Time
	mux      http.ServeMux
	http     http.Server
	metrics  *metrics
	streams  chan struct{} // a place for each that follows events
	history  *history
	errors   *history // of calls and of callers refused
	lately   lately
	takers   takers
	steps    steps
	took     latency.Histogram // of requests for ids, and about them
	troubles troubles

	access    atomic.Pointer[Access]
	draining  atomic.Bool
	profiling chan struct{} // a place for one

	ctx    context.Context // ends with the events
	cancel context.CancelFunc
	served sync.WaitGroup
}

// New returns a server that does not listen yet.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	s := &Server{Options: o, started: time.Now(), streams: make(chan struct{}, MaxStreams),
		history: newHistory(len(o.Generators)), errors: newHistory(2), troubles: troubles{all: make([]trouble, len(o.Generators))}}
	s.SetAccess(o.Access)
	s.profiling = make(chan struct{}, 1)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.metrics = newMetrics(s)
	s.routes()
	s.http = http.Server{
		Handler:           s,
		ReadHeaderTimeout: readTime,
		ReadTimeout:       readTime,
		WriteTimeout:      writeTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    MaxHeader,
		ConnState:         noteState,
		ConnContext:       noteConn,
		ErrorLog:          log.New(httpLog{o.Log}, "", 0),
	}
	s.http.RegisterOnShutdown(s.cancel)
	return s
}

// Serve serves a listener, which it takes over, until Stop.
func (s *Server) Serve(l net.Listener) {
	all := cmp.Or(s.Connections, MaxConnections+SpareConnections)
	spare := min(SpareConnections, all/3)
	limited := limitListener(l, all-spare, min(MaxConnectionsPerHost, all-spare), spare)
	limited.secure = s.TLS != nil
	l = limited
	if s.TLS != nil {
		l = tls.NewListener(l, &tls.Config{
			GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.TLS(), nil },
		})
	}
	if s.Recent != nil {
		s.Recent.note(time.Now(), slog.LevelInfo, "started", "version="+s.Node.Version)
	}
	s.served.Go(s.sample)
	s.served.Go(func() {
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.Log.Error("HTTP has ended", "err", err)
		}
	})
}

// Stop lets nobody in any more, has the requests under way answered until the
// end of ctx, and ends what is left.
func (s *Server) Stop(ctx context.Context) {
	s.http.Shutdown(ctx)
	s.http.Close()
	s.served.Wait()
}

// ServeHTTP answers a request and counts the answer.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := answers.Get().(*answer)
	*a = answer{ResponseWriter: w}
	if s.draining.Load() {
		w.Header().Set("Connection", "close")
	}
	began := time.Now()
	s.mux.ServeHTTP(a, r)
	if strings.HasPrefix(r.Pattern, "/v1/") {
		s.took.Add(time.Since(began), 1)
	}
	s.metrics.count(r.Pattern, a.status)
	answers.Put(a)
}

// httpLog logs all that net/http has to say under one message: its lines have the
// caller's address in them, and a log that is limited by message would let them
// all through.
type httpLog struct{ *slog.Logger }

func (l httpLog) Write(line []byte) (int, error) {
	l.Warn("trouble with an HTTP connection", "err", string(bytes.TrimSpace(line)))
	return len(line), nil
}
