// Package idhttp is flake's HTTP door. A request becomes a call of a method of
// [idserver.Server], and the result becomes the body of the answer. The endpoints are
// described in openapi.yaml, which is served as /openapi.yaml.
//
// A request passes through these files:
//
//	door.go       the limits on the number of connections, on times and on sizes
//	listener.go   the connections, and which of them make room for new ones
//	admit.go      the host, the token, other sites' pages, the method; counts what is refused
//	request.go    parameters, the media type of the answer, problems (RFC 9457)
//	ids.go        a method of the generator's id server
//	encode.go     runs of ids as text, JSON or bytes, a buffer at a time
//
// Other files show the state of the node: metrics.go to Prometheus, health.go to other
// programs, and page.go, state.go, figures.go and inspect.go to people. samples.go and
// recent.go keep what happened recently.
//
// Start at [New]. HTTP/2 is not supported, because each request has one answer.
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
	"github.com/flake-go/flake/node/tlslimit"
	"github.com/flake-go/flake/node/traffic"
)

// The limits on requests over HTTP.
const (
	// MaxConnections bounds the connections on which a request is being answered. A request
	// counts once it has arrived and is allowed, but not without a required token.
	// MaxConnectionsPerHost bounds those of one host, except loopback. Beyond these limits, a
	// request is answered with 503, unless it is for /healthz or /readyz.
	MaxConnections        = 512
	MaxConnectionsPerHost = 256

	// SpareConnections is the number of other connections that may be open. When one more is
	// opened, the connection that has been silent the longest is closed. If the host of the new
	// one has too many, only its connections are considered.
	SpareConnections = 256

	// MaxStreams bounds the pages that follow events at one time; one more is answered with 503.
	MaxStreams = 32

	// MaxHeader bounds the bytes of a request's line and header, to which net/http adds 4096.
	// A larger request is answered with 431.
	MaxHeader = 8 << 10

	// MaxBody bounds the bytes of a body; a larger one is answered with 413.
	MaxBody = 4 << 10

	// turnTime limits how long a request for many ids may wait for its turns. After that it is
	// answered with 503.
	turnTime = writeTime / 2

	// readTime limits how long a request may take to arrive, writeTime how long the caller may
	// take to read the answer, and idleTime how long a connection may then wait for the next
	// request.
	readTime  = 10 * time.Second
	writeTime = 30 * time.Second
	idleTime  = 2 * time.Minute
)

// Options are the settings of a Door.
type Options struct {
	// Generators must not be empty. The first is the default if the parameter generator is not
	// given.
	Generators []Generator

	Node   Node   // the node around the generators
	Access Access // in effect until SetAccess

	// TLS, if not nil, returns the settings for the next connection, with their certificate first.
	TLS func() *tls.Config

	// Connections bounds the open connections. If 0, it is MaxConnections plus
	// SpareConnections.
	Connections int

	Recent *Recent      // the lines of the log that the page shows; if nil, only the start
	Log    *slog.Logger // if nil, slog.Default
}

// Generator is an id server and its name.
type Generator struct {
	Name   string
	Server *idserver.Server
	Saves  *latency.Histogram // how long saves of the mark took; nil if they are not recorded

	// Running reports whether Erlang nodes can reach the id server. It is nil if they need not
	// reach it.
	Running func() bool
}

// Door is an [http.Handler] together with the state needed to serve it on listeners.
type Door struct {
	Options
	started time.Time
	mux     http.ServeMux
	http    http.Server
	metrics *metrics
	streams chan struct{} // one element per page that follows events
	scrapes scrapes
	samples samples
	refused atomic.Uint64 // requests that did not become calls
	peers   peerRates
	steps   stepCounts
	took    latency.Histogram // of requests under /v1/
	onsets  onsets

	access    atomic.Pointer[Access]
	draining  atomic.Bool // set by Drain
	profiling sync.Mutex  // held while a profile is taken, so that there is one at a time

	ctx    context.Context // canceled to end the events
	cancel context.CancelFunc
	limits *limits // set by Serve
	served sync.WaitGroup
}

