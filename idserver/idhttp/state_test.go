package idhttp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/node/traffic"
)

// past is a source with a given last id, mark and readiness.
type past struct {
	maker
	last, mark time.Time
	ready      error
}

func (p past) Last() (uint64, uint32)        { return uint64(p.last.UnixMilli()), 0 }
func (p past) Mark() time.Time               { return p.mark }
func (p past) Ready() error                  { return p.ready }
func (p past) Waits() uint64                 { return 1234 }
func (p past) PerTick() int                  { return 1 << 16 }
func (p past) Behind() time.Duration         { return time.Minute }
func (p past) LastSaved() (time.Time, error) { return noon, nil }

func (p past) Reserve(_ context.Context, n int, _ uint8) (formats.Run, error) {
	return formats.Run{Count: n}, p.ready
}

// The page shows the node, its generators and the connected nodes.
func TestState(t *testing.T) {
	flakes := maker{format: formats.KindOf("flake").Format(nil), worker: 0x02fc00000a01}
	s := New(Options{
		Node: Node{
			Name: "flake@host", Address: "10.0.0.1:1", Version: "1.2.3",
			Traffic: func() traffic.Counts {
				return traffic.Counts{Received: 1500, Sent: 15, Closes: map[string]uint64{"unread": 5}}
			},
			Peers: func() []traffic.Peer {
				return make100(traffic.Peer{Name: "a@\u202eb", Address: at("10.0.0.2:2"), Since: noon.Add(-time.Minute), IDs: 90})
			},
		},
		Generators: []Generator{
			{Name: "well",
				Server: &idserver.Server{IDs: past{flakes, noon.Add(-time.Second), noon.Add(2500 * time.Millisecond), nil}}},
			{Name: "edge", Server: &idserver.Server{IDs: past{flakes, noon.Add(time.Second), noon, nil}}},
			{Name: "late", Server: &idserver.Server{IDs: past{flakes, noon, noon.Add(-time.Second), flake.ErrClockBackwards}}},
			{Name: "fresh", Server: &idserver.Server{IDs: past{flakes, time.UnixMilli(0), time.Time{}, nil}}},
		},
	})
	s.Generators[0].Server.From = func() idserver.Origin {
		return idserver.Origin{From: "store", Until: noon.Add(90 * time.Second), Err: errors.New("no answer")}
	}
	s.Generators[1].Server.From = func() idserver.Origin {
		return idserver.Origin{From: "store",
			Until: noon.Add(-time.Second)}
	}
	s.Generators[2].Server.From = func() idserver.Origin { return idserver.Origin{From: "interface eth0"} }
	s.started = noon.Add(-time.Hour)
	for _, g := range s.Generators[:3] {
		g.Server.Take(t.Context(), idserver.KindGetMany, 1000, idserver.Meta{}, nil)
		g.Server.Get(t.Context(), idserver.Meta{})
		g.Server.Take(t.Context(), idserver.KindGetMany, -1, idserver.Meta{}, nil)
	}
	for i, ids := range []uint64{0, 0, 1001} {
		one := sample{at: noon.Add(time.Duration(i-2) * time.Second), ids: []uint64{ids, ids, 0, 0}, errors: ids / 100}
		one.latencies = s.latencies(s.Node.Traffic())
		s.samples.add(one)
		s.took.Add(time.Millisecond, 50)
	}

	s.Recent.note(noon, slog.LevelInfo, "started", "")
	v := s.state(noon)
	const who = " Who:[{Name:worker Text:02:fc:00:00:0a:01}]"
	for i, want := range []string{
		"{Name:well Format:flake" + who + " From:store Until:12:01:30.000 Left:1 min 30 s Err:no answer IDs:1,001 " +
			"Rate:1,001 Calls:3 Waits:1,234 Refusals:1 Clock:12:00:00.000 " +
			"Last:11:59:59.000 LastAgo:1 s ago Mark:12:00:02.500 MarkAhead:2.5 s ahead Late:false InTrouble:false " +
			"Track:{Last:0.0 Now:20.0 Mark:70.0}}",
		"{Name:edge Format:flake" + who + " From:store Until:11:59:59.000 Left:0 ms Err: IDs:1,001 Rate:1,001 Calls:3 " +
			"Waits:1,234 Refusals:1 Clock:12:00:00.000 " +
			"Last:12:00:01.000 LastAgo:ahead of the clock Mark:12:00:00.000 MarkAhead:0.0 s ahead Late:false InTrouble:false " +
			"Track:{Last:40.0 Now:20.0 Mark:20.0}}",
		"{Name:late Format:flake" + who + " From:interface eth0 Until: Left: Err: IDs:0 Rate:0 Calls:3 Waits:1,234 " +
			"Refusals:3 Clock:12:00:00.000 " +
			"Last:12:00:00.000 LastAgo:0 ms ago Mark:11:59:59.000 MarkAhead:1.0 s behind the clock Late:true InTrouble:true " +
			"Track:{Last:20.0 Now:20.0 Mark:0.0}}",
		"{Name:fresh Format:flake" + who + " From: Until: Left: Err: IDs:0 Rate:0 Calls:0 Waits:1,234 " +
			"Refusals:0 Clock:12:00:00.000 " +
			"Last: LastAgo:none yet Mark: MarkAhead: Late:false InTrouble:false Track:{Last:0.0 Now:20.0 Mark:}}",
	} {
		if got := fmt.Sprintf("%+v", v.Generators[i]); got != want {
			t.Errorf("%s\n\twant %s", got, want)
		}
	}
	if status := v.Status(); status != "1 of 4 generators in trouble" || len(v.Troubles) != 1 ||
		v.Troubles[0].What != "the clock is 1m0s behind" {
		t.Errorf("%s: %+v", status, v.Troubles)
	}
	if v.Chart.Rate != "2,002" || v.Chart.Peak != "2,002" || v.Errors.Rate != "10" {
		t.Errorf("%+v, %+v", v.Chart, v.Errors)
	}
	v.Generators, v.Troubles, v.Chart, v.Errors, v.Peers = nil, nil, chart{}, chart{}, v.Peers[:2]
	want := &state{
		Name: "flake@host", Address: "10.0.0.1:1", Version: "1.2.3", Uptime: "1 h 0 min",
		Total: "2,002", Received: "1.5 kB", Sent: "15 B",
		CallsRefused: "5", CallersRefused: "5", Latencies: []latencyState{{"HTTP", "50", "1 ms", "1 ms"}},
		Recent: s.Recent.state(),
		Peers: []peerState{{`"a@\u202eb"`, "10.0.0.2:2", "1 min 0 s", "2"},
			{"idle@b", "10.0.0.2:3", "0 ms", "0"}}, PeerCount: 101, MorePeers: 1,
	}
	if !reflect.DeepEqual(v, want) {
		t.Errorf("%+v\n\twant %+v", v, want)
	}
}

