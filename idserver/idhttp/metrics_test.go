package idhttp_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/idserver/idhttp"
	"github.com/flake-go/flake/idserver/idhttp/idhttptest"
	"github.com/flake-go/flake/internal/certstest"
	"github.com/flake-go/flake/node/latency"
)

// metricName matches the names of metrics in a PromQL expression.
var metricName = regexp.MustCompile(`\b(?:flake|process|go)_[a-z_]+\b`)

// notShown lists the metrics that do not change over time, or repeat others.
var notShown = []string{"flake_info", "flake_build_info", "flake_worker_info", "flake_last_id_timestamp_seconds",
	"flake_refusals_total", "flake_connections_established_total"}

// The dashboard uses only metrics that exist, and all of ours except notShown. docs/metrics.md
// lists them.
func TestDashboard(t *testing.T) {
	source, err := os.ReadFile("../../rel/files/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(source, &dashboard); err != nil {
		t.Fatal(err)
	}
	chapter, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	s := idhttptest.Door(t, "up")
	for i := range s.Generators {
		s.Generators[i].Saves = new(latency.Histogram)
	}
	s.Generators[0].Saves.Add(2*time.Second, 1)
	s.Node.TLS = certificate(time.Now())
	s = idhttp.New(s.Options)
	get(t, s, "/v1/ids")
	metrics := get(t, s, "/metrics")
	shown := notShown
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			for _, name := range metricName.FindAllString(target.Expr, -1) {
				shown = append(shown, strings.TrimSuffix(name, "_bucket"))
				if !regexp.MustCompile("(?m)^" + name + "[{ ]").MatchString(metrics) {
					t.Errorf("%s: there is no %s", p.Title, name)
				}
			}
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (flake_\w+) `).FindAllStringSubmatch(metrics, -1) {
		if !slices.Contains(shown, m[1]) {
			t.Errorf("no panel shows %s", m[1])
		}
		if !strings.Contains(string(chapter), "`"+m[1]+"`") {
			t.Errorf("docs/metrics.md does not list %s", m[1])
		}
	}
	if want := `flake_mark_save_seconds_sum{generator="flake"} 2`; !strings.Contains(metrics, want) {
		t.Errorf("there is no %s", want)
	}
}

// The metrics show the state and the counts of the node and its generators.
func TestMetrics(t *testing.T) {
	s := newHundreds(t, 0)
	s.Node = idhttptest.Door(t, "up").Node
	end := time.Now().Add(5e5 * time.Second) // so that the first digits of the time left are known
	s.Node.TLS = certificate(end)
	pair, err := tls.LoadX509KeyPair(certstest.NewCA(t, "ca").Issue("http", "localhost"))
	if err != nil {
		t.Fatal(err)
	}
	s.TLS = func() *tls.Config { return &tls.Config{Certificates: []tls.Certificate{pair}} }
	get(t, s, "/v1/ids")
	get(t, s, "/v1/ids?n=150")
	s.ServeHTTP(httptest.NewRecorder(), idsRequest("/v1/ids/none", ""))
	metrics := get(t, s, "/metrics")
	if strings.Contains(metrics, "flake_worker_") {
		t.Error("there are metrics of an unknown worker")
	}
	until, failed := time.Time{}, error(nil)
	s.Generators[0].Server.From = func() idserver.Origin {
		return idserver.Origin{From: "store", Until: until, Err: failed}
	}
	metrics = get(t, s, "/metrics")
	if !strings.Contains(metrics, `flake_worker_info{from="store",generator="flake"} 1`) ||
		strings.Contains(metrics, "flake_worker_left") {
		t.Error("the worker's origin is missing, or there is a time left without an end")
	}
	until = time.Now().Add(5e5 * time.Second) // so that the first digits of the time left are known
	left := regexp.MustCompile(`(?m)^flake_worker_left_seconds{generator="flake"} 4999\d\d\.`)
	if metrics := get(t, s, "/metrics"); !left.MatchString(metrics) ||
		!strings.Contains(metrics, `flake_worker_extension_failed{generator="flake"} 0`) {
		t.Error("the time left for the worker is missing")
	}
	failed = errors.New("no answer")
	if metrics := get(t, s, "/metrics"); !strings.Contains(metrics, `flake_worker_extension_failed{generator="flake"} 1`) {
		t.Error("the failed extension is missing")
	}
	s.Generators[0].Server.From = func() idserver.Origin { return idserver.Origin{From: "interface \xff"} }
	metrics = get(t, s, "/metrics")
	if !strings.Contains(metrics, `flake_worker_info{from="interface ?",generator="flake"} 1`) {
		t.Error("an interface name that is not UTF-8 is missing")
	}
	for _, want := range []string{
		`flake_info{node="flake@127.0.0.1",version="0.1.0"} 1`,
		`flake_build_info{commit="0123456",go="` + runtime.Version() + `",version="0.1.0"} 1`,
		`flake_clock_steps_total{direction="back"} 0`,
		`flake_clock_steps_total{direction="forward"} 0`,
		`flake_call_seconds_bucket{door="erlang",le="1e-05"} 0`,
		`flake_call_seconds_bucket{door="erlang",le="2.5e-05"} 8`,
		`flake_call_seconds_bucket{door="erlang",le="5"} 8`,
		`flake_call_seconds_sum{door="erlang"} 0.009`,
		`flake_call_seconds_count{door="http"} 3`,
		`flake_ready{generator="flake"} 1`,
		`flake_ids_total{generator="flake"} 151`,
		`flake_calls_total{generator="flake",kind="get",result="ok"} 1`,
		`flake_calls_total{generator="flake",kind="get_many",result="ok"} 1`,
		`flake_calls_total{generator="flake",kind="decompose",result="badarg"} 1`,
		`flake_refusals_total{generator="flake"} 1`,
		`flake_waits_total{generator="flake"} 7`,
		`flake_last_id_timestamp_seconds{generator="flake"} 1.795208692979e+09`,
		`flake_connections 2`,
		`flake_connections_established_total 3`,
		`flake_received_bytes_total 4`,
		`flake_sent_bytes_total 5`,
		`flake_handshake_failures_total{reason="wrong_cookie"} 6`,
		`flake_hostile_closes_total{reason="frame_too_long"} 7`,
	} {
		if !strings.Contains(metrics, want+"\n") {
			t.Errorf("there is no %s", want)
		}
	}
	for _, left := range []string{`{door="erlang"} 4999\d\d\.`, `{door="http"} [0-9]`} {
		if !regexp.MustCompile(`(?m)^flake_certificate_left_seconds` + left).MatchString(metrics) {
			t.Errorf("no certificate %s in %s", left, metrics)
		}
	}
	if strings.Contains(metrics, "flake_mark_ahead_seconds{") || strings.Contains(metrics, "flake_mark_saved") {
		t.Error("there is a mark of a generator that keeps none")
	}
	metrics = get(t, idhttptest.Door(t, "unsaved"), "/metrics")
	if !strings.Contains(metrics, "flake_mark_ahead_seconds{") ||
		!strings.Contains(metrics, `flake_mark_saved_timestamp_seconds{generator="orders"} 1000`+"\n") {
		t.Error("the mark is missing")
	}
	if want := `flake_trouble{generator="flake",reason="timestamp_not_saved"} 1` + "\n"; !strings.Contains(metrics, want) {
		t.Errorf("there is no %s", want)
	}
	if strings.Contains(metrics, "flake_certificate") {
		t.Error("there is an expiry time for a certificate that does not exist")
	}
}

// certificate returns TLS settings with a certificate that expires at end.
func certificate(end time.Time) func() *tls.Config {
	leaf := &x509.Certificate{NotAfter: end}
	return func() *tls.Config { return &tls.Config{Certificates: []tls.Certificate{{Leaf: leaf}}} }
}

// Each kind of answer has the headers for browsers and caches.
func TestHeaders(t *testing.T) {
	s := idhttptest.Door(t, "up")
	for _, tt := range []struct{ request, name, want string }{
		{"GET /", "Content-Security-Policy", "default-src 'none'; "},
		{"GET /", "X-Content-Type-Options", "nosniff"},
		{"GET /", "Referrer-Policy", "same-origin"},
		{"GET /", "Cache-Control", "no-store"},
		{"GET /v1/ids", "Cache-Control", "no-store"},
		{"GET /v1/ids/0000BCeSOTXmkQcK8Ru83s", "Cache-Control", "no-store"},
		{"GET /healthz", "Cache-Control", "no-store"},
		{"GET /healthz", "Content-Type", "text/plain"},
		{"GET /assets/page.js", "Cache-Control", "no-cache"},
		{"GET /assets/page.js", "X-Content-Type-Options", "nosniff"},
		{"GET /assets/page.js", "Content-Type", "text/javascript; charset=utf-8"},
		{"GET /assets/page.js", "ETag", `"`},
		{"POST /take", "Location", "/?id=0000"},
		{"POST /take?generator=orders", "Location", "/?generator=orders&id=0000"},
	} {
		method, url, _ := strings.Cut(tt.request, " ")
		w, r := httptest.NewRecorder(), httptest.NewRequest(method, url, nil)
		r.Host = "localhost"
		s.ServeHTTP(w, r)
		if got := w.Header().Get(tt.name); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %s is %s, want %s", tt.request, tt.name, got, tt.want)
		}
	}
}

