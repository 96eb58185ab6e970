package main

import (
	"fmt"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/sno"
	"github.com/flake-go/flake/flake/snowflake"
)

// place distinguishes a generator's ids from others of their kind: the bits besides
// the time, from first to last. Ids of two kinds are never compared.
type place struct {
	who         string // for people
	kind        string
	first, last uint64
	chosen      bool // by the configuration, not by the machine's network card
}

func (p place) overlaps(other place) bool {
	return p.kind == other.kind && p.first <= other.last && other.first <= p.last
}

func flakePlace(w flake.Worker, chosen bool) place {
	return place{"worker_id " + w.String(), "flake", uint64(w), uint64(w), chosen}
}

// snowflakePlace puts ids of flake-idgen and snowflake in one kind if they share an
// epoch, however they split the bits below the time.
func snowflakePlace(l snowflake.Layout, machine snowflake.Machine) place {
	first := uint64(machine) << l.Sequence
	return place{
		fmt.Sprintf("id %d of %d bits with epoch %d ms", machine, l.Datacenter+l.Worker, l.Epoch),
		fmt.Sprintf("snowflake since %d", l.Epoch), first, first | (1<<l.Sequence - 1), true,
	}
}

func snoPlace(s *sno.Snapshot) place {
	first := uint64(s.Partition.AsUint16()) << 16
	return place{
		fmt.Sprintf("partition %d of format sno with sequence numbers %d to %d", s.Partition.AsUint16(), s.SequenceMin, s.SequenceMax),
		"sno", first | uint64(s.SequenceMin), first | uint64(s.SequenceMax), true,
	}
}
