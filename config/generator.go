package config

import (
	"fmt"
	"math"
	"net"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Generator is a table [[generator]]: one more gen_server that hands out ids. A nil
// option is not in the file.
type Generator struct {
	Name   string // registered name
	Format string // one of Formats

	Epoch      *time.Time       // where its time starts
	ID         *int64           // the machine's number in all its bits, or
	Datacenter *int64           // its upper bits, and
	Worker     *int64           // its lower
	WorkerID   net.HardwareAddr // of flake, uuidv7 and ulid: six bytes
	Random     bool             // of these: the worker id is made up, and kept beside the mark
	Etcd       []string         // the keys whose number is from etcd: one of them, or datacenter and worker

	SequenceMask *int64 // of flake-idgen: its seqMask
	MachineBits  *int64 // of snowflake: how many bits ID has,
	SequenceBits *int64 // its sequence,
	TimeBits     *int64 // and its time
	RandomStart  bool   // of snowflake: the sequence of each millisecond starts anywhere
	Partition    *int64 // of sno
	Meta         *int64 // of sno
	SequenceMin  *int64 // of sno
	SequenceMax  *int64 // of sno
}

// The values of Generator.Format.
const (
	FormatFlake     = "flake"
	FormatIdgen     = "flake-idgen"
	FormatSnowflake = "snowflake"
	FormatSno       = "sno"
	FormatUUIDv7    = "uuidv7"
	FormatULID      = "ulid"
)

// Formats are the values of Generator.Format.
var Formats = []string{FormatFlake, FormatIdgen, FormatSnowflake, FormatSno, FormatUUIDv7, FormatULID}

// WorkerFormats are those whose ids have a worker of 48 bits.
var WorkerFormats = []string{FormatFlake, FormatUUIDv7, FormatULID}

// MaxGenerators bounds how many tables [[generator]] there may be. Each has a line in the
// file that is written every second.
const MaxGenerators = 64

// The bits of a snowflake: the defaults, and how many there are at most.
const (
	defaultTimeBits    = 41
	defaultMachineBits = 10
	maxTimeBits        = 46
	maxLowBits         = 22 // of machine and sequence
	maxBits            = 63 // in all
)

// generatorKey returns the key in faults of the i-th table [[generator]], from 0.
func generatorKey(i int) string { return fmt.Sprintf("generator[%d]", i+1) }

// settings lists the keys of the i-th table.
func (g *Generator) settings(i int) []setting {
	key := generatorKey(i) + "."
	whole := func(name string, p **int64, from, to int64) setting {
		return setting{key + name, fmt.Sprintf("a whole number from %d to %d wanted", from, to), setNumber(p),
			func() bool { return *p == nil || from <= **p && **p <= to },
			func() string { return showOption(*p) }}
	}
	number := func(name string, p **int64, from, to int64, formats ...string) setting {
		return g.option(whole(name, p, from, to), formats...)
	}
	etcd := func(s setting) setting {
		s.set = orEtcd(func() { g.Etcd = append(g.Etcd, base(s.key)) }, s.set)
		own := s.value
		s.value = func() string {
			if slices.Contains(g.Etcd, base(s.key)) {
				return fmt.Sprintf("%q", fromEtcd)
			}
			return own()
		}
		return s
	}
	orNumber := func(name string, p **int64, from, to int64, formats ...string) setting {
		s := etcd(whole(name, p, from, to))
		s.want = strings.Replace(s.want, " wanted", `, or "etcd", wanted`, 1)
		return g.option(s, formats...)
	}
	_, idBits, _ := g.Bits()
	return []setting{
		{key + "name", "a name wanted that the node has not got itself: a letter from a to z, then at most 63 letters, digits and _",
			setString(&g.Name), func() bool { return generatorName.MatchString(g.Name) && !slices.Contains(taken, g.Name) },
			func() string { return fmt.Sprintf("%q", g.Name) }},
		{key + "format", `"` + strings.Join(Formats, `", "`) + `" wanted`,
			setString(&g.Format), func() bool { return slices.Contains(Formats, g.Format) },
			func() string { return fmt.Sprintf("%q", g.Format) }},
		g.option(setting{key + "epoch", "a time from 1970 on wanted, as in 2020-01-01T00:00:00Z", setTime(&g.Epoch),
			func() bool { return g.Epoch == nil || g.Epoch.UnixMilli() >= 0 },
			func() string { return showOption(g.Epoch) }}, FormatIdgen, FormatSnowflake),
		orNumber("id", &g.ID, 0, 1<<idBits-1, FormatIdgen, FormatSnowflake),
		orNumber("datacenter", &g.Datacenter, 0, 31, FormatIdgen, FormatSnowflake),
		orNumber("worker", &g.Worker, 0, 31, FormatIdgen, FormatSnowflake),
		g.option(etcd(setting{key + "worker_id", wantMAC, orRandom(&g.Random, setMAC(&g.WorkerID)),
			func() bool { return true }, func() string { return showWorker(g.WorkerID, g.Random) }}), WorkerFormats...),
		number("seq_mask", &g.SequenceMask, 1, 1<<12-1, FormatIdgen),
		number("machine_bits", &g.MachineBits, 0, maxLowBits, FormatSnowflake),
		number("sequence_bits", &g.SequenceBits, 0, maxLowBits, FormatSnowflake),
		number("time_bits", &g.TimeBits, 1, maxTimeBits, FormatSnowflake),
		g.option(setting{key + "random_start", "true or false wanted", setBool(&g.RandomStart),
			func() bool { return true }, func() string { return fmt.Sprint(g.RandomStart) }}, FormatSnowflake),
		orNumber("partition", &g.Partition, 0, math.MaxUint16, FormatSno),
		number("meta", &g.Meta, 0, math.MaxUint8, FormatSno),
		number("sequence_min", &g.SequenceMin, 0, math.MaxUint16, FormatSno),
		number("sequence_max", &g.SequenceMax, 0, math.MaxUint16, FormatSno),
	}
}

// Bits returns how many bits a snowflake has for time, machine and sequence.
func (g *Generator) Bits() (time, machine, sequence int64) {
	bits := func(p *int64, otherwise, most int64) int64 {
		if p == nil {
			return otherwise
		}
		return min(max(*p, 0), most)
	}
	machine = bits(g.MachineBits, defaultMachineBits, maxLowBits)
	return bits(g.TimeBits, defaultTimeBits, maxTimeBits), machine, bits(g.SequenceBits, maxLowBits-machine, maxLowBits)
}

// bitFaults are those of a snowflake's bits, each of which is in range.
func (g *Generator) bitFaults(fault func(name, value, want string)) {
	time, machine, sequence := g.Bits()
	if low := machine + sequence; low > maxLowBits {
		fault("sequence_bits", fmt.Sprint(sequence),
			fmt.Sprintf("at most %d wanted, as machine_bits is %d and both have %d at most", maxLowBits-machine, machine, maxLowBits))
	} else if time+low > maxBits {
		fault("time_bits", fmt.Sprint(time),
			fmt.Sprintf("at most %d wanted, as machine and sequence have %d and all have %d at most", maxBits-low, low, maxBits))
	}
}

// draw has the worker ids that nothing is said of be random.
func (c *Config) draw() {
	f := &c.Flake
	f.Random = f.Random || f.Interface == "" && f.WorkerID == nil && !f.Etcd
	for i := range c.Generators {
		g := &c.Generators[i]
		g.Random = g.Random || slices.Contains(WorkerFormats, g.Format) && g.WorkerID == nil && len(g.Etcd) == 0
	}
}

// numberKeys are the keys of the number that other nodes may not have, of any format.
var numberKeys = []string{"id", "datacenter", "worker", "worker_id", "partition"}

// numberKey is that of the generator's format.
func (g *Generator) numberKey() string {
	switch g.Format {
	case FormatFlake, FormatUUIDv7, FormatULID:
		return "worker_id"
	case FormatSno:
		return "partition"
	}
	return "id"
}

// maxNumber is the highest that may come from etcd.
func (g *Generator) maxNumber() uint64 {
	if g.numberKey() != "id" {
		return math.MaxUint16
	}
	_, bits, _ := g.Bits()
	return 1<<bits - 1
}

// option is a setting that other formats than these refuse.
func (g *Generator) option(s setting, formats ...string) setting {
	if !slices.Contains(Formats, g.Format) || slices.Contains(formats, g.Format) {
		return s
	}
	last := len(formats) - 1
	others := strings.Join(formats[:last], ", ")
	if others != "" {
		others += " and "
	}
	s.want = fmt.Sprintf("a key of format %s, not of %s", others+formats[last], g.Format)
	if slices.Contains(numberKeys, base(s.key)) {
		s.want += ", which has " + g.numberKey()
	}
	s.set = func(any) bool { return false }
	return s
}

// taken are the names of the node's own servers.
var taken = []string{"flake", "flake_sup", "persistent_timer", "net_kernel", "rex", "kernel_sup", "init"}

// generatorName matches an atom without quotes that can be part of a file's name.
var generatorName = regexp.MustCompile(`^[a-z][0-9A-Za-z_]{0,63}$`)

// faults returns the faults of the i-th table besides single values.
func (g *Generator) faults(i int, before []Generator) []*Error {
	key := generatorKey(i)
	var faults []*Error
	fault := func(name, value, want string) {
		faults = append(faults, &Error{Key: key + "." + name, Value: value, Want: want})
	}
	fromEtcd := func(name string) bool { return slices.Contains(g.Etcd, name) }
	id := `"etcd"`
	if g.ID != nil {
		id = fmt.Sprint(*g.ID)
	}
	halves := g.Datacenter != nil || g.Worker != nil || fromEtcd("datacenter") || fromEtcd("worker")
	switch {
	case g.Format == FormatSno && g.Partition == nil && len(g.Etcd) == 0:
		fault("partition", "", "one wanted that no other node has")
	case (g.Format == FormatIdgen || g.Format == FormatSnowflake) && g.ID == nil && !fromEtcd("id") && !halves:
		fault("id", "", "one wanted that no other node has, or datacenter and worker")
	case (g.ID != nil || fromEtcd("id")) && halves:
		fault("id", id, "either id or datacenter and worker wanted")
	case fromEtcd("datacenter") != fromEtcd("worker"):
		fault(g.Etcd[0], `"etcd"`, "datacenter and worker are one number of etcd: wanted for both, or for neither")
	case g.MachineBits != nil && *g.MachineBits != defaultMachineBits && halves:
		fault("machine_bits", fmt.Sprint(*g.MachineBits),
			fmt.Sprintf("datacenter and worker have %d bits together: id wanted instead", defaultMachineBits))
	case g.SequenceMin != nil && g.SequenceMax != nil && *g.SequenceMin >= *g.SequenceMax:
		fault("sequence_max", fmt.Sprint(*g.SequenceMax), "more than sequence_min wanted")
	}
	if g.Format == FormatSnowflake {
		g.bitFaults(fault)
	}
	for j, other := range before {
		if other.Name == g.Name {
			fault("name", fmt.Sprintf("%q", g.Name), generatorKey(j)+" has this name: another wanted")
		}
		if g.sharesPartition(other) {
			low, high := g.Sequences()
			if otherLow, otherHigh := other.Sequences(); low <= otherHigh && otherLow <= high {
				fault("partition", fmt.Sprint(*g.Partition),
					fmt.Sprintf("%s has it with sequence numbers %d to %d: another wanted, or others", generatorKey(j), otherLow, otherHigh))
			}
		}
	}
	return faults
}

// sharesPartition reports whether both have format sno and the same partition.
func (g *Generator) sharesPartition(other Generator) bool {
	return g.Format == FormatSno && other.Format == FormatSno &&
		g.Partition != nil && other.Partition != nil && *g.Partition == *other.Partition
}

// Sequences returns the lowest and the highest number of sno's sequence.
func (g *Generator) Sequences() (low, high int64) {
	high = math.MaxUint16
	if g.SequenceMin != nil {
		low = *g.SequenceMin
	}
	if g.SequenceMax != nil {
		high = *g.SequenceMax
	}
	return low, high
}

// generators takes the tables [[generator]] out of a document, and adds their values.
func (c *Config) generators(doc map[string]any, values map[string]any) *Error {
	const table = "generator"
	v, ok := doc[table]
	if !ok {
		return nil
	}
	list, ok := v.([]map[string]any)
	if !ok {
		return &Error{Key: table, Value: show(table, v), Want: "a table [[generator]] for each wanted"}
	}
	if len(list) > MaxGenerators {
		return &Error{Key: table, Want: fmt.Sprintf("%d of them, and at most %d wanted", len(list), MaxGenerators)}
	}
	c.Generators = make([]Generator, len(list))
	for i, keys := range list {
		c.Generators[i].Format, _ = keys["format"].(string)
		for name, v := range keys {
			values[generatorKey(i)+"."+name] = v
		}
	}
	return nil
}

// showOption writes a value as in the file, or nothing if it is not set.
func showOption[T any](p *T) string {
	if p == nil {
		return ""
	}
	return show("", any(*p))
}

func setNumber(p **int64) func(any) bool {
	return func(v any) bool {
		n, ok := v.(int64)
		if ok {
			*p = &n
		}
		return ok
	}
}

func setTime(p **time.Time) func(any) bool {
	return func(v any) bool {
		t, ok := v.(time.Time)
		if ok {
			*p = &t
		}
		return ok
	}
}
