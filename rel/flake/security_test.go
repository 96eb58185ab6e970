package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/constant"
	"go/parser"
	gotoken "go/token"
	"go/types"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// noLimits are constants that are named like limits on peers but are not limits, or are bounded by
// other limits.
var noLimits = map[string]string{
	"node/handshake.MaxNameLength":   "a length set by the protocol",
	"node/distribution.maxReason":    "how long an exit reason may be",
	"node/distribution.maxSpares":    "what is kept for reuse",
	"node/socket.maxEvictions":       "how long a connection keeps its own thread",
	"node/socket.maxWait":            "how long a thread waits for a processor",
	"node/distribution.maxTick":      "the time between ticks",
	"node/etf.MaxAtomChars":          "a length set by the protocol",
	"node/etf.MaxReferenceWords":     "a length set by the protocol",
	"idserver/iderl.maxDigits":       "arguments have a lower limit",
	"flake/internal/tick.MaxPerTick": "the format of ids",
	"flake/internal/tick.MaxLast":    "the format of ids",
	"flake/internal/tick.maxNap":     "how often the clock is read",
	"node/console.maxAnswers":        "how many values the prompt lists",
	"node/console.maxValueBytes":     "how much of a value the prompt shows",
	"config.maxFile":                 "the operator's",
	"config.maxDepth":                "the operator's",
	"config.maxValues":               "the operator's",
	"config.maxKey":                  "the operator's",
	"node/epmd.maxOldCreation":       "a number set by the protocol",
	"node/epmd.maxName":              "a length set by the protocol",
	"node/epmd.maxExtra":             "a length set by the protocol",
	"idserver/idhttp.maxPeers":       "how many nodes the page lists",
	"flake/workers/etcd.maxShown":    "what is shown of an answer",
	"flake/internal/tick.MaxUnit":    "the format of ids",
}

