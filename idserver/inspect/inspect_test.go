package inspect

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/flake/snowflake"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func TestSpan(t *testing.T) {
	const s, day = 1000, 86400_000
	for _, tt := range []struct{ got, want string }{
		{Span(-1), "0 ms"},
		{Span(999), "999 ms"},
		{Span(s), "1 s"},
		{Span(59 * s), "59 s"},
		{Span(60 * s), "1 min 0 s"},
		{Span(3599 * s), "59 min 59 s"},
		{Span(3600 * s), "1 h 0 min"},
		{Span(day - s), "23 h 59 min"},
		{Span(day), "1 d 0 h"},
		{Span(730*day - s), "729 d 23 h"},
		{Span(730 * day), "2.0 years"},
		{Span(1461 * day), "4.0 years"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s, want %s", tt.got, tt.want)
		}
	}
}

// A time is shown with its distance from now, up to the year 9999.
func TestTime(t *testing.T) {
	for _, tt := range []struct {
		milli       int64
		value, note string
	}{
		{noon.UnixMilli(), "2026-11-22 12:00:00.000 UTC", "1795348800000 ms, 0 ms ago"},
		{noon.UnixMilli() + 1, "2026-11-22 12:00:00.001 UTC", "1795348800001 ms, in 1 ms"},
		{253402300799999, "9999-12-31 23:59:59.999 UTC", "253402300799999 ms, in 7972.9 years"},
		{253402300800000, "253402300800000", ""},
	} {
		value, note := Value(formats.Field{Name: "time", Value: uint64(tt.milli), Width: 64}, noon)
		if value != tt.value || note != tt.note {
			t.Errorf("%d: %s, %s", tt.milli, value, note)
		}
	}
}

// The likely times of ids are from 2000 to tomorrow.
func TestLikely(t *testing.T) {
	first := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		at   time.Time
		want bool
	}{
		{first.Add(-time.Millisecond), false}, {first, true}, {noon, true},
		{noon.Add(24 * time.Hour), true}, {noon.Add(24*time.Hour + time.Millisecond), false},
	} {
		if got := likely(uint64(tt.at.UnixMilli()), noon); got != tt.want {
			t.Errorf("%v: %t", tt.at, got)
		}
	}
}

// Only a binary as Erlang prints it is read as bytes.
func TestFromErlang(t *testing.T) {
	for _, tt := range []struct {
		text, want string
		ok         bool
	}{
		{"<<0,255>>", "\x00\xff", true}, {"<<1, 2>>", "\x01\x02", true},
		{"<<256>>", "", false}, {"<<>>", "", false}, {"<<1,>>", "", false}, {"<<1", "", false}, {"1>>", "", false},
		{"1", "", false},
	} {
		if got, ok := fromErlang(tt.text); got != tt.want || ok != tt.ok {
			t.Errorf("%s: %q, %t", tt.text, got, ok)
		}
	}
}

// Each format's text is read as its ids, and as ids of other formats only if there is doubt.
func TestRead(t *testing.T) {
	all := []Maker{
		{Format: formats.KindOf("flake").Format(nil), Worker: func() uint64 { return 0x7a0078ffe3d4 }},
		{Format: formats.KindOf("sno").Format(nil)},
		{Format: formats.SnowflakeFormat(snowflake.Twitter), Worker: func() uint64 { return 1 }},
		{Format: formats.SnowflakeFormat(snowflake.Idgen)},
		{Format: formats.KindOf("uuidv7").Format(nil)},
	}
	for _, tt := range []struct{ text, as, others string }{
		{"0000BCeaFUnvigQXG3iGuW", "flake's own text of flake", ""},
		{"000001a1-fb17-587b-7a00-78ffe3d40000", "flake's own text of flake", ""},
		{"BCeaFUnvigQXG3iGuW", "base 62 of flake", ""},
		{"<<0,0,1,161,251,23,88,123,122,0,120,255,227,212,0,0>>", "an Erlang binary of flake", ""},
		{"9q6uqblq2622g22b", "sno's own text of sno", ""},
		{"3e09cc26780100070009", "hexadecimal of sno", ""},
		{"1888944671579078978", "snowflake's own text of snowflake", ""},
		{"00000T3YRQB1XQM03RZZHX8000", "crockford of flake", ""},
		{"1MDQ15ETW0400", "crockford of snowflake", "base 62 of sno, base 58 of sno"},
		{"9265170216935424000", "flake-idgen's own text of flake-idgen", ""}, // of 2040; a snowflake's highest bit is 0
		{"9Q6UQBLQ2622G22B", "", ""},                                         // sno's text in capitals
		{"507f1f77bcf86cd799439011", "", ""},                                 // an ObjectId
		{"0x507f1f77bcf86cd799439011", "hexadecimal of flake", ""},
		{"9m4e2mr0ui3e8a215n4g", "", ""},                 // an xid
		{"d41d8cd98f00b204e9800998ecf8427e", "", ""},     // a hash
		{"1ec9414c-232a-6b00-b3c8-9f6bdeced846", "", ""}, // a UUID of version 6
		{"{1EC9414C-232A-6B00-B3C8-9F6BDECED846}", "", ""},
		{"<<30,201,65,76,35,42,107,0,179,200,159,107,222,206,216,70>>", "an Erlang binary of flake", ""},
		{"00000d41-d21f-5bff-02fc-000000010000", "flake's own text of flake", ""}, // of the year 2431
		{"a", "", ""},
		{"hello", "", ""},
		{"not an id", "", ""},
	} {
		var as, others string
		if found := Read(all, tt.text, formats.Canonical, true, noon); len(found) > 0 {
			as = found[0].As + " of " + found[0].Format.Name
			for _, o := range Others(found, 0) {
				others += ", " + o.As + " of " + o.Format.Name
			}
		}
		if others = strings.TrimPrefix(others, ", "); as != tt.as || others != tt.others {
			t.Errorf("%s: %s; %s\n\twant %s; %s", tt.text, as, others, tt.as, tt.others)
		}
	}
}

