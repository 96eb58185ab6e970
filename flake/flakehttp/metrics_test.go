package flakehttp_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
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
