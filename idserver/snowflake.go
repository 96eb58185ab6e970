package idserver

import (
	"strconv"

	"github.com/flake-go/flake/flake/snowflake"
)

// SnowflakeFormat is a format of package snowflake, by its layout; with the bits of
// [snowflake.Idgen] it is flake-idgen's. The number in decimal is its one text of its own.
func SnowflakeFormat(l snowflake.Layout) Format { return snowflakeFormat{l} }

type snowflakeFormat struct{ layout snowflake.Layout }

func (f snowflakeFormat) Name() string {
	l := f.layout
	if l.Epoch = snowflake.Idgen.Epoch; l == snowflake.Idgen {
		return "flake-idgen"
	}
	return "snowflake"
}

func (snowflakeFormat) Size() int  { return 8 }
func (snowflakeFormat) Meta() bool { return false }

func (snowflakeFormat) AppendCanonical(dst []byte, id Number) []byte {
	return strconv.AppendUint(dst, id.Lo, 10)
}

func (snowflakeFormat) Parse(text string) (Number, error) {
	id, err := snowflake.ParseBase(text, 10)
	return Number{Lo: uint64(id)}, err
}

func (f snowflakeFormat) Fields(id Number) []Field {
	p := f.layout.Decompose(snowflake.ID(id.Lo))
	var fields []Field
	l := f.layout
	offset := 64 - int(l.Time+l.Datacenter+l.Worker+l.Sequence)
	add := func(name string, value uint64, width uint8) {
		fields = append(fields, Field{name, value, offset, int(width)})
		offset += int(width)
	}
	add("time", p.Milli, l.Time)
	if l.Datacenter > 0 {
		add("datacenter", uint64(p.Datacenter), l.Datacenter)
		add("worker", uint64(p.Worker), l.Worker)
	} else {
		add("machine", uint64(p.Machine), l.Worker)
	}
	add("sequence", uint64(p.Sequence), l.Sequence)
	return fields
}

func (f snowflakeFormat) Span(first, last uint64) (lowest, highest Number, err error) {
	low, err := f.layout.Make(first, 0, 0)
	if err != nil {
		return Number{}, Number{}, err
	}
	high, err := f.layout.Make(last, 1<<(f.layout.Datacenter+f.layout.Worker)-1, 1<<f.layout.Sequence-1)
	return Number{Lo: uint64(low)}, Number{Lo: uint64(high)}, err
}
