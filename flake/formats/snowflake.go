package formats

import (
	"context"
	"fmt"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/snowflake"
)

// The default and maximum numbers of bits in a snowflake.
const (
	defaultTimeBits    = 41
	defaultMachineBits = 10
	maxTimeBits        = 46
	maxLowBits         = 22 // machine and sequence together
	maxBits            = 63 // all fields together
)

// The keys of both kinds, snowflake and flake-idgen.
var (
	keyEpoch = &Key{Name: "epoch", Type: Time, Layout: true,
		Does: "the `TIME` that ids count from, such as 2020-01-01T00:00:00Z"}
	keyID = &Key{Name: "id", Does: "the machine's `NUMBER`",
		limit: func(o Options) int64 { _, machine, _ := bitsOf(o); return 1<<machine - 1 }}
	keyDatacenter = &Key{Name: "datacenter", To: 31, Does: "the upper half of the machine's `NUMBER`"}
	keyWorker     = &Key{Name: "worker", To: 31, Does: "the lower half of the machine's `NUMBER`"}
)

var machines = [][]string{{keyID.Name}, {keyDatacenter.Name, keyWorker.Name}}

var idgens = &Kind{
	Name: "flake-idgen", Numbers: machines,
	Keys: []*Key{keyEpoch, keyID, keyDatacenter, keyWorker,
		{Name: "seq_mask", From: 1, To: 1<<12 - 1, Does: "the highest sequence `NUMBER`, a mask"}},
	Format: func(o Options) *Format { return SnowflakeFormat(idgenLayout(o)) },
	Plan: func(o Options) (Plan, error) {
		return planSnowflake(o, idgenLayout(o), snowflake.Options{SequenceMask: int(o["seq_mask"])})
	},
}

func idgenLayout(o Options) snowflake.Layout {
	l := snowflake.Idgen
	l.Epoch = uint64(o.or(keyEpoch.Name, int64(l.Epoch)))
	return l
}

var snowflakes = &Kind{
	Name: "snowflake", Numbers: machines,
	Keys: []*Key{keyEpoch, keyID, keyDatacenter, keyWorker,
		{Name: "machine_bits", To: maxLowBits, Layout: true, Does: "how many `BITS` the machine has"},
		{Name: "sequence_bits", To: maxLowBits, Layout: true, Does: "how many `BITS` the sequence has"},
		{Name: "time_bits", From: 1, To: maxTimeBits, Layout: true, Does: "how many `BITS` the time has"},
		{Name: "random_start", Type: Bool, Does: "`true` starts the sequence anywhere in each millisecond"}},
	Format: func(o Options) *Format { return SnowflakeFormat(twitterLayout(o)) },
	Check:  checkSnowflake,
	Plan: func(o Options) (Plan, error) {
		return planSnowflake(o, twitterLayout(o), snowflake.Options{RandomStart: o["random_start"] != 0})
	},
}

// bitsOf returns the number of bits of each field, within its limits.
func bitsOf(o Options) (time, machine, sequence int64) {
	time = min(max(o.or("time_bits", defaultTimeBits), 0), maxTimeBits)
	machine = min(max(o.or("machine_bits", defaultMachineBits), 0), maxLowBits)
	return time, machine, min(max(o.or("sequence_bits", maxLowBits-machine), 0), maxLowBits)
}

func checkSnowflake(o Options) (faults []Fault) {
	time, machine, sequence := bitsOf(o)
	if machine != defaultMachineBits && (o.has(keyDatacenter.Name) || o.has(keyWorker.Name)) && !o.has(keyID.Name) {
		faults = append(faults, Fault{"machine_bits",
			fmt.Sprintf("datacenter and worker have %d bits together: set id instead", defaultMachineBits)})
	}
	switch low := machine + sequence; {
	case low > maxLowBits:
		faults = append(faults, Fault{"sequence_bits",
			fmt.Sprintf("must be at most %d, because machine_bits is %d and both together have at most %d",
				maxLowBits-machine, machine, maxLowBits)})
	case time+low > maxBits:
		faults = append(faults, Fault{"time_bits",
			fmt.Sprintf("must be at most %d, because machine and sequence have %d and all together have at most %d",
				maxBits-low, low, maxBits)})
	}
	return faults
}

