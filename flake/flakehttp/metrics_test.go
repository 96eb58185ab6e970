package flakehttp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/flake-go/flake/flake/flakehttp"
	"github.com/flake-go/flake/flake/flakehttp/flakehttptest"
)

// metricName finds the names of metrics in an expression of PromQL.
var metricName = regexp.MustCompile(`\b(?:flake|process|go)_[a-z_]+\b`)

// The dashboard asks only for metrics that there are.
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
	s := flakehttptest.Server(t, "up")
	for i := range s.Generators {
		s.Generators[i].Saves = flakehttp.NewSaves()
	}
	s.Node.Traffic = func() flakehttp.Traffic {
		one := map[string]uint64{"reason": 1}
		return flakehttp.Traffic{Connections: 1, Connected: 1, Received: 1, Sent: 1, HandshakeFailures: one, Closes: one}
	}
	s = flakehttp.New(s.Options)
	get(t, s, "/v1/ids")
	metrics := get(t, s, "/metrics")
	asked := 0
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			for _, name := range metricName.FindAllString(target.Expr, -1) {
				asked++
				if !regexp.MustCompile("(?m)^" + name + "[{ ]").MatchString(metrics) {
					t.Errorf("%s: there is no %s", p.Title, name)
				}
			}
		}
	}
	if asked == 0 {
		t.Error("nothing is asked for")
	}
}

// Each answer is counted once, with the status that was sent, whoever sent it.
func TestRequestsTotal(t *testing.T) {
	s := flakehttptest.Server(t, "up")
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
	} {
		line := fmt.Sprintf("flake_http_requests_total{code=\"%d\",endpoint=%q} 1\n", tt.status, tt.endpoint)
		if strings.Contains(get(t, s, "/metrics"), line) {
			t.Fatalf("%s: counted before", tt.request)
		}
		method, url, _ := strings.Cut(tt.request, " ")
		r := httptest.NewRequest(method, "http://localhost"+url, nil)
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

func get(t *testing.T, s *flakehttp.Server, url string) string {
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
