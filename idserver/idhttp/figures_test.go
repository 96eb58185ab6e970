package idhttp

import (
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/flake"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// Figures are formatted for people.
func TestFigures(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{thousands(0), "0"},
		{thousands(999), "999"},
		{thousands(1000), "1,000"},
		{thousands(123456), "123,456"},
		{thousands(1234567), "1,234,567"},
		{thousands(math.MaxUint64), "18,446,744,073,709,551,615"},
		{size(0), "0 B"},
		{size(999), "999 B"},
		{size(1000), "1.0 kB"},
		{size(99_949), "99.9 kB"},
		{size(99_950), "100 kB"},
		{size(999_499), "999 kB"},
		{size(999_500), "1.0 MB"},
		{size(1_234_567_890), "1.2 GB"},
		{size(math.MaxUint64), "18.4 EB"},
		{short(999), "999"},
		{short(1000), "1 k"},
		{short(400_000), "400 k"},
		{short(999_999), "999.999 k"},
		{short(1_000_000), "1 M"},
		{short(2_500_000), "2.5 M"},
		{short(ceiling(0)), "10"},
		{short(ceiling(10)), "10"},
		{short(ceiling(11)), "20"},
		{short(ceiling(20)), "20"},
		{short(ceiling(21)), "40"},
		{short(ceiling(40)), "40"},
		{short(ceiling(41)), "100"},
		{short(ceiling(1_000_001)), "2 M"},
		{quote(strings.Repeat("é", 32)), `"` + strings.Repeat("é", 32) + `"`},
		{quote(strings.Repeat("x", 65)), `"` + strings.Repeat("x", 64) + `"... (65 bytes)`},
	} {
		if tt.got != tt.want {
			t.Errorf("%s, want %s", tt.got, tt.want)
		}
	}
	ceiling(math.MaxUint64) // must return
}

// The chart shows the rates of the last two minutes.
func TestChart(t *testing.T) {
	h := samples{next: make(chan struct{})}
	add := func(at time.Time, n uint64) { h.add(sample{at: at, errors: n}) }
	snapshot := func() rates { return ratesOf(h.get(), func(one *sample) uint64 { return one.errors }) }
	if c := snapshot().chart("Ids"); c.Line != "M120 100.00" || c.Rate != "0" || c.Peak != "0" || c.Top != "10" ||
		c.Half != "5" {
		t.Errorf("without samples: %+v", c)
	}
	awaited := h.awaited()
	add(noon, 1005)
	select {
	case <-awaited:
	default:
		t.Error("the channel is not closed at the next add")
	}
	add(noon.Add(1*time.Second), 1040)
	add(noon.Add(3*time.Second), 1060) // late
	r := snapshot()
	want := chart{
		Rate: "10", Peak: "35",
		Line: "M119 12.50 L120 75.00", Area: "M119 12.50 L120 75.00 V100 H119 Z", Top: "40", Half: "20", Width: 120,
		Label: "Ids a second over the last two minutes: at most 35, now 10.",
	}
	if c := r.chart("Ids"); c != want {
		t.Errorf("%+v, want %+v", c, want)
	}
	for i := range 200 {
		add(noon.Add(time.Duration(4+i)*time.Second), 1060+uint64(i))
	}
	r = snapshot()
	if c := r.chart("Ids"); len(r) != 120 || c.Peak != "1" || !strings.HasPrefix(c.Line, "M1 90.00 L2 ") ||
		!strings.HasSuffix(c.Area, " L120 90.00 V100 H1 Z") {
		t.Errorf("%d seconds are kept: %+v", len(r), c)
	}
}

