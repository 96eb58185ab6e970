package etcd

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/workers/etcd/etcdtest"
)

// The clock is compared with that of each endpoint that answers, as exactly as whole seconds
// allow.
func TestClocks(t *testing.T) {
	here := time.Date(2026, 1, 1, 0, 0, 10, 500_000_000, time.UTC)
	at := func(date string) string {
		h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Date"] = []string{date}
		}))
		t.Cleanup(h.Close)
		return h.URL
	}
	away := httptest.NewServer(nil)
	away.Close()
	s := open(t, Config{Endpoints: []string{
		at(here.Format(http.TimeFormat)), at(here.Add(-time.Hour).Format(http.TimeFormat)),
		at(here.Add(time.Hour).Format(http.TimeFormat)), at("yesterday"), away.URL,
	}})
	got := s.Clocks(t.Context(), func() uint64 { return uint64(here.UnixMilli()) })
	slices.Sort(got)
	want := []time.Duration{500*time.Millisecond - time.Hour, 0, time.Hour - 500*time.Millisecond}
	if !slices.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
}

// A real etcd tells its clock and its cluster.
func TestKnown(t *testing.T) {
	c := etcdtest.Start(t, 1)
	s := open(t, Config{Endpoints: c.Endpoints()})
	if got := s.Cluster(); got != "" {
		t.Errorf("before any answer: %q", got)
	}
	got := s.Clocks(t.Context(), func() uint64 { return uint64(time.Now().Add(time.Hour).UnixMilli()) })
	if len(got) != 1 || got[0] < time.Hour-time.Minute || got[0] > time.Hour {
		t.Errorf("%v", got)
	}
	if _, err := s.Get(t.Context(), "x"); err != nil || s.Cluster() == "" {
		t.Errorf("%q, %v", s.Cluster(), err)
	}
}
