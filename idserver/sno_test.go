package idserver

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/flake/sno"
)

// All calls work with sno ids. The last id is from 2026-01-01.
func TestSno(t *testing.T) {
	const milli = 1767225600000
	ids, err := sno.Open(t.Context(), filepath.Join(t.TempDir(), "timestamp"),
		&sno.Snapshot{Partition: sno.Partition{'A', 10}},
		sno.Options{Clock: func() uint64 { return milli + 3 }})
	if err != nil {
		t.Fatal(err)
	}
	defer ids.Close()
	s := &Server{IDs: formats.Sno(ids)}
	text := func(id formats.Number, err error) (string, error) {
		return string(formats.KindOf("sno").Format(nil).Append(nil, id, formats.Canonical)), err
	}
	expect(t, "9d5ve822232im222")(text(s.Get(t.Context(), Meta{})))
	expect(t, "9d5ve822232im223")(text(s.Get(t.Context(), Meta{0, true})))
	expect(t, "9d5ve822xv2im224")(text(s.Get(t.Context(), Meta{255, true})))
	expect(t, "[{{15047 15427080524648808451} 3 sno}]")( // 3AC7D6180000410A0003
		s.Take(t.Context(), KindLease, 3, Meta{}, nil))
	expect(t, "[{{15047 15427081619865468934} 3 sno}]")( // 3AC7D61800FF410A0006
		s.Take(t.Context(), KindLease, 3, Meta{255, true}, nil))
	s.Meta = 255
	expect(t, "9d5ve822xv2im22b")(text(s.Get(t.Context(), Meta{})))
	expect(t, "9d5ve822232im22c")(text(s.Get(t.Context(), Meta{0, true})))
	expect(t, "[{{15047 15427081619865468939} 1 sno}]")( // 3AC7D61800FF410A000B
		s.Take(t.Context(), KindLease, 1, Meta{}, nil))
	expect(t, "[{{15047 15427080524648808460} 1 sno}]")( // 3AC7D6180000410A000C
		s.Take(t.Context(), KindLease, 1, Meta{0, true}, nil))
	expect(t, "{15047 15427080524648808450} [{time 1767225600000 0 39} {tick_tock 0 39 1} {meta 0 40 8} "+
		"{partition 16650 48 16} {sequence 2 64 16}]")(s.decompose("9d5ve822232im224", formats.Canonical))
	id := formats.Number{Hi: 0x3ac7, Lo: 0xd6180101ffffffff}
	expect(t, fmt.Sprint(id)+" [{time 1767225600000 0 39} {tick_tock 1 39 1} {meta 1 40 8} "+
		"{partition 65535 48 16} {sequence 65535 64 16}]")(s.decompose("9d5ve82329xxxxxx", formats.Canonical))
	lowest := formats.Number{Hi: 0x3ac7, Lo: 0xd618000000000000}
	highest := formats.Number{Hi: 0x3ac7, Lo: 0xd61803ffffffffff}
	expect(t, fmt.Sprint(lowest, highest))(s.Span(KindSpan, milli, milli+4))
	expect(t, "{0 0} {65535 18446744073709551615}")(s.Span(KindSpan, sno.Epoch, sno.MaxMilli))
	expect(t, "badarg")(s.notional(sno.Epoch - 1))
	expect(t, "badarg")(s.notional(sno.MaxMilli + 1))
	if i := s.Info(); i.Worker != 'A'<<8|10 || i.Mark <= milli {
		t.Errorf("%+v", i)
	}
	if last, sequence := s.IDs.Last(); last != milli || sequence != 12 {
		t.Errorf("the last id is %d:%d", last, sequence)
	}
	ids.Close()
	expect(t, "shutdown")(s.Get(t.Context(), Meta{}))
	none := &Server{IDs: formats.Sno(new(sno.Generator))}
	expect(t, "system_limit")(none.Get(t.Context(), Meta{}))
	expect(t, "system_limit")(none.Take(t.Context(), KindGetMany, 1, Meta{}, nil))
}
