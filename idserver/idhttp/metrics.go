package idhttp

import (
	"bytes"
	"crypto/tls"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/node/latency"
)

// metrics are the metrics for Prometheus. Only HTTP requests are counted here. All other
// values are collected when Prometheus asks, so they add no cost to calls.
type metrics struct {
	requestsTotal *prometheus.CounterVec
	ok            map[string]prometheus.Counter // counters of requestsTotal with code 200, by endpoint
	handler       http.Handler
}

func newMetrics(d *Door) *metrics {
	m := &metrics{requestsTotal: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "flake_http_requests_total", Help: "Requests over HTTP, by endpoint and status.",
	}, []string{"endpoint", "code"}), ok: make(map[string]prometheus.Counter)}
	for _, e := range endpoints {
		m.ok[e.path] = m.requestsTotal.WithLabelValues(e.path, "200")
	}
	r := prometheus.NewRegistry()
	r.MustRegister(
		m.requestsTotal,
		collector{d},
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	m.handler = promhttp.HandlerFor(r, promhttp.HandlerOpts{ErrorLog: prometheusLog{d}})
	return m
}

const (
	// maxScrapes bounds the answers to requests for metrics that are made at the same time. Other
	// requests wait, for up to turnTime.
	maxScrapes = 4

	// maxUnread bounds the answers that are being written. One more ends the one that has waited
	// longest for its reader.
	maxUnread = 16
)

type prometheusLog struct{ *Door }

func (l prometheusLog) Println(v ...any) { l.Log.Error("cannot collect metrics", "err", v) }

// scrapes limits requests for metrics. An answer is made in memory, so that a caller that does not
// read takes no other caller's turn.
type scrapes struct {
	turns chan struct{} // one element per answer being made

	mu     sync.Mutex                 // guards unread
	unread []*http.ResponseController // of answers being written, the oldest first
}

// buffered is a ResponseWriter that keeps the answer in memory.
type buffered struct {
	header http.Header
	status int
	bytes.Buffer
}

func (b *buffered) Header() http.Header    { return b.header }
func (b *buffered) WriteHeader(status int) { b.status = status }

func (d *Door) showMetrics(w http.ResponseWriter, r *http.Request, _ parameters) *problem {
	select {
	case d.scrapes.turns <- struct{}{}:
	case <-r.Context().Done():
		return nil
	case <-time.After(turnTime):
		return busy(time.Second, "too many other requests for metrics")
	}
	b := &buffered{header: w.Header(), status: http.StatusOK}
	d.metrics.handler.ServeHTTP(b, r)
	<-d.scrapes.turns
	c := http.NewResponseController(w)
	d.scrapes.enter(c)
	defer d.scrapes.leave(c)
	w.Header().Set("Content-Length", strconv.Itoa(b.Len()))
	w.WriteHeader(b.status)
	w.Write(b.Bytes()) // an error means that the caller has hung up, or did not read
	return nil
}

func (s *scrapes) enter(c *http.ResponseController) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.unread) >= maxUnread {
		s.unread[0].SetWriteDeadline(time.Now())
		s.unread = s.unread[1:]
	}
	s.unread = append(s.unread, c)
}

func (s *scrapes) leave(c *http.ResponseController) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unread = slices.DeleteFunc(s.unread, func(other *http.ResponseController) bool { return other == c })
}

// answer is a ResponseWriter that remembers the status. If no status was set, it is 0, which
// means 200.
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

// count counts an answer. If http.ServeMux itself answers, the answer counts for the endpoint that
// it found, or for nowhere if it found none.
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

// collector collects the metrics of the generators and of the node.
type collector struct{ *Door }

// Describe sends nothing, so the metrics are checked only when they are collected.
func (collector) Describe(chan<- *prometheus.Desc) {}