// New returns a door that does not listen yet.
func New(o Options) *Door {
	o.Log, o.Recent = cmp.Or(o.Log, slog.Default()), cmp.Or(o.Recent, new(Recent))
	if o.Node.Traffic == nil {
		o.Node.Traffic = func() (none traffic.Counts) { return none }
	}
	d := &Door{
		Options: o,
		started: time.Now(),
		streams: make(chan struct{}, MaxStreams),
		scrapes: scrapes{turns: make(chan struct{}, maxScrapes)},
		samples: samples{next: make(chan struct{})},
		onsets:  onsets{all: make([]onset, len(o.Generators))},
	}
	d.SetAccess(o.Access)
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.metrics = newMetrics(d)
	d.routes()
	d.http = http.Server{
		Handler:           d,
		ReadHeaderTimeout: readTime,
		ReadTimeout:       readTime,
		WriteTimeout:      writeTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    MaxHeader,
		ConnState:         noteState,
		ConnContext:       noteConn,
		ErrorLog:          log.New(httpLog{o.Log, o.TLS}, "", 0),
	}
	d.http.RegisterOnShutdown(d.cancel)
	return d
}

// Serve serves two listeners until Stop, which closes them. The metrics listener, if not nil,
// answers only /metrics, /healthz and /readyz, needs no token, and shares the limits of l.
func (d *Door) Serve(l, metrics net.Listener) {
	all := cmp.Or(d.Connections, MaxConnections+SpareConnections)
	spare := min(SpareConnections, all/3)
	limits := newLimits(all-spare, min(MaxConnectionsPerHost, all-spare), spare)
	limits.secure, limits.log = d.TLS != nil, d.Log
	d.limits = limits
	d.Recent.note(time.Now(), slog.LevelInfo, "started", "version="+d.Node.Version)
	d.served.Go(d.sample)
	d.serve(&limited{l, false, limits})
	if metrics != nil {
		d.serve(&limited{metrics, true, limits})
	}
}

func (d *Door) serve(l net.Listener) {
	if d.TLS != nil {
		l = tls.NewListener(l, &tls.Config{
			GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return d.TLS(), nil },
		})
	}
	d.served.Go(func() {
		if err := d.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			d.Log.Error("HTTP stopped", "err", err)
		}
	})
}

// Stop ends Serve. It stops accepting connections, lets current requests finish until ctx ends, and then
// closes all connections.
func (d *Door) Stop(ctx context.Context) {
	var closing sync.WaitGroup
	d.limits.linger(&closing)
	d.http.Shutdown(ctx)
	d.http.Close()
	d.limits.linger(nil)
	closing.Wait()
	d.served.Wait()
}

// ServeHTTP answers a request and counts the answer.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := answers.Get().(*answer)
	*a = answer{ResponseWriter: w}
	// A request with both Content-Length and Transfer-Encoding, which a proxy may have read differently, must
	// be the last on its connection (RFC 9112, section 6.1). net/http hides its Content-Length.
	if d.draining.Load() || len(r.TransferEncoding) > 0 {
		w.Header().Set("Connection", "close")
	}
	began := time.Now()
	d.mux.ServeHTTP(a, r)
	if strings.HasPrefix(r.Pattern, "/v1/") {
		d.took.Add(time.Since(began), 1)
	}
	d.metrics.count(r.Pattern, a.status)
	answers.Put(a)
}

// httpLog logs all lines of net/http with the same message. As messages, the lines would all
// differ, because they contain the caller's address, and a log that limits each message would let
// all of them through.
type httpLog struct {
	*slog.Logger
	tls func() *tls.Config // or nil
}

func (l httpLog) Write(line []byte) (int, error) {
	err := errors.New(string(bytes.TrimSpace(line)))
	if l.tls != nil && bytes.Contains(line, []byte("TLS handshake")) {
		err = tlslimit.Explain(err, l.tls())
	}
	l.Warn("trouble with an HTTP connection", "err", err)
	return len(line), nil
}
