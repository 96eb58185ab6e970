package formats

import (
	"context"
	"fmt"
	"math"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/sno"
)

var snos = &Kind{
	Name: "sno", Numbers: [][]string{{"partition"}},
	Keys: []*Key{
		{Name: "partition", To: sno.MaxPartition, Does: "the partition's `NUMBER`"},
		{Name: "meta", To: math.MaxUint8, Does: "the metabyte, a `NUMBER` from 0 to 255"},
		{Name: "sequence_min", To: sno.MaxSequence, Does: "the lowest sequence `NUMBER`"},
		{Name: "sequence_max", To: sno.MaxSequence, Does: "the highest sequence `NUMBER`"}},
	Format: func(Options) *Format { return snoFormat },
	Check: func(o Options) []Fault {
		if o.has("sequence_min") && o.has("sequence_max") && o["sequence_min"] >= o["sequence_max"] {
			return []Fault{{"sequence_max", "must be more than sequence_min"}}
		}
		return nil
	},
	Plan: func(o Options) (Plan, error) {
		s := &sno.Snapshot{SequenceMin: uint16(o["sequence_min"]), SequenceMax: uint16(o.or("sequence_max", sno.MaxSequence))}
		partition := uint64(o["partition"])
		s.Partition.PutUint16(uint16(partition))
		return Plan{
			fmt.Sprintf("partition %d", partition), partition,
			Range{
				"partition",
				fmt.Sprintf("%d of format sno with sequence numbers %d to %d", partition, s.SequenceMin, s.SequenceMax),
				"sno", partition<<16 | uint64(s.SequenceMin), partition<<16 | uint64(s.SequenceMax),
			},
			func(ctx context.Context, path string, o flake.Options) (Generator, error) {
				so := sno.Options{
					Clock: o.Clock, AllowableDowntime: o.AllowableDowntime, Logger: o.Logger, Saved: o.Saved,
					Marks: o.Marks, Bound: o.Bound,
				}
				if path == "" && o.Marks == nil {
					return opened(Sno)(sno.NewGenerator(s, so))
				}
				return opened(Sno)(sno.Open(ctx, path, s, so))
			},
		}, nil
	},
}

var snoFormat = Format{
	Name: "sno", Size: sno.SizeBinary, Unordered: 8 * sno.SizeBinary,
	epoch: sno.Epoch, unit: uint64(sno.Unit.Milliseconds()),
	fields: []Field{
		{"time", 0, 0, 39}, {"tick_tock", 0, 0, 1}, {"meta", 0, 0, 8}, {"partition", 0, 0, 16}, {"sequence", 0, 0, 16},
	},
	append: func(dst []byte, id Number) ([]byte, error) {
		octets := id.flake()
		return sno.ID(octets[maxOctets-sno.SizeBinary:]).AppendText(dst)
	},
	parse: func(text string) (Number, error) {
		id, err := sno.Parse(text)
		return ofSno(id), err
	},
}.made()

func ofSno(id sno.ID) Number { return NumberOf(string(id[:])) }

// Sno adapts a generator of package sno. The worker is the partition.
func Sno(ids *sno.Generator) Generator {
	return &generator[sno.ID, uint16]{ids, snoFormat, uint64(ids.Partition().AsUint16()), ofSno}
}