// behind maps the first cell of each row of SECURITY.md's tables to packages. Each package is followed by the constants
// whose values the row states, in order, or by other names in the package: files, functions, tests.
var behind = map[string]string{
	"handshake":                    "node setupTime",
	"bytes below TLS":              "node/tlslimit MaxRaw",
	"handshake message":            "node/handshake MaxMessage",
	"handshakes under way":         "node MaxHandshakes",
	"wrong cookies":                "node firstDelay maxDelay maxDelayLoopback offenceKept maxDelayed",
	"hosts with wrong cookies":     "node maxOffenders",
	"connected nodes":              "node MaxConnections MaxPerHost idleTime",
	"waiting callers":              "node proved enter",
	"open files":                   "node/reserve Kept Needed Quarter Rest",
	"threads":                      "node/socket ThreadsKept",
	"connections with threads":     "node/socket MaxThreads",
	"silence":                      "node/distribution tick",
	"frame":                        "node/distribution MaxFrame",
	"a connection's own memory":    "node/distribution ownInput ownOutput ownQueues",
	"shared memory":                "node/distribution MaxShared MaxSmall smallMemory longHeld maxUnfreed",
	"spare buffers":                "node/distribution MaxSpare",
	"replies waiting for one peer": "node/distribution fullOutput maxOutput",
	"kernel buffers":               "node/socket maxUnsent",
	"monitors, links of one peer":  "node/distribution maxWatches",
	"functions of one peer":        "node/distribution maxSpawned functionSize",
	"arguments of a function":      "node/distribution maxArguments node/rpc MaxRequest",
	"waiting calls":                "node/distribution ownQueues",
	"replies of more than 256 ids": "idserver MaxInline node/distribution Later ownLarge roomTime",
	"replies larger than 8 KiB":    "node/distribution largeFrame",
	"local calls":                  "genserver MaxLocal",
	"nodes dialed for a forwarded call": "node/distribution " +
		"maxDeliveries maxDeliveriesOfPeer deliveryPause maxUnreachable",
	"replies to forwarded calls": "node/distribution maxPassedOn",
	"`seq_trace` token":          "node/distribution maxToken",
	"depth":                      "node/etf MaxDepth",
	"elements":                   "node/etf MaxElements",
	"bytes of an integer":        "node/etf MaxIntegerBytes",
	"lengths and counts":         "node/etf Reader",
	"terms that expressions of `eval` and the prompt build": "" +
		"node/etf MaxElements node/console MaxBytes node/etf MaxDepth",
	"other terms":                "node/etf node/distribution",
	"atoms":                      "node/etf",
	"ids of one call":            "idserver MaxMany MaxLease MaxTicks",
	"turns":                      "idserver turns.go idserver/idhttp turnTime",
	"ids of one HTTP request":    "idserver MaxMany MaxLease idserver/idhttp chunk",
	"ids of `flake_harness`":     "idserver/iderl MaxGenerate MaxGenerateBytes",
	"generators besides `flake`": "config MaxGenerators",
	"clock jumps ahead":          "flake/internal/tick MaxStep Doubt",
	"EPMD connections waiting":   "node/epmd maxWaiting maxPerHost",
	"EPMD requests":              "node/epmd maxRequest answerTime",
	"EPMD registrations":         "node/epmd maxRegistered",
	"HTTP requests":              "idserver/idhttp MaxConnections MaxConnectionsPerHost",
	"HTTP connections":           "idserver/idhttp SpareConnections",
	"HTTP header, body":          "idserver/idhttp MaxHeader MaxBody",
	"HTTP times":                 "idserver/idhttp readTime writeTime idleTime",
	"log lines on the page":      "idserver/idhttp maxRecent maxRecentAlike maxRecentText maxRecentMore",
	"open pages":                 "idserver/idhttp MaxStreams",
	"scrapes":                    "idserver/idhttp maxScrapes maxUnread turnTime",
	"profile":                    "idserver/idhttp MaxProfile",
	"etcd answers":               "flake/workers/etcd maxAnswer maxList maxPairs maxText",
	"etcd calls":                 "flake/workers/etcd longest connect",
	"PostgreSQL answers":         "flake/workers/postgres maxAnswer maxList leastRead maxMessages maxText",
	"PostgreSQL calls":           "flake/workers/postgres longest",
	"Go's memory": "rel/flake/daemon memoryLimit memoryConnections memorySteps " +
		"memoryPerConnection memoryPerTLS",
	"memory in a container":    "node memoryIdle memoryPerConnection memoryPerTLS rel/flake/daemon memoryPerHTTP",
	"log lines of one message": "rel/flake/output maxKinds burst interval crowd reportAfter",
	"hosts in the log":         "rel/flake/output maxHosts",
	"log lines waiting":        "rel/flake/output maxQueued",
	"imported files":           "rel/flake/original MaxFile maxFiles",
	"memory under attack": "rel/flake mayGrow mayGrowPerConnection mayGrowConnections mayGrowPerTLS " +
		"TestHostileMemory",
}

