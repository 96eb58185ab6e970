package idhttp

import (
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/flake-go/flake/node/latency"
)

// metrics are what Prometheus is told. Only requests over HTTP are counted here;
// all else is asked for when Prometheus asks, so that it costs a call nothing.
type metrics struct {
	requestsTotal *prometheus.CounterVec
	ok            map[string]prometheus.Counter // of requestsTotal, by endpoint, looked up once
	handler       http.Handler
}

func newMetrics(s *Server) *metrics {
	m := &metrics{requestsTotal: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "flake_http_requests_total", Help: "Requests over HTTP, by the endpoint and the status they were answered with.",
	}, []string{"endpoint", "code"}), ok: make(map[string]prometheus.Counter)}
	for _, e := range endpoints {
		m.ok[e.path] = m.requestsTotal.WithLabelValues(e.path, "200")
	}
	r := prometheus.NewRegistry()
	r.MustRegister(
		m.requestsTotal,
		collector{s},
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	for _, g := range s.Generators {
		if g.Saves != nil {
			prometheus.WrapRegistererWith(prometheus.Labels{"generator": g.Name}, r).MustRegister(g.Saves.histogram)
		}
	}
	m.handler = promhttp.HandlerFor(r, promhttp.HandlerOpts{
		ErrorLog:            prometheusLog{s},
		MaxRequestsInFlight: maxScrapes,
	})
	return m
}

// maxScrapes bounds the requests for metrics at a time; one more is answered 503.
const maxScrapes = 4

type prometheusLog struct{ *Server }

func (l prometheusLog) Println(v ...any) { l.Log.Error("metrics cannot be collected", "err", v) }

func (s *Server) showMetrics(w http.ResponseWriter, r *http.Request) *problem {
	if _, fault := readParameters(r, nil); fault != nil {
		return fault
	}
	s.metrics.handler.ServeHTTP(w, r)
	return nil
}

// answer is a ResponseWriter that remembers the status it was given; 0, which is
// 200, if none was.
type answer struct {
	http.ResponseWriter
	status int
}

var answers = sync.Pool{New: func() any { return new(answer) }}

func (a *answer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap is for [http.ResponseController].
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// count counts an answer. What http.ServeMux answers by itself is counted at the
// endpoint that it found, else nowhere.
func (m *metrics) count(endpoint string, status int) {
	ok, known := m.ok[endpoint]
	switch {
	case !known:
		m.count(nowhere, status)
	case status == 0:
		ok.Inc()
	default:
		m.requestsTotal.WithLabelValues(endpoint, strconv.Itoa(status)).Inc()
	}
}

// Saves is how long it took to make the time durable.
type Saves struct{ histogram prometheus.Histogram }

// NewSaves returns counts that begin now.
func NewSaves() *Saves {
	return &Saves{prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "flake_mark_save_seconds",
		Help:    "How long it took to make the mark durable, tried in vain included.",
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 3},
	})}
}

// Observe counts one time.
func (s *Saves) Observe(took time.Duration) { s.histogram.Observe(took.Seconds()) }

// collector asks the generators and the node.
type collector struct{ *Server }

// family is a kind of figure.
type family struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func gauge(name, help string, labels ...string) family {
	return family{prometheus.NewDesc("flake_"+name, help, labels, nil), prometheus.GaugeValue}
}

func counter(name, help string, labels ...string) family {
	return family{prometheus.NewDesc("flake_"+name+"_total", help, labels, nil), prometheus.CounterValue}
}

