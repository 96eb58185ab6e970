package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/flake-go/flake/flake/workers/stores"
	"github.com/flake-go/flake/internal/files"
)

// Limits on a file. No known key is nested deeper than an array in a table in a table.
const (
	maxFile   = 1 << 20
	maxDepth  = 8
	maxValues = 2048 // 64 generators with all their keys need fewer
	maxKey    = 100  // in bytes; a longer unknown key is not compared with the known keys
)

// generators is the key of the [[generator]] tables.
const generators = "generator"

// Flag is a value from the command line or the environment, which overrides the file's value.
// Value is a plain string, or TOML if the key's value is not a string.
type Flag struct {
	Name  string // such as "-name" or "FLAKE_COOKIE"
	Key   string // such as "node.name"
	Value string
}

// Load reads the file at path; if path is empty, it reads no file. If several flags have the same key,
// the last wins. A key that neither the file nor a flag sets has its default; the default cookie is
// Erlang's own, if its file exists. The error joins an Error for each fault.
func Load(path string, flags ...Flag) (Config, error) {
	var src string
	if path != "" {
		var err error
		if src, _, err = files.Read(path, maxFile); err != nil {
			return Config{}, &Error{File: path, Want: err.Error()}
		}
	}
	c, faults := parse(path, src, flags)
	for _, e := range faults {
		if e.File == "" {
			e.File = path
		}
	}
	if err := join(faults); err != nil {
		return Config{}, err
	}
	return c, nil
}

type given struct {
	value any
	flag  bool
	from  string // the flag, or the file and line
}

func parse(path, src string, flags []Flag) (Config, []*Error) {
	if tooDeep(src) {
		return Config{}, []*Error{{Want: fmt.Sprintf("tables or arrays nested deeper than %d: no key is that deep",
			maxDepth)}}
	}
	var doc map[string]any
	meta, err := toml.Decode(src, &doc)
	if err != nil {
		return Config{}, []*Error{syntaxError(err)}
	}
	c := Default()
	c.Flake.Random = false // draw sets it if no worker id is configured
	var faults []*Error
	fault := func(key string, v any, want string) {
		faults = append(faults, &Error{Key: key, Value: show(key, v), Want: want})
	}
	lineOf := linesOf(src)
	values := make(map[string]given)
	add := func(key string, v any) { values[key] = given{v, false, place(path, lineOf(key))} }
	flatten("", doc, add)
	if len(values) > maxValues {
		return Config{}, []*Error{{Want: fmt.Sprintf("%d keys; the limit is %d", len(values), maxValues)}}
	}
	all, isSet := values[generators]
	switch list, ok := all.value.([]map[string]any); {
	case isSet && !ok:
		fault(generators, all.value, "must be a table [[generator]] for each generator")
	case len(list) > MaxGenerators:
		fault(generators, nil, fmt.Sprintf("%d tables; the limit is %d", len(list), MaxGenerators))
	default:
		for i, keys := range list {
			c.Generators = append(c.Generators, Generator{})
			for name, v := range keys {
				add(generatorKey(i)+"."+name, v)
			}
		}
	}
	delete(values, generators)
	unread := override(values, flags)
	reported := make(map[string]bool)
	for _, e := range unread {
		reported[cookieOf(e.Key)] = true
	}
	faults = append(faults, unread...)
	c.tablesOf(meta, values)
	c.from = make(map[string]string)
	settings, left := c.settings(), maps.Clone(values)
	for _, s := range settings {
		v, ok := values[s.key]
		if !ok {
			continue
		}
		delete(left, s.key)
		c.from[s.key] = v.from
		if v.flag && !setText(s, v.value.(string)) || !v.flag && !s.set(v.value) {
			reported[s.key] = true
			fault(s.key, v.value, s.must)
		}
	}
	if v := values[cookieKey]; v.flag {
		c.Node.CookieFrom = v.from
	}
	for _, key := range slices.Sorted(maps.Keys(left)) {
		faults = append(faults, unknown(key, left[key].value, settings))
	}
	c.draw()
	faults = append(faults, c.faults(reported)...)
	for _, e := range faults {
		if v := values[e.Key]; v.flag {
			e.File = v.from
		} else {
			e.Line = lineOf(e.Key)
		}
	}
	return c, faults
}

