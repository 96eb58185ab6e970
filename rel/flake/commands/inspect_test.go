package commands

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/rel/flake/cli"
)

// inspecting returns an inspector with these flags, and its output. The inspector's clock is at noon.
func inspecting(t *testing.T, args ...string) (v *inspector, out *bytes.Buffer) {
	t.Helper()
	f := cli.NewFlags()
	Inspect(f)
	if err := f.ParseArgs(args, 0); err != nil {
		t.Fatal(err)
	}
	v, err := inspectorOf(f)
	if err != nil {
		t.Fatal(err)
	}
	out = new(bytes.Buffer)
	v.base, v.out, v.asJSON = client.Canonical, out, f.Lookup("json").Value.String() == "true"
	v.now = func() time.Time { return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) }
	return v, out
}

func TestInspect(t *testing.T) {
	for _, tt := range []struct{ args, ids, want string }{
		{"", "BCeaFUnvigQXG3iGuW", `BCeaFUnvigQXG3iGuW: flake, read as base 62
  time       2026-11-20 22:32:54.017 UTC  64 bits, 0 to 63    1795213974017 ms, 1 d 13 h ago
  worker     7a:00:78:ff:e3:d4            48 bits, 64 to 111  134142448624596
  sequence   0                            16 bits, 112 to 127
  flake      0000BCeaFUnvigQXG3iGuW
  base 62    BCeaFUnvigQXG3iGuW
  base 36    2H6MUW6ECX8J9CN7N29KW
  base 16    1A1FB175A017A0078FFE3D40000
  base 10    33115852736247458887083605884928
  uuid       000001a1-fb17-5a01-7a00-78ffe3d40000
  crockford  00000T3YRQB80QM03RZZHX8000

`},
		{"-json -format sno", "9q6uqblq2622g22b no",
			`{"text":"9q6uqblq2622g22b","as":"sno's own text","id":"9q6uqblq2622g22b","format":"sno",` +
				`"time":"2026-11-20T21:04:52.976Z","fields":[{"name":"time","value":"1795208692976","offset":0,"width":39},` +
				`{"name":"tick_tock","value":"0","offset":39,"width":1},{"name":"meta","value":"1","offset":40,"width":8},` +
				`{"name":"partition","value":"7","offset":48,"width":16},` +
				`{"name":"sequence","value":"9","offset":64,"width":16}],` +
				`"texts":{"base 10":"292967453211759932276745","base 16":"3E09CC26780100070009","base ` +
				`36":"1BPGLD2D4SUIVWG9","base 62":"1So1vPrwGsKOnB","crockford":"7R4WR9KR0400E009","sno":"9q6uqblq2622g22b"}}
{"text":"n\u0000o!","error":"not an id of sno"}
`},
	} {
		v, out := inspecting(t, strings.Fields(tt.args)...)
		err := v.inspect(t.Context(), strings.Fields(strings.ReplaceAll(tt.ids, "no", "n\x00o!")), nil)
		if out.String() != tt.want || (err != nil) != strings.Contains(tt.want, "error") {
			t.Errorf("%v: %s\n%v", tt.ids, out, err)
		}
	}
}