// Only the given base is tried, unless it must be guessed. Usual bases come first.
func TestBases(t *testing.T) {
	flakes := Maker{Format: formats.KindOf("flake").Format(nil)}
	snowflakes := Maker{Format: formats.SnowflakeFormat(snowflake.Twitter)}
	for _, tt := range []struct {
		of    Maker
		text  string
		base  int
		guess bool
		want  string
	}{
		{flakes, "BCeaFUnvigQXG3iGuW", formats.Canonical, true, "base 62"},
		{flakes, "BCeaFUnvigQXG3iGuW", formats.Canonical, false, ""},
		{flakes, "BCeaFUnvigQXG3iGuW", 61, false, "base 61"},
		{flakes, "<<0,0,1,161,251,23,88,123,122,0,120,255,227,212,0,0>>", 16, false, ""},
		{flakes, "<<0,0,1,161,251,23,88,123>>", formats.Canonical, true, ""},
		// The bytes of its text.
		{snowflakes, "<<49,56,56,56,57,52,52,54,55,49,53,55,57,48,55,56,57,55,56>>", formats.Canonical, true, ""},
		{snowflakes, "MTg4ODk0NDY3MTU3OTA3ODk3OA==", formats.Canonical, true, "base64"},
		{snowflakes, "1MDQ15ETW0400", formats.Canonical, true, "crockford"},
		{snowflakes, "1MDQ15ETW0400", formats.Canonical, false, ""}, // 13 digits could be in another base
	} {
		var as []string
		for _, r := range Read([]Maker{tt.of}, tt.text, tt.base, tt.guess, noon) {
			if r.Likely {
				as = append(as, r.As)
			}
		}
		if got := strings.Join(as, ", "); got != tt.want {
			t.Errorf("%+v: %s", tt, got)
		}
	}
}

// Of two makers with the same format, the one with the id's datacenter and worker made the id.
func TestWorkers(t *testing.T) {
	id, err := snowflake.Idgen.Make(uint64(noon.UnixMilli()), 3<<5|5, 0)
	if err != nil {
		t.Fatal(err)
	}
	format := formats.SnowflakeFormat(snowflake.Idgen)
	var all []Maker
	for _, worker := range []uint64{0, 3, 5, 3 << 5, 3<<5 | 5} {
		all = append(all, Maker{Format: format, Worker: func() uint64 { return worker }})
	}
	if found := Read(all, id.String(), formats.Canonical, false, noon); len(found) != len(all) ||
		found[0].Maker != len(all)-1 {
		t.Errorf("%+v", found)
	}
}

// Others returns at most 4 readings. Another reading of the same id is included only if it is as
// likely.
func TestOthers(t *testing.T) {
	at := func(as string, lo uint64, milli uint64, base, rank int) Reading {
		return Reading{As: as, ID: formats.Number{Lo: lo}, Milli: milli, Base: base, Likely: true, rank: rank}
	}
	canonical, octets := at("own text", 1, 1, formats.Canonical, 5), at("octets", 1, 1, formats.Octets, 5)
	for _, tt := range []struct {
		best   Reading
		others []Reading
		want   string
	}{
		{at("62", 1, 1, 62, 5), []Reading{
			at("once more", 1, 1, 36, 6), at("as likely", 1, 1, 36, 5), at("another id", 2, 1, 36,
				6), at("another time", 1, 2, 36, 6),
		}, "as likely, another id, another time"},
		{canonical, []Reading{
			at("own text", 2, 2, formats.Canonical, foreign),
		}, "own text"},
		{octets, []Reading{at("octets", 2, 2, formats.Octets, foreign)}, "octets"},
		{at("62", 1, 1, 62, 5), []Reading{
			at("1", 2, 1, 2, 6), at("2", 3, 1, 3, 6), at("3", 4, 1, 4, 6), at("4", 5, 1, 5, 6), at("5", 6, 1, 6, 6),
		}, "1, 2, 3, 4"},
		{canonical, []Reading{{As: "unlikely", ID: formats.Number{Lo: 2}, Base: formats.Canonical},
			at("behind it", 2, 2, 62, foreign-1)}, ""},
	} {
		var as []string
		for _, o := range Others(append([]Reading{tt.best}, tt.others...), 0) {
			as = append(as, o.As)
		}
		if got := strings.Join(as, ", "); got != tt.want {
			t.Errorf("of %s: %s, want %s", tt.best.As, got, tt.want)
		}
	}
}