type at string

func (a at) String() string { return string(a) }
func (at) Network() string  { return "tcp" }

// make100 returns a hundred idle nodes, and p.
func make100(p traffic.Peer) (all []traffic.Peer) {
	for range 100 {
		all = append(all, traffic.Peer{Name: "idle@b", Address: at("10.0.0.2:3"), Since: noon})
	}
	return append(all, p)
}

// A few generators each have a section; many each have a row in a table.
func TestStatus(t *testing.T) {
	ill, well := generatorState{InTrouble: true}, generatorState{}
	for _, tt := range []struct {
		all      []generatorState
		status   string
		sections int
	}{
		{[]generatorState{well, well, well}, "Handing out ids", 3},
		{[]generatorState{ill}, "In trouble", 1},
		{[]generatorState{ill, well, ill, well}, "2 of 4 generators in trouble", 0},
	} {
		v := state{Generators: tt.all}
		var page strings.Builder
		if err := templates.ExecuteTemplate(&page, "live", &v); err != nil {
			t.Fatal(err)
		}
		sections := strings.Count(page.String(), `<section class="generator"`)
		if v.Status() != tt.status || sections != tt.sections {
			t.Errorf("%d: %s, %d sections", len(tt.all), v.Status(), sections)
		}
	}
}

// An id is decoded to its bits.
func TestReading(t *testing.T) {
	for _, tt := range []struct {
		generator, id, octets string
		widths                []int // how many bits each field has
		fields, texts         string
	}{
		{
			"flake", "0000BCeSOTXmkQcK8Ru83s", "00 00 01 a1 fa c6 c4 f3 02 fc 00 00 00 01 00 00 ",
			[]int{64, 48, 16},
			"0 time 2026-11-20 21:04:52.979 UTC (1795208692979 ms, 1 d 14 h ago) 64 bits, 0 to 63; " +
				"1 worker 02:fc:00:00:00:01 (3281355014145) 48 bits, 64 to 111; " +
				"2 sequence 0 () 16 bits, 112 to 127; ",
			"flake 0000BCeSOTXmkQcK8Ru83s; base 62 BCeSOTXmkQcK8Ru83s; base 36 2H6MINIPQTSZDOROMXURK; base 16 " +
				"1A1FAC6C4F302FC000000010000; base 10 33115755318282453239509704310784; uuid " +
				"000001a1-fac6-c4f3-02fc-000000010000; crockford 00000T3YP6RKSG5Z0000002000; ",
		},
		{
			"orders", "911723800210665477", "0c a7 17 f7 3c d3 70 05 ",
			[]int{42, 5, 5, 12},
			"0 time 2026-11-20 21:04:52.979 UTC (1795208692979 ms, 1 d 14 h ago) 41 bits, 1 to 41; " +
				"1 datacenter 9 () 5 bits, 42 to 46; " +
				"2 worker 23 () 5 bits, 47 to 51; " +
				"3 sequence 5 () 12 bits, 52 to 63; ",
			"snowflake 911723800210665477; base 62 15LhgmPoGFZ; base 36 6XD743NUHRLX; base 16 CA717F73CD37005; base " +
				"10 911723800210665477; " +
				"crockford 0S9RQYWYD6W05; base32 3jaz6h6pghyf; base36 6xd743nuhrlx; base58 37KkmdM8XfV; base64 " +
				"OTExNzIzODAwMjEwNjY1NDc3; ",
		},
		{
			"events", "9q6uqblq2622g22b", "3e 09 cc 26 78 01 00 07 00 09 ",
			[]int{39, 1, 8, 16, 16},
			"0 time 2026-11-20 21:04:52.976 UTC (1795208692976 ms, 1 d 14 h ago) 39 bits, 0 to 38; " +
				"1 tick_tock 0 () 1 bit, 39; " +
				"2 meta 1 () 8 bits, 40 to 47; " +
				"3 partition 7 () 16 bits, 48 to 63; " +
				"4 sequence 9 () 16 bits, 64 to 79; ",
			"sno 9q6uqblq2622g22b; base 62 1So1vPrwGsKOnB; base 36 1BPGLD2D4SUIVWG9; base 16 3E09CC26780100070009; base 10 " +
				"292967453211759932276745; crockford 7R4WR9KR0400E009; ",
		},
	} {
		g := &inspecting(tt.generator).Generators[0]
		id, err := g.format().Parse(tt.id, formats.Canonical)
		if err != nil {
			t.Fatal(err)
		}
		r := readingOf(g.format(), id, noon)
		var octets, fields, texts strings.Builder
		widths := make([]int, len(tt.widths))
		for _, o := range r.Octets {
			octets.WriteString(o.Hex + " ")
			octet := 0
			for _, b := range o.Bits {
				octet <<= 1
				if b.One {
					octet++
				}
				widths[b.Index]++
			}
			if hex := fmt.Sprintf("%02x", octet); hex != o.Hex {
				t.Errorf("%s: the bits are %s, not %s", tt.id, hex, o.Hex)
			}
		}
		for _, f := range r.Fields {
			fmt.Fprintf(&fields, "%d %s %s (%s) %s; ", f.Index, f.Name, f.Value, f.Note, f.Bits)
		}
		for _, l := range r.Texts {
			fmt.Fprintf(&texts, "%s %s; ", l.Name, l.Text)
		}
		for _, got := range [][2]string{
			{octets.String(), tt.octets}, {fmt.Sprint(widths), fmt.Sprint(tt.widths)}, {fields.String(), tt.fields},
			{texts.String(), tt.texts},
		} {
			if got[0] != got[1] {
				t.Errorf("%s: %s\n\twant %s", tt.id, got[0], got[1])
			}
		}
	}
}

// A generator is idle if its mark has not been saved since the last check, whatever the clock
// shows.
func TestIdle(t *testing.T) {
	for name, tt := range map[string]struct {
		ids    formats.Source
		before time.Time
		idle   bool
	}{
		"no mark":            {savedAt{}, time.Time{}, false},
		"never checked":      {savedAt{at: noon}, time.Time{}, false},
		"saved later":        {savedAt{at: noon}, noon.Add(-1), false},
		"unchanged":          {savedAt{at: noon}, noon, true},
		"cannot be saved":    {savedAt{at: noon, err: flake.ErrTimestampNotSaved}, noon, false},
		"saved, in the past": {savedAt{at: noon}, noon.Add(1), false},
	} {
		g := Generator{Server: &idserver.Server{IDs: tt.ids}}
		before := tt.before
		if got := g.idle(&before); got != tt.idle {
			t.Errorf("%s: %v", name, got)
		}
		if at, _ := tt.ids.LastSaved(); !before.Equal(at) {
			t.Errorf("%s: *before is %v", name, before)
		}
	}
}

type savedAt struct {
	formats.Source
	at  time.Time
	err error
}

func (s savedAt) LastSaved() (time.Time, error) { return s.at, s.err }
