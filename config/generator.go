package config

import (
	"encoding/binary"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/flake-go/flake/flake/formats"
)

// Generator is a table [[generator]]: one more gen_server that hands out ids.
type Generator struct {
	Name    string          // registered name
	Format  string          // one of formats.Kinds
	Options formats.Options // the values of its format's keys, those that are set
	Random  bool            // its number is made up, and kept beside the mark
	Etcd    []string        // the keys whose number is from etcd: one of them, or datacenter and worker
}

// Kind returns the format's row of the table, or nil.
func (g *Generator) Kind() *formats.Kind { return formats.KindOf(g.Format) }

// Layout returns the format of the ids. A number of etcd need not be known for that.
func (g *Generator) Layout() *formats.Format { return g.Kind().Format(g.Numbered(0)) }

// Numbered returns the options, with a number of etcd in the keys that are from there.
func (g *Generator) Numbered(number uint64) formats.Options {
	return g.Kind().Numbered(g.Options, g.Etcd, number)
}

// Generator returns the table [flake] as a table [[generator]] would have it.
func (f *Flake) Generator() Generator {
	g := Generator{Name: "flake", Format: "flake", Random: f.Random}
	if f.WorkerID != nil {
		g.Options = formats.Options{"worker_id": numberOf(f.WorkerID)}
	}
	if f.Etcd {
		g.Etcd = []string{"worker_id"}
	}
	return g
}

func numberOf(mac net.HardwareAddr) int64 {
	return int64(binary.BigEndian.Uint64(append([]byte{0, 0}, mac...)))
}

// MaxGenerators bounds how many tables [[generator]] there may be. Each has a line in the
// file that is written every second.
const MaxGenerators = 64

// generatorKey returns the key in faults of the i-th table [[generator]], from 0.
func generatorKey(i int) string { return fmt.Sprintf("generator[%d]", i+1) }

// settings lists the keys of the i-th table.
func (g *Generator) settings(i int) []setting {
	key := generatorKey(i) + "."
	settings := []setting{
		{key + "name", "a name wanted that the node has not got itself: a letter from a to z, then at most 63 letters, digits and _",
			setString(&g.Name), func() bool { return generatorName.MatchString(g.Name) && !slices.Contains(taken, g.Name) },
			func() string { return fmt.Sprintf("%q", g.Name) }},
		{key + "format", `"` + strings.Join(formats.Names(), `", "`) + `" wanted`,
			setString(&g.Format), func() bool { return g.Kind() != nil },
			func() string { return fmt.Sprintf("%q", g.Format) }},
	}
	for _, k := range formats.Keys() {
		settings = append(settings, g.option(key, k))
	}
	return settings
}

// option is the setting of a key, which other formats than those that have it refuse.
func (g *Generator) option(table string, k *formats.Key) setting {
	s := setting{key: table + k.Name, valid: func() bool {
		v, ok := g.Options[k.Name]
		return !ok || k.Type != formats.Integer && v >= 0 || k.Type == formats.Integer && k.From <= v && v <= k.Most(g.Options)
	}}
	show := func(v int64) string { return fmt.Sprint(v) }
	set := func(n int64, ok bool) bool {
		if ok && g.Options == nil {
			g.Options = formats.Options{}
		}
		if ok {
			g.Options[k.Name] = n
		}
		return ok
	}
	switch k.Type {
	case formats.Integer:
		s.want = fmt.Sprintf("a whole number from %d to %d wanted", k.From, k.Most(g.Options))
		s.set = func(v any) bool { n, ok := v.(int64); return set(n, ok) }
	case formats.Bool:
		s.want = "true or false wanted"
		s.set = func(v any) bool {
			on, ok := v.(bool)
			if on {
				return set(1, ok)
			}
			return set(0, ok)
		}
		show = func(v int64) string { return fmt.Sprint(v != 0) }
	case formats.Time:
		s.want = "a time from 1970 on wanted, as in 2020-01-01T00:00:00Z"
		s.set = func(v any) bool { t, ok := v.(time.Time); return set(t.UnixMilli(), ok) }
		show = func(v int64) string { return time.UnixMilli(v).UTC().Format(time.RFC3339Nano) }
	case formats.MAC:
		s.want = wantMAC
		s.set = orRandom(&g.Random, func(v any) bool {
			var mac net.HardwareAddr
			if !setMAC(&mac)(v) {
				return false
			}
			return mac == nil || set(numberOf(mac), true)
		})
		show = func(v int64) string {
			return fmt.Sprintf("%q", net.HardwareAddr(binary.BigEndian.AppendUint64(nil, uint64(v))[2:]))
		}
	}
	if formats.IsNumber(k.Name) {
		s.set = orEtcd(func() { g.Etcd = append(g.Etcd, k.Name) }, s.set)
		if k.Type == formats.Integer {
			s.want = strings.Replace(s.want, " wanted", `, or "etcd", wanted`, 1)
		}
	}
	s.value = func() string {
		v, ok := g.Options[k.Name]
		switch {
		case slices.Contains(g.Etcd, k.Name):
			return fmt.Sprintf("%q", fromEtcd)
		case k.Type == formats.MAC && g.Random:
			return fmt.Sprintf("%q", random)
		case !ok:
			return ""
		}
		return show(v)
	}
	if own := g.Kind(); own != nil && own.Key(k.Name) == nil {
		s.want = fmt.Sprintf("a key of format %s, not of %s", formats.WithKey(k.Name), g.Format)
		if formats.IsNumber(k.Name) {
			s.want += ", which has " + own.Numbers[0][0]
		}
		s.set = func(any) bool { return false }
	}
	return s
}