// override adds the flags, and the cookies from files, to values.
func override(values map[string]given, flags []Flag) (faults []*Error) {
	set := func(f Flag) { values[f.Key] = given{f.Value, true, f.Name} }
	for _, f := range flags {
		// A flag that sets a cookie or its file replaces an earlier cookie and an earlier file.
		if cookie := cookieOf(f.Key); cookie != "" && f.Value != "" {
			delete(values, cookie)
			delete(values, cookie+ofFile)
		}
		set(f)
	}
	text := func(key string) string { s, _ := values[key].value.(string); return s }
	for _, key := range []string{cookieKey, previousKey} {
		path := text(key + ofFile)
		if path == "" {
			continue
		}
		cookie, err := files.Secret(path)
		if text(key) != "" {
			err = fmt.Errorf(onlyOne, key)
		}
		if err != nil {
			faults = append(faults, &Error{Key: key + ofFile, Value: show("", path), Want: err.Error()})
			continue
		}
		set(Flag{path, key, cookie})
	}
	if _, ok := values[cookieKey]; !ok && text(cookieKey+ofFile) == "" {
		f, fault := homeCookie()
		switch {
		case fault != nil:
			faults = append(faults, fault)
		case f.Key != "":
			set(f)
		}
	}
	return faults
}

// tablesOf records which tables exist, and the formats of generators, because the meaning of
// other keys depends on them.
func (c *Config) tablesOf(meta toml.MetaData, values map[string]given) {
	for table, on := range map[string]*bool{"node.tls": &c.Node.TLS.On, "http.tls": &c.HTTP.TLS.On,
		"numbers": &c.Numbers.On} {
		*on = meta.Type(strings.Split(table, ".")...) == "Hash"
		for key := range values {
			*on = *on || strings.HasPrefix(key, table+".")
		}
	}
	for i := range MaxGenerators {
		table := generatorKey(i) + "."
		for key := range values {
			if strings.HasPrefix(key, table) {
				c.Generators = append(c.Generators, make([]Generator, max(0, i+1-len(c.Generators)))...)
				c.Generators[i].Format, _ = values[table+"format"].value.(string)
			}
		}
	}
}

func syntaxError(err error) *Error {
	p, _ := errors.AsType[toml.ParseError](err)
	if strings.HasSuffix(p.LastKey, "cookie") { // the parser's message would contain the cookie
		return &Error{Line: p.Position.Line, Key: p.LastKey, Value: hidden,
			Want: "not TOML: the value must be in quotes"}
	}
	return &Error{Line: p.Position.Line, Want: "not TOML: " + cmp.Or(p.Message, err.Error())}
}

// quoted matches comments and strings, in which dots and brackets have no meaning.
var quoted = regexp.MustCompile(`(?s)"""(\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\n]*`)

// tooDeep reports whether dotted keys or brackets are nested deeper than maxDepth. The
// parser's time grows with the cube of the depth.
func tooDeep(src string) bool {
	dots, depth := 0, 0
	for _, c := range quoted.ReplaceAllString(src, "") {
		switch c {
		case '.':
			dots++
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case '=', ',', '\n':
			dots = 0
		}
		if dots > maxDepth || depth > maxDepth {
			return true
		}
	}
	return false
}

// flatten calls add with each value in a table, under the key table.key. An unknown table counts as a value.
func flatten(prefix string, doc map[string]any, add func(key string, v any)) {
	for name, v := range doc {
		if table, ok := v.(map[string]any); ok && slices.Contains(tables, prefix+name) {
			flatten(prefix+name+".", table, add)
		} else {
			add(prefix+name, v)
		}
	}
}

var tables = append(stores.Names(), "node", "node.tls", "flake", "http", "http.tls", "numbers", "log")

