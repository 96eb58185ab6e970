package idserver

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/flake-go/flake/flake/sno"
)

// SnoFormat is the format of package sno: 39 bits of time in units of 4 ms, the
// tick-tock bit, 8 of the caller's, 16 of partition, 16 of sequence. Its own text
// is 16 digits 2-9a-x.
var SnoFormat Format = snoFormat{}

type snoFormat struct{}

func (snoFormat) Name() string { return "sno" }
func (snoFormat) Size() int    { return len(sno.ID{}) }
func (snoFormat) Meta() bool   { return true }

func (snoFormat) AppendCanonical(dst []byte, id Number) []byte {
	dst, _ = id.sno().AppendText(dst)
	return dst
}

func (snoFormat) Parse(text string) (Number, error) {
	id, err := sno.Parse(text)
	return fromSno(id), err
}

func (snoFormat) Fields(n Number) []Field {
	p := n.sno().Decompose()
	var tickTock uint64
	if p.TickTock {
		tickTock = 1
	}
	return []Field{
		{"time", p.Milli, 0, 39},
		{"tick_tock", tickTock, 39, 1},
		{"meta", uint64(p.Meta), 40, 8},
		{"partition", uint64(p.Partition.AsUint16()), 48, 16},
		{"sequence", uint64(p.Sequence), 64, 16},
	}
}

func (snoFormat) Span(first, last uint64) (lowest, highest Number, err error) {
	if first < sno.Epoch || last > sno.MaxMilli {
		return lowest, highest, fmt.Errorf("idserver: ids of sno are of %d to %d ms since 1970", int64(sno.Epoch), int64(sno.MaxMilli))
	}
	low, high := sno.Span(time.UnixMilli(int64(first)), time.UnixMilli(int64(last)))
	return fromSno(low), fromSno(high), nil
}

func fromSno(id sno.ID) Number {
	return Number{uint64(binary.BigEndian.Uint16(id[:2])), binary.BigEndian.Uint64(id[2:])}
}

// sno is for a number that fits.
func (n Number) sno() (id sno.ID) {
	binary.BigEndian.PutUint16(id[:2], uint16(n.Hi))
	binary.BigEndian.PutUint64(id[2:], n.Lo)
	return id
}