func (c collector) Collect(ch chan<- prometheus.Metric) {
	s := sender(ch)
	now := time.Now()
	s.gauge("info", "Name and version of the node; always 1.", 1, "node", c.Node.Name, "version", c.Node.Version)
	s.gauge("build_info", "Build of the node; always 1.", 1,
		"version", c.Node.Version, "commit", c.Node.Commit, "go", runtime.Version())
	for door, settings := range map[string]func() *tls.Config{"erlang": c.Node.TLS, "http": c.TLS} {
		if settings != nil {
			s.gauge("certificate_left_seconds", "How long the certificate remains valid.",
				settings().Certificates[0].Leaf.NotAfter.Sub(now).Seconds(), "door", door)
		}
	}
	for direction, n := range map[string]*atomic.Uint64{"back": &c.steps.back, "forward": &c.steps.forward} {
		s.counter("clock_steps", "How often the clock of the machine was set by more than a quarter of a second.",
			n.Load(), "direction", direction)
	}
	for i := range c.Generators {
		c.Generators[i].collect(now, s)
	}
	t := c.Node.Traffic()
	for door, counts := range c.latencies(t) {
		s.histogram("call_seconds",
			"How long answers to calls took, from the arrival of the call to the writing of the answer.",
			counts, "door", doors[door])
	}
	s.gauge("connections", "Connected nodes.", float64(t.Connections))
	s.counter("connections_established", "Completed handshakes.", t.Connected)
	s.counter("received_bytes", "Bytes from other nodes.", t.Received)
	s.counter("sent_bytes", "Bytes to other nodes.", t.Sent)
	for reason, n := range t.HandshakeFailures {
		s.counter("handshake_failures", "Failed handshakes, by reason.", n, "reason", reason)
	}
	for reason, n := range t.Closes {
		s.counter("hostile_closes", "Connections closed because of peer behavior, by reason.", n, "reason", reason)
	}
}

func (g *Generator) collect(now time.Time, s sender) {
	of := []string{"generator", g.Name}
	_, err := g.trouble()
	s.gauge("ready", "1 if the generator can return ids, else 0.", oneIf(err == nil), of...)
	if err != nil {
		s.gauge("trouble", "1 for the reason why the generator cannot return ids, or soon will not be able to. "+
			"Absent if all is well.", 1, "generator", g.Name, "reason", idserver.Reason(err))
	}
	stats := g.Server.Stats()
	s.counter("ids", "Ids returned or leased.", stats.IDs, of...)
	s.counter("waits", "Waits for the next tick because all ids of a tick were used.", stats.Waits, of...)
	s.counter("refusals", "Calls answered with an error.", stats.Refusals, of...)
	for _, c := range stats.Calls {
		s.counter("calls", "Calls, by kind and result.", c.Calls,
			"generator", g.Name, "kind", c.Kind, "result", c.Result)
	}
	milli, _ := g.Server.IDs.Last()
	s.gauge("last_id_timestamp_seconds", "Time of the last id.", float64(milli)/1000, of...)
	if mark := g.Server.IDs.Mark(); !mark.IsZero() {
		s.gauge("mark_ahead_seconds", "How far the durable mark is ahead of the clock; ids stop at 0.",
			mark.Sub(now).Seconds(), of...)
		at, _ := g.Server.IDs.LastSaved()
		s.gauge("mark_saved_timestamp_seconds", "When the mark was last made durable.", float64(at.UnixMilli())/1000, of...)
	}
	if g.Saves != nil {
		var saves latency.Counts
		saves.Collect(g.Saves)
		s.histogram("mark_save_seconds",
			"How long it took to make the mark durable, including failed attempts.", saves, of...)
	}
	o := g.Server.Origin()
	if o.From != "" {
		from := strings.ToValidUTF8(o.From, "?") // labels must be UTF-8; interface names need not be
		s.gauge("worker_info", "Where the worker came from; always 1.", 1, "generator", g.Name, "from", from)
	}
	if !o.Until.IsZero() {
		s.gauge("worker_left_seconds", "How long the worker can be used unless its mark is extended.",
			o.Until.Sub(now).Seconds(), of...)
		s.gauge("worker_extension_failed", "1 if the last attempt to extend the mark of the worker failed, else 0.",
			oneIf(o.Err != nil), of...)
	}
}

// sender sends metrics, each with the names and values of its labels.
type sender chan<- prometheus.Metric

func (s sender) gauge(name, help string, value float64, labels ...string) {
	s.send(prometheus.GaugeValue, name, help, value, labels)
}

func (s sender) counter(name, help string, value uint64, labels ...string) {
	s.send(prometheus.CounterValue, name+"_total", help, float64(value), labels)
}

func (s sender) send(kind prometheus.ValueType, name, help string, value float64, labels []string) {
	desc, values := described(name, help, labels)
	s <- prometheus.MustNewConstMetric(desc, kind, value, values...)
}

func (s sender) histogram(name, help string, c latency.Counts, labels ...string) {
	within, n := make(map[float64]uint64), uint64(0)
	for i, bound := range latency.Bounds {
		n += c.Calls[i]
		within[bound.Seconds()] = n
	}
	desc, values := described(name, help, labels)
	s <- prometheus.MustNewConstHistogram(desc, c.Total(), c.Sum, within, values...)
}

func described(name, help string, labels []string) (desc *prometheus.Desc, values []string) {
	var names []string
	for label := range slices.Chunk(labels, 2) {
		names, values = append(names, label[0]), append(values, label[1])
	}
	return prometheus.NewDesc("flake_"+name, help, names, nil), values
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
