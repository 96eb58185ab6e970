package main

import (
	"flag"
	"slices"
	"strings"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/idserver"
)

// formatOf is the format of a generator's ids.
func formatOf(g config.Generator) idserver.Format {
	switch g.Format {
	case config.FormatFlake:
		return idserver.FlakeFormat
	case config.FormatSno:
		return idserver.SnoFormat
	case config.FormatUUIDv7:
		return idserver.UUIDv7Format
	case config.FormatULID:
		return idserver.ULIDFormat
	}
	return idserver.SnowflakeFormat(layoutOf(g))
}

// A keyFlag is a flag that stands for a key of a table [[generator]].
type keyFlag struct {
	key, does string
	layout    bool // it is about how ids are laid out, not how they are made
}

var keyFlags = []keyFlag{
	{"format", "the format of the ids, `" + strings.Join(config.Formats, "|") + "`", true},
	{"epoch", "the `TIME` that ids of flake-idgen or snowflake count from, such as 2020-01-01T00:00:00Z", true},
	{"time_bits", "how many `BITS` the time has in ids of snowflake", true},
	{"machine_bits", "how many `BITS` the machine has in ids of snowflake", true},
	{"sequence_bits", "how many `BITS` the sequence has in ids of snowflake", true},
	{"worker_id", "the worker of ids of flake, uuidv7 or ulid, a `MAC` such as 02:00:00:00:00:01, or random", false},
	{"id", "the machine's `NUMBER` in ids of flake-idgen or snowflake", false},
	{"datacenter", "the upper half of the machine's `NUMBER`", false},
	{"worker", "the lower half of the machine's `NUMBER`", false},
	{"seq_mask", "the highest sequence `NUMBER` of flake-idgen, a mask", false},
	{"random_start", "`true` has the sequence of snowflake start anywhere in each millisecond", false},
	{"partition", "the partition's `NUMBER` in ids of sno", false},
	{"meta", "the metabyte's `NUMBER` in ids of sno, 0 to 255", false},
	{"sequence_min", "the lowest sequence `NUMBER` of sno", false},
	{"sequence_max", "the highest sequence `NUMBER` of sno", false},
}

// keys adds the flags for keys of a generator, all of them or those about the layout.
func (f *flags) keys(all bool) {
	for _, k := range keyFlags {
		if all || k.layout {
			f.String(strings.ReplaceAll(k.key, "_", "-"), "", k.does)
		}
	}
}

// given returns those of [flags.keys] that were given.
func (f *flags) given() (given []config.Flag) {
	f.Visit(func(set *flag.Flag) {
		key := strings.ReplaceAll(set.Name, "-", "_")
		if slices.ContainsFunc(keyFlags, func(k keyFlag) bool { return k.key == key }) {
			given = append(given, config.Flag{Name: "-" + set.Name, Key: key, Value: set.Value.String()})
		}
	})
	return given
}