var (
	info     = gauge("info", "What the node is; always 1.", "node", "version")
	build    = gauge("build_info", "What the node was built from; always 1.", "version", "commit", "go")
	ready    = gauge("ready", "1 if the generator can hand out ids, else 0.", "generator")
	troubled = gauge("trouble", "1 for the reason why the generator cannot hand out ids, or soon will not be able to; else there is none.", "generator", "reason")
	ids      = counter("ids", "Ids handed out or leased.", "generator")
	calls    = counter("calls", "Calls, by their kind and what they came to.", "generator", "kind", "result")
	waits    = counter("waits", "Waits for the next tick, as the ids of one were used up.", "generator")
	refusals = counter("refusals", "Calls answered with an error.", "generator")
	lastID   = gauge("last_id_timestamp_seconds", "Time of the last id.", "generator")
	origin   = gauge("worker_info", "Where the worker came from; always 1.", "generator", "from")
	left     = gauge("worker_left_seconds", "How long ids go on with the worker if that is not extended.", "generator")
	failing  = gauge("worker_extension_failed", "1 if the last attempt to extend how far ids go with the worker failed, else 0.", "generator")
	ahead    = gauge("mark_ahead_seconds", "How far the durable mark is ahead of the clock; at 0 there are no ids.", "generator")
	saved    = gauge("mark_saved_timestamp_seconds", "When the mark was last made durable.", "generator")

	connections = gauge("connections", "Connected nodes.")
	connected   = counter("connections_established", "Handshakes that came to a connection.")
	received    = counter("received_bytes", "Bytes from other nodes.")
	sent        = counter("sent_bytes", "Bytes to other nodes.")
	handshakes  = counter("handshake_failures", "Handshakes that came to nothing, by reason.", "reason")
	clockSteps  = counter("clock_steps", "Times that the clock of the machine was set, by more than a quarter of a second.", "direction")
	certificate = gauge("certificate_left_seconds", "How long the certificate is valid yet.", "door")
	closes      = counter("hostile_closes", "Connections ended for what the peer did or did not, by reason.", "reason")
)

var took = prometheus.NewDesc("flake_call_seconds",
	"How long answers to calls took, from when the call had arrived to when the answer was written.", []string{"door"}, nil)

// tellLatency tells how long answers took at a door.
func tellLatency(ch chan<- prometheus.Metric, door string, c latency.Counts) {
	within, n := make(map[float64]uint64), uint64(0)
	for i, bound := range latency.Bounds {
		n += c.Calls[i]
		within[bound.Seconds()] = n
	}
	ch <- prometheus.MustNewConstHistogram(took, c.Total(), c.Sum, within, door)
}

// Describe tells nothing: what is collected is told as it comes.
func (collector) Describe(chan<- *prometheus.Desc) {}

func (c collector) Collect(ch chan<- prometheus.Metric) {
	tell := func(f family, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(f.desc, f.kind, value, labels...)
	}
	now := time.Now()
	tell(info, 1, c.Node.Name, c.Node.Version)
	tell(build, 1, c.Node.Version, c.Node.Commit, runtime.Version())
	for door, end := range c.certificates() {
		tell(certificate, end.Sub(now).Seconds(), door)
	}
	back, forward := c.steps.counts()
	tell(clockSteps, float64(back), "back")
	tell(clockSteps, float64(forward), "forward")
	for i := range c.Generators {
		c.Generators[i].tell(now, tell)
	}
	t := c.traffic()
	for door, counts := range c.latencies(t) {
		tellLatency(ch, doors[door], counts)
	}
	tell(connections, float64(t.Connections))
	tell(connected, float64(t.Connected))
	tell(received, float64(t.Received))
	tell(sent, float64(t.Sent))
	for reason, n := range t.HandshakeFailures {
		tell(handshakes, float64(n), reason)
	}
	for reason, n := range t.Closes {
		tell(closes, float64(n), reason)
	}
}

func (g *Generator) tell(now time.Time, tell func(family, float64, ...string)) {
	reason, _ := g.trouble()
	tell(ready, oneIf(reason == ""), g.Name)
	if reason != "" {
		tell(troubled, 1, g.Name, reason)
	}
	stats := g.Server.Stats()
	tell(ids, float64(stats.IDs), g.Name)
	tell(waits, float64(stats.Waits), g.Name)
	tell(refusals, float64(stats.Refusals), g.Name)
	for _, c := range stats.Calls {
		tell(calls, float64(c.Calls), g.Name, c.Kind, c.Result)
	}
	milli, _ := g.Server.IDs.Last()
	tell(lastID, float64(milli)/1000, g.Name)
	if mark := g.Server.IDs.Mark(); !mark.IsZero() {
		tell(ahead, mark.Sub(now).Seconds(), g.Name)
		at, _ := g.Server.IDs.LastSaved()
		tell(saved, float64(at.UnixMilli())/1000, g.Name)
	}
	g.tellOrigin(now, tell)
}

func (g *Generator) tellOrigin(now time.Time, tell func(family, float64, ...string)) {
	o := g.Server.Origin()
	if o.From != "" {
		tell(origin, 1, g.Name, strings.ToValidUTF8(o.From, "?")) // as is wanted of labels, not of names of interfaces
	}
	if o.Until.IsZero() {
		return
	}
	tell(left, o.Until.Sub(now).Seconds(), g.Name)
	tell(failing, oneIf(o.Err != nil), g.Name)
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
