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

// Generator is a [[generator]] table: an additional gen_server that returns ids.
type Generator struct {
	Name     string          // registered name
	Format   string          // one of formats.Kinds
	Options  formats.Options // the values of the format's keys that are set
	Random   bool            // its number is random, and saved with the mark
	Assigned []string        // the keys whose number the store assigns: one key, or datacenter and worker
}

// Kind returns the format's entry in formats.Kinds, or nil.
func (g *Generator) Kind() *formats.Kind { return formats.KindOf(g.Format) }

// Layout returns the format of the ids, which does not depend on an assigned number.
func (g *Generator) Layout() *formats.Format { return g.Kind().Format(g.Numbered(0)) }

// Numbered returns the options, with a number in the keys whose number the store assigns.
func (g *Generator) Numbered(number uint64) formats.Options {
	return g.Kind().Numbered(g.Options, g.Assigned, number)
}

// MaxGenerators is the maximum number of [[generator]] tables. Each generator has a line in
// the file that is written every second.
const MaxGenerators = 64

// generatorKey returns the name that errors use for the i-th [[generator]] table, counted from 0.
func generatorKey(i int) string { return fmt.Sprintf("generator[%d]", i+1) }

func (g *Generator) settings(i int) []setting {
	key := generatorKey(i) + "."
	settings := []setting{
		field(key+"name", &g.Name, generatorName.MatchString(g.Name) && !slices.Contains(taken, g.Name),
			"must be a letter from a to z, followed by at most 63 letters, digits or _, "+
				"and not the name of one of the node's own servers"),
		field(key+"format", &g.Format, g.Kind() != nil, `must be one of "`+strings.Join(formats.Names(), `", "`)+`"`),
	}
	for _, k := range formats.Keys() {
		settings = append(settings, g.setting(key, k))
	}
	return settings
}

func (g *Generator) setting(table string, k *formats.Key) setting {
	o := &option{k, g}
	ok, must := o.allowed()
	return setting{table + k.Name, o.value, o.set, ok, must}
}

type option struct {
	*formats.Key
	generator *Generator
}

// foreign reports whether the generator's format lacks the key, which other formats have.
func (o *option) foreign() bool {
	k := o.generator.Kind()
	return k != nil && k.Key(o.Name) == nil
}

// allowed reports whether the value is allowed and describes the allowed values.
func (o *option) allowed() (ok bool, must string) {
	g := o.generator
	n, isSet := g.Options[o.Name]
	ok = n >= 0
	switch {
	case o.foreign():
		must = fmt.Sprintf("not a key of format %s, only of %s", g.Format, formats.WithKey(o.Name))
		if formats.IsNumber(o.Name) {
			must += "; use " + g.Kind().Numbers[0][0] + " instead"
		}
	case o.Type == formats.Bool:
		must = mustBeBool
	case o.Type == formats.Time:
		must = "must be a time since 1970 that ends in Z or an offset, as in 2020-01-01T00:00:00Z"
	case isSet && o.Reserved(n):
		ok, must = false, notByHand
	case o.Type == formats.MAC:
		must = mustBeMAC
	default:
		most := o.Most(g.Options)
		ok, must = !isSet || o.From <= n && n <= most, mustBeInteger(o.From, most)
		if formats.IsNumber(o.Name) {
			must += `, or "assigned"`
		}
	}
	return ok, must
}

func (o *option) set(v any) bool {
	g := o.generator
	switch {
	case o.foreign():
		return false
	case v == assigned && formats.IsNumber(o.Name):
		g.Assigned = append(g.Assigned, o.Name)
		return true
	case o.Type == formats.MAC:
		g.Random = v == random
		if g.Random || v == "" {
			return true
		}
	}
	n, ok := int64(0), false
	switch v := v.(type) {
	case int64:
		n, ok = v, o.Type == formats.Integer
	case bool:
		ok = o.Type == formats.Bool
		if v {
			n = 1
		}
	case time.Time:
		// A time without an offset would move with the machine's time zone, and ids would repeat.
		n, ok = v.UnixMilli(), o.Type == formats.Time && localLayouts[v.Location().String()] == ""
	case string:
		mac, _ := net.ParseMAC(v) // ParseMAC also accepts other lengths, and three dotted groups
		if ok = len(mac) == 6 && !strings.Contains(v, ".") && o.Type == formats.MAC; ok {
			n = int64(binary.BigEndian.Uint64(append([]byte{0, 0}, mac...)))
		}
	}
	if g.Options == nil {
		g.Options = formats.Options{}
	}
	// A wrong number is kept, so that it does not count as missing. Wrong values of other keys are
	// not kept, because limits depend on these keys.
	if ok || formats.IsNumber(o.Name) {
		g.Options[o.Name] = n
	}
	return ok
}

