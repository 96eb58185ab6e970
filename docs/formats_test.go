package docs

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/flake-go/flake/flake/formats"
)

// A list is a place in the repository that must name the same things as a table in package formats.
type list struct {
	file  string
	part  string // a regular expression for the part of the file, or its first group; empty: all
	names string // a regular expression in that part, whose groups contain names
	not   string // names that do not matter here
}

// sizes is a list of formats by size.
const sizes = `Ids of (.*) have 16 bytes, those of (.*) 10, and those of (.*) 8\.`

// Lists of all formats. The node's own generator has the format flake, so some lists leave it out.
var formatLists = []list{
	{"README.md", `(?s)node can make (.*?): see`, "`(.*?)`", "flake"},
	{"docs/formats.md", `(?s)The formats compared.*`, "(?m)^\\| \\| (`.*) \\|$", ""},
	{"docs/formats.md", "", "(?m)^- \\*\\*`(.*?)`\\*\\*", ""},
	{"docs/configuration.md", "(?m)^\\| `format` .*", "`(.*?)`", "format"},
	{"docs/databases.md", `(?s)\| format \| PostgreSQL.*?\n\n`, "(?m)^\\| (`.*?`)", ""},
	{"docs/databases.md", `(?s)\| format \| time.*?\n\n`, "(?m)^\\| (`.*?`)", ""},
	{"rel/files/sys.toml", `# format = "snowflake" +# (.*)`, `"(.*?)"`, ""},
	{"rel/files/ids.sql", "", `FUNCTION (\w+)_time\(id `, "flake-idgen"}, // uses snowflake's
	{"rel/files/ids.sql", "", `FUNCTION (\w+)_worker\(id `, "flake-idgen"},
	{"rel/helm/flake/values.schema.json", `"format": \{"enum": (.*?)\}`, `"(.*?)"`, ""},
	{"flake/testdata/read.tsv", "", `(?m)^([a-z].*?)\t`, ""},
	{"clients/test", "", `(?m)^format = "(.*)"$`, "flake"},
	{"clients/erlang/README.md", `(?s)\| format .*?\n\n`, "(?m)^\\| (`.*?) \\|", ""},
	{"clients/erlang/flake_client/src/flake_client.erl", "", sizes, ""},
	{"clients/elixir/lib/flake_client.ex", "", sizes, ""},
	{"clients/elixir/lib/flake_client/ecto_type.ex", "", `16 \(the default\) for (.*), 10 for (.*), 8 for\s+(.*)\n`, ""},
	{"clients/javascript/README.md", "`formats` contains the formats by name: (.*)\\. ", "`(.*?)`", ""},
	{"clients/javascript/src/format.js", `(?s)export const formats = .*?\n}\)\n`, `(?m)^  '?([a-z0-9-]+)'?: `, ""},
	{"clients/javascript/src/index.d.ts", `formats: Readonly<Record<(.*?), Format>>`, `'(.*?)'`, ""},
	{"clients/javascript/src/index.d.ts", "", `The name that nodes use: (.*)\.`, ""},
	{"clients/javascript/test/real.test.js", "", `(?m)^format = "(.*)"$`, "flake"},
}

// Lists of the packages of all formats. A format without its own package is a layout of snowflake.
var packageLists = []list{
	{"ARCHITECTURE.md", "",
		"(?m)^\\| `flake`, `flake/(.*?)`, `flake/(.*?)` |^\\| `flake/(.*?)`, `flake/(ulid)` ", "flake"},
	{"docs/library.md", "", `(?m)^## flake/(\w+)(?:, flake/(\w+))*$`, "flake"},
	{"flake/alike_test.go", `(?s)func TestAlike.*?\n}`, `t\.Run\("(.*?)"`, ""},
	{"client/README.md", `get ids of another format (.*)`, `(\w+)\.ID`, "flake"},
	{"client/id.go", `(?s)type Format interface {.*?\n}`, `(\w+)\.ID`, ""},
	{"client/id.go", `(?s)func formatOf.*?\n}`, `(\w+)\.ID:|return (snowflake)Format`, ""},
	{"client/id.go", `(?s)func numberOf.*?\n}`, `case \*(\w+)\.ID`, ""},
	{"client/id.go", `(?s)func idOf.*?\n}`, `case \*(\w+)\.ID`, ""},
	{"rel/flake/loadgen/take.go", `(?s)\) Taker\(.*?\n}`, `takerOf\[(\w+)\.ID`, ""},
}

