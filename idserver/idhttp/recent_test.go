package idhttp

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/node/latency"
	"github.com/flake-go/flake/node/traffic"
)

// Lines of level INFO and above are kept.
func TestRecent(t *testing.T) {
	var r Recent
	var all bytes.Buffer
	log := slog.New(slog.NewMultiHandler(r.Handler(),
		slog.NewTextHandler(&all, &slog.HandlerOptions{Level: slog.LevelError})))
	log.Debug("not this")
	log.With("peer", "a@b").Info("connected", "version", 6)
	log.WithGroup("of").Warn("refused", "err", fmt.Errorf("wrong\ncookie"), "name", "\u202eevil", "long",
		strings.Repeat("é", 150), "raw", "\xff", "peer", "a@b address=10.0.0.1")
	log.Error("worse", "a", strings.Repeat("x", 200), "b", strings.Repeat("y", 200), "c", strings.Repeat("z", 200), "d", 1)
	log.Info(strings.Repeat("\x80", 300), "cut", "x"+strings.Repeat("é", 150))
	var got []string
	for _, e := range r.state() {
		got = append(got, e.Level+" "+e.What+" "+e.More)
	}
	want := []string{
		`info "` + strings.Repeat(`\x80`, 196) + `..." cut=x` + strings.Repeat("é", 99) + "...",
		"error worse a=" + strings.Repeat("x", 200) + " b=" + strings.Repeat("y", 200) + " d=1",
		`warn refused err="wrong\ncookie" name="\u202eevil" long=` + strings.Repeat("é", 100) +
			`... raw="\xff" peer="a@b address=10.0.0.1"`,
		"info connected peer=a@b version=6",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\n\twant %q", got, want)
	}
	if lines := strings.Split(all.String(), "\n"); len(lines) != 2 || !strings.Contains(lines[0], "msg=worse") {
		t.Errorf("logged: %q", lines)
	}
}

// Frequent lines replace lines with the same message, and no others.
func TestRecentFlood(t *testing.T) {
	var r Recent
	log := slog.New(r.Handler())
	log.Warn("once")
	for i := range 100 {
		for kind := range (maxRecent - 2) / maxRecentAlike {
			log.Info(fmt.Sprint("kind ", kind), "i", i)
		}
	}
	all := r.state()
	if n := len(all); n != 49 || all[n-1].What != "once" || all[n-2].More != "i=96" || all[0].More != "i=99" {
		t.Errorf("%d are kept: %+v", n, all)
	}
	for i := range maxRecent {
		log.Error(fmt.Sprint("new ", i))
	}
	all = r.state()
	log.Error("not in the lines so far")
	if len(all) != maxRecent || all[0].What != "new 49" || all[maxRecent-1].What != "new 0" {
		t.Errorf("after many different messages: %+v", all)
	}
}

// The clock was set if it advanced by more or less than the time that passed.
func TestStepCounts(t *testing.T) {
	var s stepCounts
	for _, tt := range []struct{ wall, passed, want time.Duration }{
		{0, time.Hour, 0},
		{time.Second, time.Hour + time.Second, 0},
		{1999 * time.Millisecond, time.Hour + 2*time.Second, 0}, // slewed
		{2999*time.Millisecond + minStep, time.Hour + 3*time.Second, minStep},
		{3999*time.Millisecond + minStep, time.Hour + 4*time.Second, 0},
		{4999 * time.Millisecond, time.Hour + 5*time.Second, -minStep},
		{5999*time.Millisecond + minStep, time.Hour + 6*time.Second, minStep},
		{-time.Hour, time.Hour + 7*time.Second, -time.Hour - 6999*time.Millisecond - minStep},
		{-time.Hour + time.Minute, time.Hour + 8*time.Second, 59 * time.Second}, // the machine slept
	} {
		if got := s.note(noon.Add(tt.wall), tt.passed); got != tt.want {
			t.Errorf("at %v after %v: %v, want %v", tt.wall, tt.passed, got, tt.want)
		}
	}
	if back, forward := s.back.Load(), s.forward.Load(); back != 2 || forward != 3 {
		t.Errorf("counted %d steps back and %d forward", back, forward)
	}
}

// The nodes that took the most ids since the last update come first.
func TestPeerRates(t *testing.T) {
	nodes := map[string]uint64{"a": 0, "b": 1000, "c": 20}
	looks := 0
	peers := func() (all []traffic.Peer) {
		looks++
		for name, ids := range nodes {
			all = append(all, traffic.Peer{Name: name, Since: noon, IDs: ids})
		}
		return all
	}
	var s peerRates
	look := func(after time.Duration) string {
		all := s.update(noon.Add(after), peers)
		got := fmt.Sprint(len(all), " ")
		for _, n := range all {
			got += fmt.Sprint(n.Name, n.rate, " ")
		}
		return got
	}
	if got := look(10 * time.Second); got != "3 b100 c2 a0 " {
		t.Errorf("at first: %s", got)
	}
	nodes["a"], nodes["b"] = 30, 1010
	if got := look(10*time.Second + interval/2); got != "3 b100 c2 a0 " || looks != 1 {
		t.Errorf("soon after: %s, %d looks", got, looks)
	}
	delete(nodes, "c")
	nodes["d"] = 12
	if got := look(12 * time.Second); got != "3 a15 b5 d1 " {
		t.Errorf("then: %s", got)
	}
	if all := new(peerRates).update(noon, nil); all != nil {
		t.Error("there are nodes, although they are unknown")
	}
}

// lastMinute counts only the calls of the last minute, for the doors that had any.
func TestLastMinute(t *testing.T) {
	var all []sample
	if got := lastMinute(all); got != nil {
		t.Errorf("at first: %+v", got)
	}
	var h latency.Histogram
	for i := range 200 {
		var now [len(doors)]latency.Counts
		switch i {
		case 139: // just before the last minute
			h.Add(time.Millisecond, 1000)
		case 140:
			h.Add(math.MaxInt64, 10)
		}
		h.Add(time.Millisecond, 2)
		now[1].Collect(&h)
		all = append(all, sample{latencies: now})
	}
	want := []latencyState{{"HTTP", "2", "1 ms", "over 5 s"}}
	if got := lastMinute(all); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	want = []latencyState{{"HTTP", "2", "1 ms", "1 ms"}}
	if got := lastMinute(all[:2]); !slices.Equal(got, want) {
		t.Errorf("after a second: %+v, want %+v", got, want)
	}
	if got := within(all[199].latencies[1].Since(all[139].latencies[1]), 1); got != "over 5 s" {
		t.Errorf("the slowest was %s", got)
	}
	if got := brief(2500*time.Microsecond) + brief(50*time.Microsecond) + brief(time.Second); got != "2.5 ms50 µs1 s" {
		t.Error(got)
	}
}