func TestTexts(t *testing.T) {
	for _, tt := range []struct {
		format     *formats.Format
		text, want string
	}{
		{formats.KindOf("flake").Format(nil), "0000BCeaFSZg0hpyLH1rPs", "flake 0000BCeaFSZg0hpyLH1rPs, " +
			"base 62 BCeaFSZg0hpyLH1rPs, base 36 2H6MUW586MUK3V4RQODFK, base 16 1A1FB17587B7A0078FFE3D40000, base 10 " +
			"33115852729053228698336880754688, " +
			"uuid 000001a1-fb17-587b-7a00-78ffe3d40000, crockford 00000T3YRQB1XQM03RZZHX8000"},
		{formats.KindOf("uuidv7").Format(nil), "018bcfe5-6800-702a-8080-00000000491e",
			"uuidv7 018bcfe5-6800-702a-8080-00000000491e, " +
				"base 62 2usyDNX9ILxbY09JFViVK, base 36 3AMO4VRPSF6YYYT3KQYCAASE, base 16 18BCFE56800702A808000000000491E, base " +
				"10 2055173893345399286069232529938860318, " +
				"crockford 01HF7YAT00E0N8100000000J8Y"},
		{formats.SnowflakeFormat(snowflake.Twitter), "1888944671579078978", "snowflake 1888944671579078978, " +
			"base 62 2FXNyECjh22, base 36 ECNB02FK1OAQ, base 16 1A36E12BB5D68142, base 10 1888944671579078978, " +
			"crockford 1MDQ15ETXD0A2, base32 bwpzbfq47pykn, base36 ecnb02fk1oaq, base58 5oj7rrjit4y, base64 " +
			"MTg4ODk0NDY3MTU3OTA3ODk3OA=="},
	} {
		id, err := tt.format.Parse(tt.text, formats.Canonical)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, text := range Texts(tt.format, id) {
			all = append(all, text.Name+" "+text.Text)
		}
		if got := strings.Join(all, ", "); got != tt.want {
			t.Errorf("%s: %s\n\twant %s", tt.text, got, tt.want)
		}
	}
}

// A time beyond the year 9999 has no text, a worker's number is written as a MAC address, and bits
// count from 0.
func TestFields(t *testing.T) {
	for text, want := range map[string]string{"0000e677-d21f-dbff-0000-000000000000": "9999-12-31T23:59:59.999Z",
		"0000e677-d21f-dc00-0000-000000000000": ""} {
		id, err := formats.KindOf("flake").Format(nil).Parse(text, formats.Canonical)
		if got := PartsOf(formats.KindOf("flake").Format(nil), id).Time; got != want || err != nil {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	for _, tt := range []struct {
		field             formats.Field
		value, note, bits string
	}{
		{formats.Field{Name: "sequence", Value: 3, Offset: 112, Width: 16}, "3", "", "16 bits, 112 to 127"},
		{formats.Field{Name: "worker", Value: 10, Offset: 64, Width: 48}, "00:00:00:00:00:0a", "10", "48 bits, 64 to 111"},
		{formats.Field{Name: "worker", Value: 0x02fc00000a01, Offset: 64, Width: 48}, "02:fc:00:00:0a:01", "3281355016705",
			"48 bits, 64 to 111"},
	} {
		if value, note := Value(tt.field, noon); value != tt.value || note != tt.note || Bits(tt.field) != tt.bits {
			t.Errorf("%s: %s, %s, %s", tt.field.Name, value, note, Bits(tt.field))
		}
	}
}

func TestPartsOf(t *testing.T) {
	id, err := formats.KindOf("sno").Format(nil).Parse("9q6uqblq2622g22b", formats.Canonical)
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(PartsOf(formats.KindOf("sno").Format(nil), id))
	const want = `{"id":"9q6uqblq2622g22b","format":"sno","time":"2026-11-20T21:04:52.976Z","fields":[` +
		`{"name":"time","value":"1795208692976","offset":0,"width":39},` +
		`{"name":"tick_tock","value":"0","offset":39,"width":1},` +
		`{"name":"meta","value":"1","offset":40,"width":8},{"name":"partition","value":"7","offset":48,"width":16},` +
		`{"name":"sequence","value":"9","offset":64,"width":16}]}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
}

func TestBits(t *testing.T) {
	for width, want := range []string{"0 bits", "1 bit, 42", "2 bits, 42 to 43"} {
		if got := Bits(formats.Field{Offset: 42, Width: width}); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
