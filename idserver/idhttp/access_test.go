package idhttp

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/idserver"
)

const (
	tokenA = "0123456789abcdef"
	tokenB = "fedcba9876543210"
)

// accessed returns a server, and a function that sends it a request with a token.
func accessed(t *testing.T, a Access) (s *Door, ask func(path, token string) *http.Response) {
	t.Helper()
	s = New(Options{Access: a, Generators: flakes(t)})
	return s, func(path, token string) *http.Response {
		r := httptest.NewRequest(http.MethodGet, "http://flake.example"+path, nil)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Result()
	}
}

// The metrics listener needs no token, and returns no ids.
func TestServeMetrics(t *testing.T) {
	s, _ := accessed(t, Access{Token: tokenA})
	var log strings.Builder
	s.Log = slog.New(slog.NewTextHandler(&log, nil))
	var ls [2]net.Listener
	for i := range ls {
		var err error
		if ls[i], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	s.Serve(ls[0], ls[1])
	for _, test := range []struct {
		host, path string
		at, want   int
	}{
		{"", "/metrics", 0, 401}, {"flake.example", "/metrics", 0, 401},
		{"", "/metrics", 1, 200}, {"", "/healthz", 1, 200}, {"", "/readyz", 1, 200},
		{"", "/v1/ids", 1, 404}, {"", "/v1/info", 1, 404}, {"", "/", 1, 404}, {"", "/debug/pprof/heap", 1, 404},
		{"flake.example", "/metrics", 1, 421}, {"LocalHost:8465", "/metrics", 1, 200},
	} {
		r, err := http.NewRequest(http.MethodGet, "http://"+ls[test.at].Addr().String()+test.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host, r.Close = test.host, true
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != test.want {
			t.Errorf("%+v: %d", test, answer.StatusCode)
		}
	}
	s.Stop(t.Context())
	for line := range strings.Lines(log.String()) {
		if !strings.Contains(line, " address=127.0.0.1:") {
			t.Errorf("without the caller's address: %s", line)
		}
	}
}

// The access changes while the server runs.
func TestSetAccess(t *testing.T) {
	s, ask := accessed(t, Access{Token: tokenA})
	for _, step := range []struct {
		access     Access
		none, a, b int
	}{
		{Access{Token: tokenA}, 401, 200, 401},
		{Access{Token: tokenB}, 401, 401, 200},
		{Access{AnyHost: true}, 200, 200, 200},
		{Access{}, 421, 421, 421},
	} {
		s.SetAccess(step.access)
		for token, want := range map[string]int{"": step.none, tokenA: step.a, tokenB: step.b} {
			if got := ask("/v1/ids", token).StatusCode; got != want {
				t.Errorf("%+v, token %q: %d, want %d", step.access, token, got, want)
			}
		}
	}
}

// Events end when the token that they were requested with is changed.
func TestSetAccessEndsEvents(t *testing.T) {
	s, _ := accessed(t, Access{Token: tokenA})
	web := httptest.NewServer(s)
	defer web.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, web.URL+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+tokenA)
	answer, err := web.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body := bufio.NewReader(answer.Body)
	for range 2 { // a reload with the same token changes nothing
		for line := ""; line != "\n" && err == nil; {
			line, err = body.ReadString('\n')
		}
		s.SetAccess(Access{Token: tokenA})
		s.samples.add(sample{at: time.Now(), ids: []uint64{0}})
	}
	s.SetAccess(Access{Token: tokenB})
	s.samples.add(sample{at: time.Now(), ids: []uint64{0}})
	if _, end := io.Copy(io.Discard, body); err != nil || end != nil {
		t.Errorf("%v, %v", err, end)
	}
}

// Without the token, browsers get a page instead of a problem. The page needs no other file.
func TestUnauthorizedPage(t *testing.T) {
	s, _ := accessed(t, Access{Token: tokenA})
	for accept, want := range map[string]string{
		"": asProblem, "*/*": asProblem, "application/json": asProblem, "image/png": asProblem,
		"text/html;q=0.5,*/*": asProblem,
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": html, "text/html": html,
	} {
		r := httptest.NewRequest(http.MethodGet, "http://flake.example/v1/ids", nil)
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if got := w.Header().Get("Content-Type"); w.Code != 401 || got != want || len(w.Header()["Www-Authenticate"]) != 2 {
			t.Errorf("%s: %d %s, want %s", accept, w.Code, got, want)
		}
		if body := w.Body.String(); want == html &&
			(!strings.Contains(body, "http.token_file") || strings.Contains(body, "src=")) {
			t.Errorf("%s", body)
		}
	}
}

// Profiles need the token, and a configuration that allows them.
func TestPprof(t *testing.T) {
	s, ask := accessed(t, Access{Token: tokenA, Pprof: true})
	for path, want := range map[string]int{
		"/debug/pprof/": 200, "/debug/pprof/heap": 200, "/debug/pprof/goroutine?debug=2": 200,
		"/debug/pprof/trace?seconds=1": 200,
		"/debug/pprof/cmdline":         404, "/debug/pprof/symbol": 404, "/debug/pprof/none": 404,
		"/debug/pprof/profile?seconds=61": 400, "/debug/pprof/profile?seconds=0": 400, "/debug/pprof/heap?seconds=1.5": 400,
	} {
		if got := ask(path, tokenA).StatusCode; got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
		if got := ask(path, "").StatusCode; got != 401 {
			t.Errorf("%s without the token: %d", path, got)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "http://flake.example/debug/pprof/trace?seconds=60", nil)
	r.SetBasicAuth("any", tokenA)
	hungUp, cancel := context.WithCancel(t.Context())
	cancel()
	for _, name := range []string{"profile", "trace"} {
		r, w := r.Clone(hungUp), httptest.NewRecorder()
		r.URL.Path = "/debug/pprof/" + name
		if s.ServeHTTP(w, r); w.Code != 200 || w.Header().Get("Content-Type") != "application/octet-stream" {
			t.Errorf("%s of the longest time: %d, %s", name, w.Code, w.Body)
		}
	}
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	w := httptest.NewRecorder()
	if s.ServeHTTP(w, r); w.Code != 403 {
		t.Errorf("for a page from another site: %d", w.Code)
	}
	s.profiling.Lock()
	if a := ask("/debug/pprof/heap", tokenA); a.StatusCode != 503 || a.Header.Get("Retry-After") == "" {
		t.Errorf("a second profile: %s", a.Status)
	}
	s.profiling.Unlock()
	for _, a := range []Access{{Token: tokenA}, {AnyHost: true, Pprof: true}} {
		s.SetAccess(a)
		if got := ask("/debug/pprof/heap", tokenA).StatusCode; got != 404 {
			t.Errorf("%+v: %d", a, got)
		}
	}
}

// A server that drains is not ready, but still answers.
func TestDrain(t *testing.T) {
	s, ask := accessed(t, Access{AnyHost: true})
	if a := ask("/readyz", ""); a.StatusCode != 200 || a.Close {
		t.Errorf("before Drain: %s, closes: %t", a.Status, a.Close)
	}
	s.Drain()
	a := ask("/readyz", "")
	body := new(strings.Builder)
	a.Write(body)
	if a.StatusCode != 503 || !strings.Contains(body.String(), `"reason":"stopping"`) {
		t.Errorf("%s", body)
	}
	for _, path := range []string{"/v1/ids", "/healthz", "/metrics"} {
		if a := ask(path, ""); a.StatusCode != 200 || a.Header.Get("Connection") != "close" {
			t.Errorf("%s: %s, Connection %q", path, a.Status, a.Header.Get("Connection"))
		}
	}
}

// Each refused request is counted, as a call or as a caller, and logged. What the node cannot do, and
// what an id server counts itself, is not counted again.
func TestRefusalsAreCounted(t *testing.T) {
	const token = "Bearer " + tokenA
	for _, tt := range []struct {
		method, path, authorization, accept string

		calls, callers uint64
		of             int // the generator that counts the call
	}{
		{method: "GET", path: "/v1/ids", authorization: token},
		{method: "GET", path: "/v1/ids", authorization: "Bearer " + tokenB, callers: 1},
		{method: "GET", path: "/v1/ids", callers: 1},
		{method: "GET", path: "/nowhere", callers: 1},
		{method: "GET", path: "/nowhere", authorization: token, callers: 1},
		{method: "PUT", path: "/v1/ids", authorization: token, callers: 1},
		{method: "GET", path: "/v1/info?n=1", authorization: token, callers: 1},
		{method: "GET", path: "/readyz?generators=none", callers: 1},
		{method: "GET", path: "/readyz"}, // 503
		{method: "GET", path: "/v1/ids?n=abc", authorization: token, calls: 1},
		{method: "GET", path: "/v1/ids?n=1&n=1&generator=flake", authorization: token, calls: 1},
		{method: "GET", path: "/v1/ids?generator=none", authorization: token, calls: 1},
		{method: "GET", path: "/v1/ids", authorization: token, accept: "image/png", calls: 1},
		{method: "GET", path: "/v1/ids/none", authorization: token, calls: 1},
		{method: "GET", path: "/v1/notional?from=9223372036854775807", authorization: token, calls: 1},
		{method: "POST", path: "/take?generator=none", authorization: token, calls: 1},
		{method: "GET", path: "/v1/ids?n=abc&generator=other", authorization: token, calls: 1, of: 1},
		{method: "GET", path: "/debug/pprof/heap", authorization: token, callers: 1}, // 503
	} {
		t.Run(tt.method+" "+tt.path, func(t *testing.T) {
			var log strings.Builder
			snow, err := formats.KindOf("snowflake").Plan(nil)
			if err != nil {
				t.Fatal(err)
			}
			ids, err := snow.Open(t.Context(), "", flake.Options{})
			if err != nil {
				t.Fatal(err)
			}
			s := New(Options{Access: Access{Token: tokenA, Pprof: true}, Log: slog.New(slog.NewTextHandler(&log, nil)),
				Generators: []Generator{{Name: "flake", Server: &idserver.Server{IDs: ids}},
					{Name: "other", Server: &idserver.Server{IDs: ids}}}})
			s.Drain()
			s.profiling.Lock()
			r := httptest.NewRequest(tt.method, "http://flake.example"+tt.path, nil)
			r.Header.Set("Authorization", tt.authorization)
			r.Header.Set("Accept", tt.accept)
			s.ServeHTTP(httptest.NewRecorder(), r)
			v := s.state(time.Now())
			if v.CallsRefused != thousands(tt.calls) || v.CallersRefused != thousands(tt.callers) ||
				v.Generators[tt.of].Refusals != v.CallsRefused {
				t.Errorf("%s calls and %s callers refused", v.CallsRefused, v.CallersRefused)
			}
			n, callers := strings.Count(log.String(), "\n"), strings.Count(log.String(), " caller ")
			if n != int(tt.calls+tt.callers) || callers != int(tt.callers) {
				t.Errorf("%d lines: %s", n, &log)
			}
			if strings.Contains(log.String(), tokenA) || strings.Contains(log.String(), tokenB) {
				t.Errorf("a token is logged: %s", &log)
			}
		})
	}
}
