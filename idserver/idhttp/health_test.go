package idhttp_test

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/flake/sno"
	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/idserver/idhttp"
)

// When the clock is set back, a sno generator continues with the other tick-tock bit. It is ready
// except at times for which both bits may have been used. /readyz, the metrics and the page agree.
func TestReadiness(t *testing.T) {
	system, ahead := flake.SystemClock(), uint64(0)
	ids, err := sno.NewGenerator(&sno.Snapshot{}, sno.Options{Clock: func() uint64 { return system() + ahead }})
	if err != nil {
		t.Fatal(err)
	}
	s := idhttp.New(idhttp.Options{Log: slog.New(slog.DiscardHandler), Generators: []idhttp.Generator{
		{Name: "sno", Server: &idserver.Server{IDs: formats.Sno(ids)}},
	}})
	for _, step := range []struct {
		what  string
		ahead time.Duration
		ready bool
	}{
		{"at first", 2 * time.Hour, true},
		{"set back", 0, true},
		{"ahead of all ids", 4 * time.Hour, true},
		{"set back to where both bits are used", time.Hour, false},
	} {
		ahead = uint64(step.ahead.Milliseconds())
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/readyz", nil)
		r.Host = "localhost"
		s.ServeHTTP(w, r)
		metrics, page := get(t, s, "/metrics"), get(t, s, "/")
		if step.ready {
			if w.Code != http.StatusOK || !strings.Contains(metrics, `flake_ready{generator="sno"} 1`) ||
				strings.Contains(page, "the clock is") {
				t.Errorf("%s: %d, %s", step.what, w.Code, w.Body)
			}
		} else {
			retry := w.Header().Get("Retry-After")
			if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "clock_running_backwards") ||
				len(retry) != 4 || retry > "3700" ||
				!strings.Contains(metrics, `flake_ready{generator="sno"} 0`) || !strings.Contains(page, "the clock is") {
				t.Errorf("%s: %d, %s, Retry-After %s s", step.what, w.Code, w.Body, retry)
			}
		}
		if _, err := ids.Reserve(t.Context(), 1); (err == nil) != step.ready {
			t.Errorf("%s: %v", step.what, err)
		}
	}
}

// A generator that Erlang nodes cannot reach is not ready.
func TestReadinessOfTheServer(t *testing.T) {
	ids, err := flake.NewGenerator(1, flake.Options{})
	if err != nil {
		t.Fatal(err)
	}
	running := true
	s := idhttp.New(idhttp.Options{Generators: []idhttp.Generator{
		{Name: "flake", Server: &idserver.Server{IDs: formats.Flake(ids)}, Running: func() bool { return running }},
	}})
	for _, running = range []bool{true, false} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/readyz", nil)
		r.Host = "localhost"
		s.ServeHTTP(w, r)
		if (w.Code == http.StatusOK) != running || strings.Contains(w.Body.String(), "noproc") == running {
			t.Errorf("running %t: %d, %s", running, w.Code, w.Body)
		}
	}
}

// A generator in trouble makes the node unready for requests that name it or name no generator.
func TestReadinessOfSome(t *testing.T) {
	system, ahead := flake.SystemClock(), uint64(time.Hour.Milliseconds())
	behind, err1 := flake.NewGenerator(1, flake.Options{Clock: func() uint64 { return system() + ahead }})
	well, err2 := flake.NewGenerator(2, flake.Options{})
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if _, err := behind.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	ahead = 0
	s := idhttp.New(idhttp.Options{Log: slog.New(slog.DiscardHandler), Generators: []idhttp.Generator{
		{Name: "behind", Server: &idserver.Server{IDs: formats.Flake(behind)}},
		{Name: "well", Server: &idserver.Server{IDs: formats.Flake(well)}},
	}})
	for query, want := range map[string]int{
		"": 503, "?generators=behind": 503, "?generators=well,behind": 503, "?generators=well": 200,
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/readyz"+query, nil)
		r.Host = "localhost"
		s.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s: %d, want %d: %s", query, w.Code, want, w.Body)
		}
	}
}