// inspect shows the likeliest reading of each input, and what else it may be.
func TestInspectTexts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sys.toml")
	os.WriteFile(file, []byte("[[generator]]\nname = \"orders\"\nformat = \"snowflake\"\nepoch = "+
		"2020-01-01T00:00:00Z\nid = 1\n"), 0o600)
	numbered := filepath.Join(t.TempDir(), "numbered.toml")
	os.WriteFile(numbered, []byte("[numbers]\nstore = 'etcd'\n[etcd]\nendpoints = [\"a:1\"]\n"+
		"[[generator]]\nname = \"orders\"\nformat = "+
		"\"snowflake\"\nid = \"assigned\"\n"), 0o600)
	many := filepath.Join(t.TempDir(), "many.toml")
	os.WriteFile(many, []byte("[flake]\nworker_id = \"7a:00:78:ff:e3:d4\"\n"+
		"[[generator]]\nname = \"old\"\nformat = \"flake-idgen\"\nepoch = "+
		"2020-01-01T00:00:00Z\ndatacenter = 9\nworker = 7\n"+
		"[[generator]]\nname = \"small\"\nformat = \"snowflake\"\nid = 3\nepoch = 2024-01-01T00:00:00Z\nmachine_bits "+
		"= 4\nsequence_bits = 8\n"+
		"[[generator]]\nname = \"people\"\nformat = \"sno\"\npartition = 7\n"+
		"[[generator]]\nname = \"rows\"\nformat = \"uuidv7\"\nworker_id = \"random\"\n"), 0o600)
	const uuid, orders = "000001a1-fb17-5a01-7a00-78ffe3d40000", "911936766637928448"
	for _, tt := range []struct{ args, text, want string }{
		{"", uuid, "flake, read as flake's own text"},
		{"", "019b76da-a800-7001-8080-00000001e345",
			"uuidv7, read as uuidv7's own text time 2026-01-01 00:00:00.000 UTC"},
		// a ULID in the form of a UUID
		{"", "019b76da-a800-4001-8080-00000001e345", "ulid, read as ulid's own text time 2026-01-01 00:00:00.000 UTC"},
		{"", "01KDVDNA00000G40000000E8T5", "ulid, read as ulid's own text time 2026-01-01 00:00:00.000 UTC"},
		{"", "<<0,0,1,161,251,23,88,123,122,0,120,255,227,212,0,0>>", "flake, read as an Erlang binary"},
		{"", orders, "snowflake, read as snowflake's own text time 2017-09-24 12:54:02.789 UTC"},
		{"-format snowflake -epoch 2020-01-01T00:00:00Z", orders,
			"snowflake, read as snowflake's own text time 2026-11-21 11:11:08.132 UTC"},
		{"-format snowflake -machine-bits 8", orders, "sequence 12288 14 bits, 50 to 63"},
		{"-format snowflake -machine-bits 8 -sequence-bits 4 -epoch 2020-01-01T00:00:00Z", "890355273629779",
			"machine 5 8 bits, 52 to 59 sequence 3 4 bits, 60 to 63"},
		{"-format snowflake -base base58", "3CUgxBmS4zd", "snowflake, read as base58"},
		{"-epoch 2020-01-01T00:00:00Z", orders, "or it is snowflake in snowflake's own text, from 2026-11-21"},
		{"-config " + file, orders, "orders, read as snowflake's own text time 2026-11-21 11:11:08.132 UTC"},
		{"-config " + numbered, orders, "machine 295 10 bits, 42 to 51"},
		{"-config " + file, uuid, "flake, read as flake's own text"},
		// the generator whose machine is in the id
		{"-config " + many, "373651358319361", "small, read as snowflake's own text time 2026-11-21"},
		{"-config " + many, "911936766637928448", "old, read as flake-idgen's own text time 2026-11-21"},
		{"-config " + many, uuid, "flake, read as flake's own text"},
		{"-config " + many, "9q6uqblq2622g22b", "people, read as sno's own text"},
		{"-format uuidv7", "nonsense", "nonsense: not an id of uuidv7"},
		{"-format uuidv7", "019b76daa8004001808000000001e345", "not an id of uuidv7"},
		{"", "\ufeff" + orders, "snowflake, read as snowflake's own text"},
		{"-format snowflake -machine-bits 4 -sequence-bits 8", "1888944671579078978", "not an id of snowflake"},
		{"", "hello", "hello: not an id of flake"}, // as digits, it has a time on its format's first day
		{"-config " + file, "?", "?: not an id of flake, snowflake"},
		{"", strings.Repeat("!", 1000), "!... (1000 bytes): not an id of " + strings.Join(formats.Names(), ", ")},
	} {
		v, out := inspecting(t, strings.Fields(tt.args)...)
		err := v.inspect(t.Context(), []string{` "` + tt.text + `" `}, nil)
		if got := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(got, tt.want) ||
			(err != nil) != strings.Contains(tt.want, "not an id") {
			t.Errorf("%s %s: %s, %v\n\twant %s", tt.args, tt.text, got, err, tt.want)
		}
	}
}

// Ids are read from standard input, one per line, until the input or the command ends.
func TestInspectLines(t *testing.T) {
	v, out := inspecting(t, "-json", "-format=sno")
	err := v.inspect(t.Context(), []string{"2222222222222222", "-"},
		strings.NewReader("9q6uqblq2622g22b\r\n\n?\n9q6uqblq2622g22c"))
	if lines := strings.Count(out.String(), "\n"); lines != 4 || err == nil ||
		err.Error() != "inputs that are not ids: 1" {
		t.Errorf("%d lines, %v: %s", lines, err, out)
	}
	if err := v.inspect(t.Context(), []string{"-"}, strings.NewReader(strings.Repeat("2", 1<<20))); err == nil ||
		!strings.Contains(err.Error(), "standard input: ") {
		t.Errorf("a line without an end: %v", err)
	}
	r, w := io.Pipe()
	defer w.Close()
	ended := errors.New("ended")
	ctx, end := context.WithCancelCause(t.Context())
	end(ended)
	if err := v.inspect(ctx, []string{"-"}, r); !errors.Is(err, ended) {
		t.Errorf("%v", err)
	}
}