// Each answer is counted once, with the status that was sent, even by http.ServeMux.
func TestRequestsTotal(t *testing.T) {
	s := idhttptest.Door(t, "up")
	for _, tt := range []struct {
		request  string
		header   http.Header
		status   int
		endpoint string
	}{
		{"GET /v1/ids", nil, 200, "/v1/ids"},
		{"GET /v1/ids?n=0", nil, 400, "/v1/ids"},
		{"DELETE /v1/ids", nil, 405, "/v1/ids"},
		{"GET //v1/ids", nil, 307, "/v1/ids"}, // by http.ServeMux
		{"GET /?id=?", nil, 400, "/{$}"},
		{"HEAD /", nil, 200, "/{$}"},
		{"POST /take", nil, 303, "/take"},
		{"GET /assets/page.css", http.Header{"Range": {"bytes=0-9"}}, 206, "/assets/{name}"},
		{"GET /assets/page.css", http.Header{"If-None-Match": {"*"}}, 304, "/assets/{name}"},
		{"GET /assets/none", nil, 404, "/assets/{name}"},
		{"GET /none", nil, 404, "/"},
		{"OPTIONS *", nil, 400, "/"}, // by http.ServeMux
	} {
		line := fmt.Sprintf("flake_http_requests_total{code=\"%d\",endpoint=%q} 1\n", tt.status, tt.endpoint)
		if strings.Contains(get(t, s, "/metrics"), line) {
			t.Fatalf("%s: the counter is 1 before the request", tt.request)
		}
		method, url, _ := strings.Cut(tt.request, " ")
		r := httptest.NewRequest(method, url, nil)
		r.Host = "localhost"
		for name, values := range tt.header {
			r.Header[name] = values
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != tt.status {
			t.Errorf("%s: %d, want %d", tt.request, w.Code, tt.status)
		}
		if counts := get(t, s, "/metrics"); !strings.Contains(counts, line) {
			t.Errorf("%s: there is no %s in %s", tt.request, line, counts)
		}
	}
}

func get(t *testing.T, s *idhttp.Door, url string) string {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, url, nil)
	r.Host = "localhost"
	s.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("%s: %d, %s", url, w.Code, w.Body)
	}
	return w.Body.String()
}