func (o *option) value() any {
	g := o.generator
	v, ok := g.Options[o.Name]
	switch {
	case slices.Contains(g.Assigned, o.Name):
		return assigned
	case o.Type == formats.MAC && g.Random:
		return random
	case !ok && o.Type == formats.MAC:
		return ""
	case !ok:
		return nil
	case o.Type == formats.Bool:
		return v != 0
	case o.Type == formats.Time:
		return time.UnixMilli(v).UTC()
	case o.Type == formats.MAC:
		return net.HardwareAddr(binary.BigEndian.AppendUint64(nil, uint64(v))[2:]).String()
	}
	return v
}

// draw marks as random every worker id that is not set.
func (c *Config) draw() {
	f := &c.Flake
	f.Random = f.Random || f.Interface == "" && !f.has("worker_id")
	for i := range c.Generators {
		g := &c.Generators[i]
		k := g.Kind()
		g.Random = k != nil && k.Random() && !slices.ContainsFunc(k.Numbers[0], g.has)
	}
}

// has reports whether a key is set or the store assigns its number.
func (g *Generator) has(key string) bool {
	_, ok := g.Options[key]
	return ok || slices.Contains(g.Assigned, key)
}

// taken lists the names of the node's own servers.
var taken = []string{
	"flake", "flake_sup", "persistent_timer", "net_kernel", "global_name_server", "rex", "kernel_sup", "init",
}

// generatorName matches an atom that needs no quotes and can be part of a file name.
var generatorName = regexp.MustCompile(`^[a-z][0-9A-Za-z_]{0,63}$`)

// faults reports the faults of the table, except those of single values. others are the
// tables before this one.
func (g *Generator) faults(others []Generator, fault func(name, want string)) {
	if k := g.Kind(); k != nil {
		g.numberFaults(k, fault)
		if k.Check != nil {
			for _, f := range k.Check(g.Numbered(0)) {
				fault(f.Key, f.Want)
			}
		}
	}
	for j, other := range others {
		if other.Name == g.Name {
			fault("name", generatorKey(j)+" already has this name")
		}
	}
}

// numberFaults reports a fault if the generator's number is set in more than one way, is needed but
// missing, or is only partly assigned.
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
		fault(first, "set either "+strings.Join(all, " or "))
	case len(given) == 0 && !k.Random():
		fault(first, strings.Join(append([]string{"set one that no other node has"}, all[1:]...), ", or "))
	case len(g.Assigned) > 0 && len(g.Assigned) < len(given[0]):
		fault(g.Assigned[0], strings.Join(given[0], " and ")+" are one number: set both or neither to \"assigned\"")
	}
}

// LoadGenerator returns the generator that flags describe in place of a [[generator]] table.
// Each flag must set a key of that table other than name, and its value must not be empty. If
// numbered is false, only the layout matters, and the number may be missing. The error joins an
// Error for each fault.
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
	// Without a cookie, parse would read the one in the home directory.
	all = append(all, Flag{Key: cookieKey, Value: PublishedCookie})
	c, faults := parse("", "", all)
	reported := make(map[string]bool)
	faults = slices.DeleteFunc(faults, func(e *Error) bool { // one fault of a flag is enough
		defer func() { reported[e.Key] = true }()
		return reported[e.Key]
	})
	for _, e := range faults {
		if e.Want == needsStore {
			e.Want = "only nodes can take numbers from a store"
		}
		e.Want = strings.TrimSuffix(strings.TrimSuffix(e.Want, ` or "assigned"`), ",")
		e.File = "-" + strings.ReplaceAll(base(e.Key), "_", "-")
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