// unknown returns the fault of an unknown key, or of a value where a table must be.
func unknown(key string, v any, settings []setting) *Error {
	if len(key) > maxKey {
		return &Error{Key: strings.ToValidUTF8(key[:maxKey], "") + "...", Want: "unknown"}
	}
	if slices.Contains(tables, key) {
		return &Error{Key: key, Value: show(key, v), Want: fmt.Sprintf("must be a table [%s]", key)}
	}
	names := tables
	if _, isTable := v.(map[string]any); !isTable {
		names = nil
		table := key[:strings.LastIndexByte(key, '.')+1]
		for _, s := range settings {
			if strings.HasPrefix(s.key, table) || !strings.HasPrefix(table, "generator[") {
				names = append(names, s.key)
			}
		}
	}
	word := base(key)
	if word == "numbers" {
		word = "count" // numbers.count is how many numbers there are
	}
	far := func(own, name string) int {
		n := Distance(own, base(name))
		if key != own && strings.TrimSuffix(name, base(name)) != strings.TrimSuffix(key, own) {
			n++ // a key of another table is meant less often
		}
		return min(n, Distance(key, name))
	}
	return &Error{Key: key, Want: "unknown" + Nearest(", the nearest known is ", word, names, far)}
}

// base returns a key without its table.
func base(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }

// Nearest returns before, followed by the name that is nearest to word. It returns "" if every
// name differs from word by more than half of word's length and by more than two bytes, or by as much
// as another word.
func Nearest(before, word string, names []string, far func(word, name string) int) (nearest string) {
	most := min(max(2, len(word)/2), len(word)-1)
	for _, name := range names {
		if n := far(word, name); n <= most {
			nearest, most = before+name, n-1
		}
	}
	return nearest
}

// Distance returns the Levenshtein distance between a and b, in bytes.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// headOfLine matches a key, or the header of a table or of an array of tables, at the start of a line.
var headOfLine = regexp.MustCompile(`^\s*(?:\[\[?\s*([^\]]*?)\s*\]|["']?([^="']*?)["']?\s*=)`)

// linesOf returns a function that finds the line of a table's header, or of a key that is written
// plainly below its table's header. For keys that a generator lacks, it returns the line of the
// generator's header. For all other keys it returns 0, because the parser keeps no positions.
func linesOf(src string) func(key string) int {
	lines := make(map[string]int)
	prefix, count, n := "", 0, 0
	for line := range strings.Lines(src) {
		n++
		m := headOfLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		keys := []string{prefix + m[2]}
		if table := m[1]; table != "" {
			keys = []string{table}
			if table == generators {
				table = generatorKey(count)
				count++
				keys = append(keys, table)
			}
			prefix = table + "."
		}
		for _, key := range keys {
			lines[key] = cmp.Or(lines[key], n)
		}
	}
	return func(key string) int {
		table := ""
		if strings.HasPrefix(key, "generator[") {
			table, _, _ = strings.Cut(key, ".")
		}
		return cmp.Or(lines[key], lines[table])
	}
}

// Error is one fault of a configuration.
type Error struct {
	File  string // the file or other source of the value, such as a flag; empty if unknown
	Line  int    // 0 if unknown
	Key   string // including its table: node.name
	Value string // as in the file; empty if the key itself is wrong
	Want  string // what is allowed, or what is wrong
}

func (e *Error) Error() string {
	where := place(cmp.Or(e.File, "config"), e.Line)
	what := e.Key
	if e.Value != "" {
		what += " = " + e.Value
	}
	if what != "" {
		where += ": " + what
	}
	return where + ": " + e.Want
}

// place returns a file's name, with the line unless it is 0.
func place(file string, line int) string {
	if line > 0 {
		return fmt.Sprintf("%s:%d", file, line)
	}
	return file
}

// join joins faults into one error, in the order of the file.
func join(faults []*Error) error {
	slices.SortStableFunc(faults, func(a, b *Error) int { return cmp.Compare(a.Line, b.Line) })
	var errs []error
	for _, e := range faults {
		errs = append(errs, e)
	}
	return errors.Join(errs...)
}
