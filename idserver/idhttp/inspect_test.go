package idhttp

import (
	"fmt"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/flake/snowflake"
	"github.com/flake-go/flake/idserver"
)

// maker is a source that only has a format and a worker.
type maker struct {
	formats.Source
	format *formats.Format
	worker uint64
}

func (m maker) Format() *formats.Format { return m.format }
func (m maker) Worker() uint64          { return m.worker }

// inspecting returns a server with the named generators:
//
//	flake   flake
//	orders  snowflake, with an epoch in 2020
//	bills   snowflake, with Twitter's epoch, in 2010
//	events  sno
func inspecting(names string) *Door {
	since2010, since2020 := snowflake.Twitter, snowflake.Twitter
	since2010.Datacenter, since2010.Worker = 5, 5
	since2020.Datacenter, since2020.Worker, since2020.Epoch = 5, 5, 1577836800000
	makers := map[string]maker{
		"flake":  {format: formats.KindOf("flake").Format(nil), worker: 0x02fc00000001},
		"orders": {format: formats.SnowflakeFormat(since2020), worker: 9<<5 | 23},
		"bills":  {format: formats.SnowflakeFormat(since2010), worker: 23<<5 | 9},
		"events": {format: formats.KindOf("sno").Format(nil), worker: 7},
	}
	s := &Door{}
	for _, name := range strings.Fields(names) {
		s.Generators = append(s.Generators, Generator{Name: name, Server: &idserver.Server{IDs: makers[name]}})
	}
	return s
}

// Text is read as the likeliest id. At most four other readings are offered, unless they are much
// less likely.
func TestInspect(t *testing.T) {
	for _, tt := range []struct{ generators, query, want string }{
		{"flake", "id=BCeSOTXmkQcK8Ru83s",
			"base 62 of "},
		{"flake events", "id=BCeSOTXmkQcK8Ru83s",
			"base 62 of flake"},
		{"flake orders", "id=999999999999999999", // of 2027
			"snowflake's own text of orders"},
		{"flake orders", "id=911723800210665477",
			"snowflake's own text of orders"},
		{"bills orders", "id=911723800210665477",
			"snowflake's own text of orders; snowflake's own text of bills from 2017-09-23, /?generator=bills&id=ID#inspector"},
		{"events orders", "id=g1",
			`"ID" is not an id of sno or snowflake in its own text`},
		{"events orders", "id=15LhgmPoGFZ",
			"base 62 of orders; " +
				"base 58 of orders from 2023-07-22, /?base=58&generator=orders&id=ID#inspector; " +
				"base58 of orders from 2020-04-07, /?base=base58&generator=orders&id=ID#inspector"},
		{"events orders", "generator=events&id=15LhgmPoGFZ",
			`"ID" is not an id of sno in its own text`},
		{"orders", "id=15LhgmPoGFZ",
			"base 62 of ; " +
				"base 58 of  from 2023-07-22, /?base=58&id=ID#inspector; " +
				"base58 of  from 2020-04-07, /?base=base58&id=ID#inspector"},
		{"flake", "id=\ufeff0000BCeSOTXmkQcK8Ru83s",
			"flake's own text of "},
		{"orders", "id=111111111111111111",
			"snowflake's own text of "},
		{"flake", "id=1&base=1",
			`base is "ID": must be an integer from 2 to 62, or canonical, uuid, crockford`},
		{"flake", "id=0123456789abcdef&base=63",
			`base is "63": must be an integer from 2 to 62, or canonical, uuid, crockford`},
		{"flake", "id=<<0,0,1,161,250,198,196,243,2,252,0,0,0,1,0,0>>",
			"an Erlang binary of "},
		{"flake", "base=16&id=<<0,0,1,161,250,198,196,243,2,252,0,0,0,1,0,0>>",
			`"ID" is not an id of flake in base 16`},
		{"orders", "id=<<49,48>>",
			`"ID" is not an id of snowflake in its own text`},
	} {
		r := httptest.NewRequest("GET", "/?"+url.PathEscape(tt.query), nil)
		v := inspecting(tt.generators).inspect(mustRead(t, r, []string{"id", "base", "generator"}), noon)
		if len(v.Bases) < 61 || v.Bases[60] != "2" || !slices.Contains(v.Bases, "crockford") {
			t.Errorf("%s: the form offers %s", tt.generators, v.Bases)
		}
		got := v.Fault
		if v.Reading != nil {
			got += v.Reading.As + " of " + v.Reading.Generator
			for _, o := range v.Reading.Others {
				got += fmt.Sprintf("; %s of %s from %s, %s", o.As, o.Generator, o.Time, o.URL)
			}
		}
		if got = strings.ReplaceAll(got, v.ID, "ID"); got != tt.want {
			t.Errorf("%s, %s: %s\n\twant %s", tt.generators, tt.query, got, tt.want)
		}
	}
}

// An id that was taken in base 62 is refused with the remedy, other texts without it.
func TestHint(t *testing.T) {
	for _, tt := range []struct {
		query, id string
		hint      bool
	}{
		{"", "BCeSOTXmkQcK8Ru83s", true},
		{"base=10", "BCeSOTXmkQcK8Ru83s", false},
		{"", "BCeS", false}, // of 1970
		{"", "-", false},
	} {
		r := httptest.NewRequest("GET", "/v1/ids/x?"+tt.query, nil)
		r.SetPathValue("id", tt.id)
		fault := inspecting("flake").decompose(httptest.NewRecorder(), r, mustRead(t, r, ofID))
		if fault == nil || strings.Contains(fault.Allowed, "with base=62") != tt.hint {
			t.Errorf("%s, %q: %+v", tt.id, tt.query, fault)
		}
	}
}

// The form offers the generators, if there are several, and keeps the chosen one.
func TestFormGenerators(t *testing.T) {
	for generators, want := range map[string]string{
		"flake":        "",
		"flake orders": "<option>flake</option><option selected>orders</option>",
	} {
		var all []generatorState
		for _, name := range strings.Fields(generators) {
			all = append(all, generatorState{Name: name})
		}
		var html strings.Builder
		err := templates.ExecuteTemplate(&html, "inspector", struct {
			State   *state
			Inspect *inspection
		}{&state{Generators: all}, &inspection{Generator: "orders"}})
		_, form, offered := strings.Cut(html.String(), `<select name="generator">`)
		if err != nil || offered != (want != "") || !strings.Contains(form, want) {
			t.Errorf("%s: %v, the form is %s", generators, err, html.String())
		}
	}
}
