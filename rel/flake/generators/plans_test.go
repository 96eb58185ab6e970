package generators

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/idserver"
)

// Each generator tells where its worker came from, and has a metabyte of its own.
func TestOrigin(t *testing.T) {
	cfg := config.Default()
	cfg.Flake.TimestampPath = filepath.Join(t.TempDir(), "timestamp")
	cfg.Flake.Random, cfg.Flake.WorkerID = false, []byte{3, 1, 0, byte(os.Getpid() >> 16), byte(os.Getpid() >> 8), byte(os.Getpid())}
	cfg.Generators = []config.Generator{{Name: "events", Format: config.FormatSno, Meta: new(int64(7))}}
	s, err := Open(t.Context(), cfg, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	for i, want := range []string{"worker_id", "configuration"} {
		if got := s.List[i].Server.Info().Origin; got != (idserver.Origin{From: want}) {
			t.Errorf("%+v, want %s", got, want)
		}
	}
	if id, err := s.List[1].Server.Get(t.Context()); err != nil || formats.KindOf("sno").Format(nil).Fields(id)[2].Value != 7 {
		t.Errorf("%v, %v", id, err)
	}
}

// A number of etcd goes where the configuration says.
func TestNumberOfEtcd(t *testing.T) {
	for _, tt := range []struct {
		format string
		keys   []string
		want   string
	}{
		{config.FormatFlake, []string{"worker_id"}, "01:00:00:00:01:27"},
		{config.FormatSnowflake, []string{"id"}, "id 295"},
		{config.FormatIdgen, []string{"datacenter", "worker"}, "datacenter 9, worker 7"},
		{config.FormatSno, []string{"partition"}, "partition 295"},
		{config.FormatUUIDv7, []string{"worker_id"}, "01:00:00:00:01:27"},
		{config.FormatULID, []string{"worker_id"}, "01:00:00:00:01:27"},
	} {
		who, _, _, err := planOf(config.Generator{Format: tt.format, Etcd: tt.keys}, nil)(295)
		if err != nil || who.String() != tt.want {
			t.Errorf("%s, %q: %s, %v, want %s", tt.format, tt.keys, who, err, tt.want)
		}
	}
}

// A snowflake has the bits that the configuration says, and only generators with as many
// below the time are compared.
func TestBitsOfSnowflakes(t *testing.T) {
	bits := func(time, machine, sequence *int64) (string, place) {
		who, where, _, err := planOf(config.Generator{
			Format: config.FormatSnowflake, ID: new(int64(3)), TimeBits: time, MachineBits: machine, SequenceBits: sequence}, nil)(0)
		if err != nil {
			t.Fatal(err)
		}
		return who.String(), where
	}
	_, usual := bits(nil, nil, nil)
	_, other := bits(nil, new(int64(10)), new(int64(12)))
	_, most := bits(nil, new(int64(2)), new(int64(20)))
	who, few := bits(new(int64(40)), new(int64(9)), new(int64(4)))
	if who != "id 3, until 2045-09-06T21:36:42Z" || few.last != 3<<4|15 {
		t.Errorf("%s, up to %d", who, few.last)
	}
	if !usual.overlaps(other) || usual.overlaps(most) || most.last != 1<<22-1 || usual.overlaps(few) || few.overlaps(most) {
		t.Errorf("%+v, %+v, %+v", usual, most, few)
	}
}

// All formats have the clock that the configuration says.
func TestClockOfGenerators(t *testing.T) {
	if clockOf(config.Flake{Clock: config.ClockWall}) != nil || clockOf(config.Flake{Clock: config.ClockMonotonic}) == nil {
		t.Error("not the clock that is configured")
	}
	const milli = 1_700_000_000_000
	o := flake.Options{Clock: func() uint64 { return milli }}
	for _, format := range config.Formats {
		_, _, open, err := planOf(config.Generator{
			Format: format, ID: new(int64(1)), Partition: new(int64(1)), WorkerID: net.HardwareAddr{2, 0, 0, 0, 0, 1}}, nil)(0)
		if err != nil {
			t.Fatal(err)
		}
		ids, err := open(t.Context(), filepath.Join(t.TempDir(), "mark"), o)
		if err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		if _, err := ids.Reserve(t.Context(), 1, 0); err != nil {
			t.Errorf("%s: %v", format, err)
		}
		if last, _ := ids.Last(); last != milli {
			t.Errorf("%s: an id of %d", format, last)
		}
		if err := ids.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The start names the generators whose few bits for a machine come from the configuration.
func TestHandNumbered(t *testing.T) {
	got := handNumbered([]config.Generator{
		{Name: "a", Format: config.FormatSnowflake}, {Name: "b", Format: config.FormatFlake}, {Name: "c", Format: config.FormatSno},
		{Name: "d", Format: config.FormatIdgen, Etcd: []string{"id"}}, {Name: "e", Format: config.FormatIdgen},
	})
	if want := []string{"a", "c", "e"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
