package config

import (
	"strings"
	"testing"

	"github.com/flake-go/flake/flake/formats"
)

func TestLoadGenerator(t *testing.T) {
	setHome(t, "SECRET", 0o440) // a node refuses this cookie; a generator needs none
	for _, tt := range []struct {
		flags    []Flag
		numbered bool
		want     string // the error
	}{
		{[]Flag{{"-format", "format", "sno"}}, false, ""},
		{[]Flag{{"-format", "format", "flake"}}, false, ""},
		{[]Flag{{"-format", "format", "uuidv7"}}, false, ""},
		{[]Flag{{"-format", "format", "ulid"}}, true, ""},
		{[]Flag{{"-format", "format", "snowflake"}, {"-epoch", "epoch", "2020-01-01T00:00:00Z"}}, false, ""},
		{[]Flag{{"-format", "format", "sno"}}, true, "-partition: set one that no other node has"},
		{[]Flag{{"-format", "format", "sno"}, {"-partition", "partition", "65536"}}, true,
			"-partition 65536: must be an integer from 0 to 65535"},
		{[]Flag{{"-format", "format", "sno"}, {"-partition", "partition", "x"}}, true,
			`-partition "x": must be an integer from 0 to 65535`},
		{[]Flag{{"-format", "format", "snowflake"}, {"-worker", "worker", "x"}}, true,
			`-worker "x": must be an integer from 0 to 31`},
		{[]Flag{{"-format", "format", "sno"}, {"-partition", "partition", "assigned"}}, true,
			`-partition "assigned": only nodes can take numbers from a store`},
		{[]Flag{{"-format", "format", "snowflake"}, {"-worker", "worker", "assigned"}}, true,
			`-worker "assigned": only nodes can take numbers from a store`},
		{[]Flag{{"-format", "format", "snowflake"}, {"-sequence-bits", "sequence_bits", "23"}}, false,
			"-sequence-bits 23: must be an integer from 0 to 22"},
		{[]Flag{{"-format", "format", "sno"}, {"-id", "id", "1"}}, false,
			`-id "1": not a key of format sno, only of ` + formats.WithKey("id") + "; use partition instead"},
		{[]Flag{{"-format", "format", "flake"}, {"-worker-id", "worker_id", "7"}}, true,
			`-worker-id "7": must be six bytes in hexadecimal, as in "02:00:00:00:00:01", or "random"`},
		{[]Flag{{"-format", "format", "ulid"}, {"-worker-id", "worker_id", "01:00:00:00:01:02"}}, true,
			`-worker-id "01:00:00:00:01:02": is a worker that a store assigns, so another node may get it: ` +
				`set another, as in "02:00:00:00:00:01", or "random"`},
		{[]Flag{{"-format", "format", "cuid"}}, false, `-format "cuid": must be one of "` +
			strings.Join(formats.Names(), `", "`) + `"`},
		{nil, false, `-format "": must be one of "` + strings.Join(formats.Names(), `", "`) + `"`},
	} {
		g, err := LoadGenerator(tt.numbered, tt.flags...)
		switch {
		case err == nil && (tt.want != "" || g.Format != tt.flags[0].Value || g.Name == ""):
			t.Errorf("%v: got %+v, want error %q", tt.flags, g, tt.want)
		case err != nil && err.Error() != tt.want:
			t.Errorf("%v: got error %q, want %q", tt.flags, err, tt.want)
		}
	}
}