// Lists of the bases that have names. The clients make no texts of 64-bit ids alone.
var baseLists = []list{
	{"docs/calls.md", `(?s)## Bases and texts\n.*?\n\n.*?\n\n`, "(?m)^- (`[a-z0-9`, ]+`)", ""},
	{"idserver/idhttp/openapi.yaml", `pattern: ".*6\[0-2]\)\|(.*)\)\$"`, `\w+`, ""},
	{"rel/flake/commands/get.go", `namedBases = (".*")`, `crockford|uuid|base\d+`, "canonical"},
	{"client/ids.go", `(?s)// Bases for .*?\n\)`, `(?m)^\t(\w+) `, "base32 base36 base58 base64"},
	{"clients/erlang/flake_client/src/flake_client.erl", `-type base\(\) :: 2\.\.62 (.*)\.`, `\w+`,
		"ulid base32 base36 base58 base64"},
	{"clients/elixir/lib/flake_client.ex", `@type base :: 2\.\.62 (.*)`, `\w+`, "ulid base32 base36 base58 base64"},
	{"clients/javascript/src/index.d.ts", `type Base = number (.*)`, `\w+`, "canonical base32 base36 base58 base64"},
}

// Every list in the repository names all formats, and nothing else. So does every list of their
// packages, of bases, and of the keys of generators.
func TestFormats(t *testing.T) {
	var all []*formats.Format
	var packages []string
	for _, k := range formats.Kinds {
		all = append(all, k.Format(nil))
		if _, err := os.Stat("../flake/" + k.Name); err == nil || k.Name == "flake" {
			packages = append(packages, k.Name)
		}
	}
	bases := formats.BaseNames(all...)
	var keys, numbers []string
	for _, key := range formats.Keys() {
		keys = append(keys, key.Name)
		if formats.IsNumber(key.Name) && key.Type != formats.MAC {
			numbers = append(numbers, key.Name)
		}
	}
	chosen := strings.Fields(strings.NewReplacer(",", "", " and ", " ").Replace(formats.WithKey("worker_id")))
	for _, c := range []struct {
		want  []string
		lists []list
	}{
		{formats.Names(), formatLists},
		{packages, packageLists},
		{bases, baseLists},
		{keys, []list{
			{"docs/configuration.md", `(?s)## Generators\n.*?\n## `, "(?m)^\\| (`.*?) \\| ", "name format"},
			{"rel/files/sys.toml", `(?s)# \[\[generator.*?\n\n`, `(?m)^(?:# )+(\w+) +=|or (id) =`, "name format"},
		}},
		{numbers, []list{
			{"rel/helm/flake/templates/_helpers.tpl", `has \$key \(list (.*?)\)`, `"(.*?)"`, ""},
			{"rel/helm/flake/values.yaml", `(?s)As the value of (.*?), the word`, `[a-z]+`, ""},
		}},
		{chosen, []list{
			{"docs/configuration.md", "(?m)^\\| `worker_id` .*? ([a-z].*?):", `.*`, ""},
			{"docs/configuration.md", `In (.*) the number is`, `.*`, ""},
			{"docs/operating/commands.md", `Only (.*) work, with`, "`(.*?)`", ""},
			{"rel/files/sys.toml", `# worker_id .*# (flake.*?):`, `.*`, ""},
			{"rel/flake/commands/generate.go", `only (.*) ids can be made`, `.*`, ""},
		}},
	} {
		for _, l := range c.lists {
			got := l.read(t)
			for _, name := range c.want {
				if !slices.Contains(got, name) && !slices.Contains(strings.Fields(l.not), name) {
					t.Errorf("%s lacks %s, at %q", l.file, name, cmp.Or(l.part, l.names))
				}
			}
			for _, name := range got {
				if !slices.Contains(c.want, name) && !slices.Contains(strings.Fields(l.not), name) {
					t.Errorf("%s has %s, which package formats lacks, at %q", l.file, name, cmp.Or(l.part, l.names))
				}
			}
		}
	}
}