// TestSecurityTable compares the tables of SECURITY.md with the code behind them, which must exist. Each number in the
// second column is the value of a constant behind the row. There are two exceptions: a number after "about", and a row
// that also has code other than constants behind it. No limit and no row may be missing.
func TestSecurityTable(t *testing.T) {
	source := newSource(t, "../..")
	stated, found := map[string]bool{}, map[string]bool{}
	for _, row := range securityTable(t) {
		where := behind[row[0]]
		names, err := source.where(where)
		if err != nil {
			t.Errorf("%s: %v", row[0], err)
			continue
		}
		found[row[0]] = true
		all := true
		var values []quantity
		for _, n := range names {
			stated[n.dir], stated[n.dir+"."+n.name] = true, true
			if n.value == nil {
				all = false
				continue
			}
			values = append(values, *n.value)
		}
		if missing := lacks(quantities(row[0]+" | "+row[1]+" | "+row[2]), values); missing != nil {
			t.Errorf("%s: %v, the value of a constant of %s, is not stated, or not in this position", row[0], *missing, where)
		}
		for _, q := range quantities(row[1]) {
			if all && len(values) > 0 && !slices.Contains(values, q) {
				t.Errorf("%s: %v is not the value of a constant of %s", row[0], q, where)
			}
		}
	}
	for row := range behind {
		if !found[row] {
			t.Errorf("SECURITY.md has no row %q", row)
		}
	}
	if len(stated) < 40 {
		t.Errorf("only %d limits: %v", len(stated), stated)
	}
	for dir, p := range source.packages {
		if !stated[dir] {
			continue
		}
		for _, name := range p.limits {
			full := dir + "." + name
			_, none := noLimits[full]
			if none == stated[full] {
				t.Errorf("%s must be either in the table of SECURITY.md or in noLimits", full)
			}
			delete(noLimits, full)
		}
	}
	for full := range noLimits {
		t.Errorf("%s is in noLimits, but not in the code", full)
	}
}

// securityTable returns the rows of the tables, of three cells each.
func securityTable(t *testing.T) (rows [][]string) {
	t.Helper()
	text := readFile(t, "../../SECURITY.md")
	const header = "\n| limit | value | when exceeded |\n|---|---|---|\n"
	for _, table := range strings.Split(text, header)[1:] {
		for line := range strings.Lines(table) {
			line, found := strings.CutPrefix(line, "| ")
			if !found {
				break
			}
			cells := strings.Split(strings.TrimSuffix(line, "|\n"), "|")
			for i, cell := range cells {
				cells[i] = strings.TrimSpace(cell)
			}
			if len(cells) != 3 {
				t.Errorf("%d cells: %s", len(cells), line)
				continue
			}
			rows = append(rows, cells)
		}
	}
	return rows
}

// A quantity is a number; times are in ns.
type quantity struct {
	n    float64
	time bool
}

func (q quantity) String() string {
	if q.time {
		return time.Duration(q.n).String()
	}
	return strconv.FormatFloat(q.n, 'f', -1, 64)
}

var units = map[string]quantity{
	"KiB": {1 << 10, false}, "MiB": {1 << 20, false}, "GiB": {1 << 30, false}, "kB": {1e3, false}, "MB": {1e6, false},
	"ms": {1e6, true}, "s": {1e9, true}, "min": {60e9, true}, "minute": {60e9, true}, "minutes": {60e9, true},
	"h": {3600e9, true},
}

var number = regexp.MustCompile(`(about )?\b(\d[\d,]*(?:\.\d+)?)(?: ([A-Za-z]+))?`)

func quantities(text string) (all []quantity) {
	for _, m := range number.FindAllStringSubmatch(text, -1) {
		n, err := strconv.ParseFloat(strings.ReplaceAll(m[2], ",", ""), 64)
		if err != nil || m[1] != "" {
			continue
		}
		q := quantity{n: n}
		if unit, ok := units[m[3]]; ok {
			q = quantity{math.Round(n * unit.n), unit.time}
		}
		all = append(all, q)
	}
	return all
}

// lacks returns the first of values that is missing from stated, which must contain them in order. A
// number in stated may stand for several equal values in a row.
func lacks(stated, values []quantity) *quantity {
	for i, v := range values {
		if i > 0 && v == values[i-1] {
			continue
		}
		at := slices.Index(stated, v)
		if at < 0 {
			return &values[i]
		}
		stated = stated[at+1:]
	}
	return nil
}

// source is the module's code, as far as it has been loaded.
type source struct {
	root     string
	files    *gotoken.FileSet
	packages map[string]*code // by folder
}

type code struct {
	types  *types.Package
	names  map[string]bool // all names in it, tests included
	limits []string        // its constants named Max... or max...
}