// draw has the worker ids that nothing is said of be random.
func (c *Config) draw() {
	f := &c.Flake
	f.Random = f.Random || f.Interface == "" && f.WorkerID == nil && !f.Etcd
	for i := range c.Generators {
		g := &c.Generators[i]
		k := g.Kind()
		g.Random = g.Random || k != nil && k.Random() && !slices.ContainsFunc(k.Numbers[0], g.has)
	}
}

// has reports whether a key is set, or its number is from etcd.
func (g *Generator) has(key string) bool {
	_, ok := g.Options[key]
	return ok || slices.Contains(g.Etcd, key)
}

// taken are the names of the node's own servers.
var taken = []string{"flake", "flake_sup", "persistent_timer", "net_kernel", "rex", "kernel_sup", "init"}

// generatorName matches an atom without quotes that can be part of a file's name.
var generatorName = regexp.MustCompile(`^[a-z][0-9A-Za-z_]{0,63}$`)

// faults returns the faults of the i-th table besides single values.
func (g *Generator) faults(i int, before []Generator) (faults []*Error) {
	fault := func(name, want string) {
		e := &Error{Key: generatorKey(i) + "." + name, Want: want}
		for _, s := range g.settings(i) {
			if s.key == e.Key {
				e.Value = s.value()
			}
		}
		faults = append(faults, e)
	}
	if k := g.Kind(); k != nil {
		g.numberFaults(k, fault)
		if k.Check != nil {
			for _, f := range k.Check(g.Numbered(0)) {
				fault(f.Key, f.Want)
			}
		}
	}
	for j, other := range before {
		if other.Name == g.Name {
			fault("name", generatorKey(j)+" has this name: another wanted")
		}
	}
	return faults
}

// numberFaults are those of the number that no other generator may have.
func (g *Generator) numberFaults(k *formats.Kind, fault func(name, want string)) {
	var all []string
	var given [][]string
	for _, keys := range k.Numbers {
		all = append(all, strings.Join(keys, " and "))
		if slices.ContainsFunc(keys, g.has) {
			given = append(given, keys)
		}
	}
	switch first := k.Numbers[0][0]; {
	case len(given) > 1:
		fault(first, "either "+strings.Join(all, " or ")+" wanted")
	case len(given) == 0 && !k.Random():
		fault(first, strings.Join(append([]string{"one wanted that no other node has"}, all[1:]...), ", or "))
	case len(g.Etcd) > 0 && len(g.Etcd) < len(given[0]):
		fault(g.Etcd[0], strings.Join(given[0], " and ")+" are one number of etcd: wanted for both, or for neither")
	}
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

// GeneratorKeys are the keys of a table [[generator]], but for its name.
func GeneratorKeys() (keys []string) {
	var g Generator
	for _, s := range g.settings(0)[1:] {
		keys = append(keys, base(s.key))
	}
	return keys
}

// LoadGenerator returns the generator that flags make as a table [[generator]] would. The
// key of a flag is one of [GeneratorKeys], its value not empty. Without numbered it needs
// no number of its own: it is there for its layout. The error joins an Error for each
// fault.
func LoadGenerator(numbered bool, flags ...Flag) (Generator, error) {
	all := []Flag{{Key: "name", Value: "generated"}}
	var g Generator
	for _, f := range flags {
		if f.Key == "format" {
			g.Format = f.Value
		}
		all = append(all, f)
	}
	if k := g.Kind(); !numbered && k != nil && !k.Random() {
		all = append(all, Flag{Key: k.Numbers[0][0], Value: "0"})
	}
	for i := range all {
		all[i].Key = generatorKey(0) + "." + all[i].Key
	}
	c, faults := parse("", "", all, func() (Flag, *Error) { return Flag{}, nil })
	first := make(map[string]bool)
	faults = slices.DeleteFunc(faults, func(e *Error) bool { // a value that is wrong is not missing too
		defer func() { first[e.Key] = true }()
		return first[e.Key]
	})
	for _, e := range faults {
		if e.Want == wantEtcd {
			e.Want = "another wanted, as only nodes have numbers of etcd"
		}
		e.Want = withoutEtcd.Replace(e.Want)
		if e.File == "" {
			e.File = "-" + strings.ReplaceAll(base(e.Key), "_", "-")
		}
		if e.Value != "" {
			e.File += " " + e.Value
		}
		e.Key, e.Value = "", ""
	}
	if err := join(faults); err != nil {
		return Generator{}, err
	}
	return c.Generators[0], nil
}

// withoutEtcd takes from what is wanted that it may be "etcd".
var withoutEtcd = strings.NewReplacer(`, or "etcd", wanted`, " wanted", `, or "random" or "etcd"`, `, or "random"`)
