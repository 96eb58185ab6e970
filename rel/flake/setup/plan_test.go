package setup

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/stores"
	"github.com/flake-go/flake/idserver"
)

// Each generator reports the source of its worker, and has its own metabyte.
func TestOrigin(t *testing.T) {
	cfg := config.Default()
	cfg.Flake.TimestampPath = filepath.Join(t.TempDir(), "timestamp")
	cfg.Flake.Random, cfg.Flake.Options = false, formats.Options{"worker_id": 0x030100<<24 | int64(os.Getpid()&(1<<24-1))}
	cfg.Generators = []config.Generator{{Name: "events", Format: "sno", Options: formats.Options{"meta": 7}}}
	s, err := Open(t.Context(), cfg, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	for i, want := range []string{"worker_id", "configuration"} {
		if got := s.List[i].Server.Origin(); got != (idserver.Origin{From: want}) {
			t.Errorf("%+v, want %s", got, want)
		}
	}
	if id, err := s.List[1].Server.Get(t.Context(), idserver.Meta{}); err != nil ||
		formats.KindOf("sno").Format(nil).Fields(id)[2].Value != 7 {
		t.Errorf("%v, %v", id, err)
	}
}

// An assigned number sets the keys that the configuration names, and is reported.
func TestAssigned(t *testing.T) {
	all, err := plans(config.Config{Flake: config.Flake{Generator: config.Generator{
		Format: "flake", Assigned: []string{"worker_id"},
	}}, Generators: []config.Generator{
		{Name: "ids", Format: "flake-idgen", Assigned: []string{"datacenter", "worker"}},
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"01:00:00:00:01:27 (assigned number 295)", "datacenter 9, worker 7"} {
		if _, who, err := all[i].plan(295); err != nil || who != want || !all[i].chosen {
			t.Errorf("%s, %v, want %s", who, err, want)
		}
	}
}

// All formats use the configured clock.
func TestClockOfGenerators(t *testing.T) {
	clockOf := func(name string) func() uint64 {
		return hostOf(config.Config{Flake: config.Flake{Clock: name}}, nil).Clock
	}
	if clockOf(config.ClockWall) != nil || clockOf(config.ClockMonotonic) == nil {
		t.Error("the generators do not use the configured clock")
	}
	const milli = uint64(1_700_000_000_000)
	o := flake.Options{Clock: func() uint64 { return milli }}
	for _, k := range formats.Kinds {
		format := k.Name
		g := Generator{Generator: config.Generator{Format: format, Assigned: k.Numbers[0]}}
		p, _, err := g.plan(1)
		if err != nil {
			t.Fatal(err)
		}
		ids, err := p.Open(t.Context(), filepath.Join(t.TempDir(), "mark"), o)
		if err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		if _, err := ids.Reserve(t.Context(), 1, 0); err != nil {
			t.Errorf("%s: %v", format, err)
		}
		if last, _ := ids.Last(); last != milli {
			t.Errorf("%s: the id's time is %d, want %d", format, last, milli)
		}
		if err := ids.Close(); err != nil {
			t.Error(err)
		}
	}
}

// At startup, the node lists the generators whose number has few bits and was set by hand.
func TestHandNumbered(t *testing.T) {
	got := handNumbered([]config.Generator{
		{Name: "a", Format: "snowflake"}, {Name: "b", Format: "flake"}, {Name: "c", Format: "sno"},
		{Name: "d", Format: "flake-idgen", Assigned: []string{"id"}}, {Name: "e", Format: "flake-idgen"},
	})
	if want := []string{"a", "c", "e"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A number set by hand must not be a number of another node in the store, unless the ids still differ.
func TestFits(t *testing.T) {
	of := func(format string, o formats.Options, assigned ...string) config.Generator {
		return config.Generator{Name: "ids", Format: format, Options: o, Assigned: assigned}
	}
	assigned := of("sno", formats.Options{"sequence_min": 100}, "partition")
	split := of("snowflake", nil, "datacenter", "worker")
	for _, tt := range []struct {
		hand   config.Generator
		others []config.Generator
		ok     bool
	}{
		{of("snowflake", formats.Options{"id": 7}), nil, false},
		{of("snowflake", formats.Options{"id": 40}), nil, false},
		{of("snowflake", formats.Options{"id": 5}), nil, true}, // the node's own
		{of("snowflake", formats.Options{"id": 8}), nil, true},
		{of("snowflake", formats.Options{"datacenter": 1, "worker": 8}), nil, false},
		{of("snowflake", formats.Options{"datacenter": 0, "worker": 8}), nil, true},
		{of("flake-idgen", formats.Options{"id": 1023}), nil, true},
		{of("snowflake", formats.Options{"id": 14, "machine_bits": 11}), []config.Generator{split}, false},
		{of("snowflake", formats.Options{"id": 15, "machine_bits": 11}), []config.Generator{split}, false},
		{of("snowflake", formats.Options{"id": 16, "machine_bits": 11}), []config.Generator{split}, true},
		{of("snowflake", formats.Options{"id": 7, "epoch": 5}), []config.Generator{split}, false},
		{of("sno", formats.Options{"partition": 2000}), nil, false},
		{of("sno", formats.Options{"partition": 2000, "sequence_max": 99}), []config.Generator{assigned}, true},
		{of("sno", formats.Options{"partition": 2000, "sequence_max": 100}), []config.Generator{assigned}, false},
		{of("flake", formats.Options{"worker_id": 7}), nil, true},
		{of("snowflake", nil, "id"), nil, true},
	} {
		cfg := config.Config{Generators: append(tt.others, tt.hand)}
		err := fits(cfg, 5, []workers.Entry{{Number: 5}, {Number: 7}, {Number: 40}, {Number: 2000}})
		if (err == nil) != tt.ok {
			t.Errorf("%+v beside %+v: %v", tt.hand, tt.others, err)
		}
	}
	if err := fits(config.Config{Generators: []config.Generator{of("sno", nil)}}, 5, nil); err != nil {
		t.Error(err)
	}
}

// A rehearsal, like startup, leaves the store alone if no number is assigned: [numbers] may be there only
// for the command flake workers.
func TestRehearseWithoutNumbers(t *testing.T) {
	cfg := config.Default()
	cfg.Flake.TimestampPath = filepath.Join(t.TempDir(), "timestamp")
	cfg.Flake.Random = true
	cfg.Numbers.On, cfg.Numbers.Store = true, "etcd"
	cfg.Numbers.Keys = stores.Values{"etcd.endpoints": {"127.0.0.1:1"}}
	if r, err := Rehearse(t.Context(), cfg); err != nil || !r.Fits || r.Number != nil {
		t.Errorf("%v, %+v", err, r)
	}
}

// The description of a worker can be read while its generator moves to another number. Needs -race to fail.
func TestWhoWhileMoving(t *testing.T) {
	g := &Generator{Generator: config.Generator{Format: "flake", Assigned: []string{"worker_id"}}}
	open := g.opener(flake.Options{})
	if _, err := open(t.Context(), "", 1, nil); err != nil {
		t.Fatal(err)
	}
	moved := make(chan error)
	go func() {
		_, err := open(t.Context(), "", 2, nil)
		moved <- err
	}()
	if want := "01:00:00:00:00:01 (assigned number 1)"; g.Who != want {
		t.Errorf("%s, want %s", g.Who, want)
	}
	if err := <-moved; err != nil {
		t.Error(err)
	}
}