func newSource(t *testing.T, root string) *source {
	t.Helper()
	root, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	return &source{root, gotoken.NewFileSet(), map[string]*code{}}
}

// A mention refers to something in a package. value is the value of a constant, and nil for anything else.
type mention struct {
	dir, name string
	value     *quantity
}

// where looks up the names behind a row.
func (s *source) where(names string) (all []mention, err error) {
	dir := ""
	for name := range strings.FieldsSeq(names) {
		if info, err := os.Stat(filepath.Join(s.root, name)); err == nil && info.IsDir() {
			dir = name
			if _, err := s.load(dir); err != nil {
				return nil, err
			}
			continue
		}
		if dir == "" {
			return nil, fmt.Errorf("%s comes before a package", name)
		}
		p := s.packages[dir]
		n := mention{dir: dir, name: name}
		if c, ok := p.types.Scope().Lookup(name).(*types.Const); ok {
			n.value = valueOf(c)
		} else if _, err := os.Stat(filepath.Join(s.root, dir, name)); err != nil && !p.names[name] {
			return nil, fmt.Errorf("%s has no %s", dir, name)
		}
		all = append(all, n)
	}
	if dir == "" {
		return nil, errors.New("no package is named")
	}
	return all, nil
}

func valueOf(c *types.Const) *quantity {
	n, _ := constant.Float64Val(constant.ToFloat(c.Val()))
	return &quantity{n, strings.HasSuffix(c.Type().String(), "time.Duration")}
}

// load reads the package in a folder: its declarations, not its function bodies.
func (s *source) load(dir string) (*code, error) {
	if p, ok := s.packages[dir]; ok {
		return p, nil
	}
	full := filepath.Join(s.root, dir)
	found, err := build.ImportDir(full, 0)
	if err != nil {
		return nil, err
	}
	p := &code{names: map[string]bool{}}
	s.packages[dir] = p
	var files []*ast.File
	for _, name := range slices.Concat(found.GoFiles, found.TestGoFiles) {
		file, err := parser.ParseFile(s.files, filepath.Join(full, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
		ast.Inspect(file, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				p.names[id.Name] = true
			}
			return true
		})
	}
	// Other modules are not loaded. Only the types that they declare are missing.
	check := types.Config{Importer: s, IgnoreFuncBodies: true, Error: func(error) {}}
	p.types, _ = check.Check("./"+dir, s.files, files, nil)
	for _, name := range p.types.Scope().Names() {
		c, ok := p.types.Scope().Lookup(name).(*types.Const)
		if ok && limitName.MatchString(name) && !strings.HasSuffix(s.files.Position(c.Pos()).Filename, "_test.go") {
			p.limits = append(p.limits, name)
		}
	}
	return p, nil
}

var limitName = regexp.MustCompile(`^[Mm]ax[A-Z]`)

// Import implements [types.Importer] for this module's packages and time's units.
func (s *source) Import(path string) (*types.Package, error) {
	if dir, ok := strings.CutPrefix(path, "github.com/flake-go/flake/"); ok {
		p, err := s.load(dir)
		if err != nil || p.types == nil {
			return nil, errors.Join(err, errors.New("not read yet"))
		}
		return p.types, nil
	}
	if path != "time" {
		return nil, errors.New("not read")
	}
	p := types.NewPackage("time", "time")
	name := types.NewTypeName(gotoken.NoPos, p, "Duration", nil)
	duration := types.NewNamed(name, types.Typ[types.Int64], nil)
	p.Scope().Insert(name)
	for unit, d := range map[string]time.Duration{
		"Nanosecond": 1, "Microsecond": time.Microsecond, "Millisecond": time.Millisecond, "Second": time.Second,
		"Minute": time.Minute, "Hour": time.Hour,
	} {
		p.Scope().Insert(types.NewConst(gotoken.NoPos, p, unit, duration, constant.MakeInt64(int64(d))))
	}
	p.MarkComplete()
	return p, nil
}