// The track runs from one second before the clock to four seconds after it.
func TestTrack(t *testing.T) {
	for _, tt := range []struct {
		last, mark time.Duration // from now
		want       track
	}{
		{0, 2500 * time.Millisecond, track{Last: "20.0", Now: "20.0", Mark: "70.0"}},
		{-500 * time.Millisecond, 4 * time.Second, track{Last: "10.0", Now: "20.0", Mark: "100.0"}},
		{-time.Hour, time.Hour, track{Last: "0.0", Now: "20.0", Mark: "100.0"}},
	} {
		if got := trackOf(noon, noon.Add(tt.last), noon.Add(tt.mark)); got != tt.want {
			t.Errorf("%v, %v: %+v, want %+v", tt.last, tt.mark, got, tt.want)
		}
	}
	if got := trackOf(noon, noon, time.Time{}); got.Mark != "" {
		t.Errorf("without a mark: %s", got.Mark)
	}
}

// Generators with the same trouble share an entry. Its time is when the first of them got into
// trouble.
func TestTroubles(t *testing.T) {
	troubles := onsets{all: make([]onset, 6)}
	var all []trouble
	for i, tt := range []struct {
		name  string
		err   error
		since int // s
	}{
		{"a", flake.ErrClosed, 20}, {"b", flake.ErrClosed, 10}, {"c", flake.ErrTimestampNotSaved, 5},
		{"d", flake.ErrClosed, 30}, {"e", flake.ErrClosed, 30},
	} {
		since := noon.Add(time.Duration(tt.since) * time.Second)
		troubles.note(i, tt.err, since)
		again := troubles.note(i, tt.err, since.Add(time.Second))
		all = addTrouble(all, tt.name, tt.name+" is ill", tt.err, again, noon.Add(70*time.Second))
	}
	if names := (trouble{names: []string{"a", "b", "c"}}).Names(); names != "a, b, c" {
		t.Errorf("three generators are named %s", names)
	}
	var got []string
	for _, t := range all {
		got = append(got, t.Names()+": "+t.What+", since "+t.Since())
	}
	want := []string{
		"a, b, d and 1 more: a is ill, since 2026-11-22 12:00:10 UTC, for 1 min 0 s",
		"c: c is ill, since 2026-11-22 12:00:05 UTC, for 1 min 5 s",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if since := troubles.note(0, flake.ErrTimestampNotSaved, noon.Add(time.Minute)); since != noon.Add(time.Minute) {
		t.Errorf("a new trouble began at %v", since)
	}
}

// The weight of a media type is that of the most specific range. Of types with equal weights, the
// first is chosen.
func TestNegotiate(t *testing.T) {
	for _, tt := range []struct{ accept, want string }{
		{"", "text/plain"},
		{"*/*", "text/plain"},
		{"*/*|", "text/plain"},
		{"application/json", "application/json"},
		{"text/html|application/json", "application/json"},
		{"text/plain;q=0.5, application/json;q=0.5", "text/plain"},
		{"text/plain;q=0.5, application/json;q=0.6", "application/json"},
		{"application/*, application/json;q=0.5", "application/octet-stream"},
		{"application/json;q=0.5, application/*", "application/octet-stream"},
		{"*/*;q=0.1, application/*;q=0.2", "application/json"},
		{"application/*;q=0.2, */*;q=0.9, text/plain;q=0.1", "application/json"},
		{"text/plain;q=0.4, APPLICATION/JSON ; charset=utf-8 ; Q = 0.5", "application/json"},
		{"text/plain;q=1.1, application/json", "text/plain"}, // an invalid weight
		{"text/plain;q=-1, application/json", "text/plain"},
		{"text/plain;level=0, application/json;q=0.5", "text/plain"},
		{"text/plain;q=x, application/json", "text/plain"},
		{"text/plain;q=0, application/json;q=0.001", "application/json"},
		{"text/plain;q=0", ""},
		{"text", ""},
	} {
		r := &http.Request{Header: http.Header{}}
		for line := range strings.SplitSeq(tt.accept, "|") {
			if tt.accept != "" {
				r.Header.Add("Accept", line)
			}
		}
		got, fault := negotiate(r, forms)
		if bare(got) != tt.want || (fault == nil) != (tt.want != "") {
			t.Errorf("%s: %s, %+v, want %s", tt.accept, got, fault, tt.want)
		}
	}
}