func twitterLayout(o Options) snowflake.Layout {
	time, machine, sequence := bitsOf(o)
	l := snowflake.Layout{
		Time: uint8(time), Worker: uint8(machine), Sequence: uint8(sequence),
		Epoch: uint64(o.or(keyEpoch.Name, int64(snowflake.Twitter.Epoch))),
	}
	if !o.has(keyID.Name) {
		l.Datacenter, l.Worker = 5, 5
	}
	return l
}

// planSnowflake plans a generator of either kind. Two layouts share a space if they have the
// same epoch and the same number of bits below the time, whatever their fields.
func planSnowflake(o Options, l snowflake.Layout, so snowflake.Options) (p Plan, err error) {
	machine := snowflake.Machine(o[keyID.Name])
	p.Who = fmt.Sprintf("id %d", machine)
	if !o.has(keyID.Name) {
		if machine, err = l.Machine(int(o[keyDatacenter.Name]), int(o[keyWorker.Name])); err != nil {
			return Plan{}, err
		}
		p.Who = fmt.Sprintf("datacenter %d, worker %d", o[keyDatacenter.Name], o[keyWorker.Name])
	}
	if o.has("time_bits") {
		p.Who += ", until " + l.Last().Format(time.RFC3339)
	}
	p.Worker = uint64(machine)
	p.Range = Range{
		Key: keyID.Name, Value: fmt.Sprintf("%d (%d bits, epoch %d ms)", machine, l.Datacenter+l.Worker, l.Epoch),
		Space: fmt.Sprintf("snowflake since %d", l.Epoch), First: uint64(machine) << l.Sequence,
	}
	if low := l.Datacenter + l.Worker + l.Sequence; low != 22 {
		p.Range.Space = fmt.Sprintf("%s above %d bits", p.Range.Space, low)
	}
	p.Range.Last = p.Range.First | (1<<l.Sequence - 1)
	p.Open = func(ctx context.Context, path string, o flake.Options) (Generator, error) {
		so.Clock, so.AllowableDowntime, so.Logger = o.Clock, o.AllowableDowntime, o.Logger
		so.Saved, so.Marks, so.Bound = o.Saved, o.Marks, o.Bound
		if path == "" && o.Marks == nil {
			return opened(Snowflake)(l.NewGenerator(machine, so))
		}
		return opened(Snowflake)(l.Open(ctx, path, machine, so))
	}
	return p, nil
}

// SnowflakeFormat returns the format of a layout, named flake-idgen if the layout has the bits
// of [snowflake.Idgen]. The canonical text is the number in decimal.
func SnowflakeFormat(l snowflake.Layout) *Format {
	f := Format{
		Name: "snowflake", Size: 8, epoch: l.Epoch, unit: 1, Unordered: int(l.Datacenter + l.Worker + l.Sequence),
		append: func(dst []byte, id Number) ([]byte, error) { return snowflake.ID(id.Lo).AppendText(dst) },
		parse: func(text string) (Number, error) {
			id, err := snowflake.Parse(text)
			if err == nil {
				_, err = l.Decompose(id)
			}
			return ofSnowflake(id, err)
		},
	}
	bits := l
	if bits.Epoch = snowflake.Idgen.Epoch; bits == snowflake.Idgen {
		f.Name = "flake-idgen"
	}
	add := func(name string, width uint8) { f.fields = append(f.fields, Field{Name: name, Width: int(width)}) }
	add("time", l.Time)
	f.fields[0].Offset = 64 - int(l.Time+l.Datacenter+l.Worker+l.Sequence)
	if l.Datacenter > 0 {
		add("datacenter", l.Datacenter)
		add("worker", l.Worker)
	} else {
		add("machine", l.Worker)
	}
	add("sequence", l.Sequence)
	return f.made()
}

// Snowflake adapts a generator of package snowflake, for either kind.
func Snowflake(ids *snowflake.Generator) Generator {
	number := func(id snowflake.ID) Number { return Number{Lo: uint64(id)} }
	return &generator[snowflake.ID, uint32]{ids, SnowflakeFormat(ids.Layout()), uint64(ids.Machine()), number}
}
