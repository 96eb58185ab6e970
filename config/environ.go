package config

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

const ours = "FLAKE_"

// variable returns the environment variable for a key: FLAKE_NODE_NAME for node.name, FLAKE_GENERATOR_1_WORKER
// for generator[1].worker.
func variable(key string) string { return ours + strings.ToUpper(underlined.Replace(key)) }

var underlined = strings.NewReplacer("].", "_", "[", "_", ".", "_")

// ofService matches the variables that Kubernetes sets for a service whose name begins with flake.
var ofService = regexp.MustCompile(`^FLAKE_([A-Z0-9_]+_)?` +
	`(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// Environ returns a flag for each variable in environ that sets a key. The variables have
// the form of those in [os.Environ]. An empty variable counts as unset. An unknown variable is an
// error if its name begins with FLAKE_ and a table, or is FLAKE_ and a key without its table.
// Variables that Kubernetes sets for a service are not errors.
func Environ(environ []string) ([]Flag, error) {
	environ = slices.DeleteFunc(slices.Sorted(slices.Values(environ)), func(line string) bool {
		return !strings.HasPrefix(line, ours)
	})
	if len(environ) == 0 {
		return nil, nil
	}
	keys := variables()
	var flags []Flag
	var faults []*Error
	set := make(map[string]string) // the variable that set each key; a cookie's file counts as the cookie
	for _, line := range environ {
		name, value, _ := strings.Cut(line, "=")
		key, ok := keys[name]
		once := cmp.Or(cookieOf(key), key) // only one variable may set it
		switch {
		case value == "":
		case set[once] != "":
			faults = append(faults, &Error{File: name, Key: key, Want: fmt.Sprintf(onlyOne, set[once])})
		case ok:
			set[once] = name
			if value == `""` {
				value = ""
			}
			flags = append(flags, Flag{name, key, value})
		case meant(name, keys) && !ofService.MatchString(name):
			far := func(name, known string) int {
				return min(Distance(ours+name, known), Distance(ours+name, short(keys[known]))+1)
			}
			known := slices.Sorted(maps.Keys(keys))
			slices.Reverse(known) // if both are equally near, FLAKE_NODE_NAME wins over FLAKE_GENERATOR_1_NAME
			nearest := Nearest(", the nearest known variable is ", name[len(ours):], known, far)
			faults = append(faults, &Error{File: name, Want: "unknown" + nearest})
		}
	}
	return flags, join(faults)
}

// variables returns the key that each variable sets.
func variables() map[string]string {
	all := Default()
	all.Generators = make([]Generator, MaxGenerators)
	keys := make(map[string]string)
	for _, s := range all.settings() {
		keys[variable(s.key)] = s.key
		if strings.HasPrefix(s.key, "flake.") || cookieOf(s.key) == cookieKey {
			keys[short(s.key)] = s.key
		}
	}
	return keys
}

// meant reports whether an unknown variable looks like a misspelled key.
func meant(name string, keys map[string]string) bool {
	for _, key := range keys {
		table := key[:strings.IndexAny(key, ".[")]
		if strings.HasPrefix(name, variable(table)+"_") || name == short(key) {
			return true
		}
	}
	return false
}

// short returns the variable for a key without the key's table in its name, such as FLAKE_WORKER_ID.
func short(key string) string { return variable(base(key)) }

// setText sets a value from untyped text: as a string if the key takes one, otherwise as TOML.
func setText(s setting, text string) bool {
	if s.set(text) {
		return true
	}
	var doc map[string]any
	_, err := toml.Decode("value = "+text, &doc)
	return err == nil && len(doc) == 1 && s.set(doc["value"])
}
