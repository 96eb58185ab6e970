package config

import (
	"slices"
	"strings"
)

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
	if key := g.numberKey(); !numbered && slices.Contains(Formats, g.Format) && key != "worker_id" { // which is random
		all = append(all, Flag{Key: key, Value: "0"})
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