// read returns the names in a list, in lower case.
func (l list) read(t *testing.T) (names []string) {
	t.Helper()
	text := contents(t, l.file)
	if l.part != "" {
		part := regexp.MustCompile(l.part).FindStringSubmatch(text)
		if part == nil {
			t.Errorf("%s has no %q", l.file, l.part)
			return nil
		}
		text = part[len(part)-1]
	}
	word := regexp.MustCompile(`[A-Za-z][A-Za-z0-9_-]*`)
	for _, groups := range regexp.MustCompile(l.names).FindAllStringSubmatch(text, -1) {
		for _, group := range groups[min(1, len(groups)-1):] {
			for _, name := range word.FindAllString(group, -1) {
				if name != "and" && name != "or" {
					names = append(names, strings.ToLower(name))
				}
			}
		}
	}
	return names
}

func contents(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Clients add to the first id of a run by the rules of docs/calls.md, which depend on the size and the
// first bytes of an id. clients/javascript/src/format.js has a table of fields instead.
func TestLayouts(t *testing.T) {
	table := contents(t, "clients/javascript/src/format.js")
	var random []string
	for _, k := range formats.Kinds {
		f := k.Format(nil)
		fields, step := f.Fields(formats.Number{}), 0
		first, last := f.Times()
		values := map[string]uint64{"size": uint64(f.Size), "epoch": first, "unit": (last-first)>>fields[0].Width + 1}
		for _, field := range fields {
			values[field.Name] = uint64(field.Width)
			switch field.Name {
			case "sequence":
				step = 8*f.Size - field.Offset - field.Width
			case "random":
				random = append(random, fmt.Sprintf("%d of `%s`", field.Width, k.Name))
			}
		}
		values["step"] = uint64(step)
		if f.Unordered > 0 {
			values["order"] = uint64(8*f.Size - fields[0].Offset - f.Unordered)
		}
		inHalf := f.Size == 16 && fields[0].Width <= 48
		if f.Size != 8 && f.Size != 10 && f.Size != 16 || step != 0 && step != 64 || inHalf != (step == 64) {
			t.Errorf("the sequence of %s, of %d bytes, is at bit %d: docs/calls.md and flake_client_run.erl count otherwise",
				k.Name, f.Size, step)
		}
		if k.Key("epoch") != nil {
			continue // the layout depends on the options, and read.tsv has texts of several
		}
		row := regexp.MustCompile(`name: '` + k.Name + `',[^}]*`).FindString(table)
		got := map[string]uint64{"epoch": 0, "unit": 1, "step": 0}
		for _, value := range regexp.MustCompile(`(\w+)(?:: |', )(\d+)`).FindAllStringSubmatch(row, -1) {
			got[value[1]], _ = strconv.ParseUint(value[2], 10, 64)
		}
		if !maps.Equal(got, values) {
			t.Errorf("clients/javascript/src/format.js: %s has %v, want %v", k.Name, got, values)
		}
	}
	if text := "the lowest " + strings.Join(random, ", "); !strings.Contains(contents(t, "docs/calls.md"), text) {
		t.Errorf("docs/calls.md does not say that %s are random, or flake_client_run.erl changes others", text)
	}
}
