package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

const (
	ours           = "FLAKE_"
	cookieVariable = ours + "COOKIE"          // the other name of the cookie's
	cookieFileVar  = cookieVariable + "_FILE" // and of its file's
)

// variable is the environment variable of a key: FLAKE_NODE_NAME is that of node.name,
// FLAKE_GENERATOR_1_WORKER that of generator[1].worker.
func variable(key string) string { return ours + strings.ToUpper(underlined.Replace(key)) }

var underlined = strings.NewReplacer("].", "_", "[", "_", ".", "_")

// ofService matches what Kubernetes sets for a service whose name begins with flake.
var ofService = regexp.MustCompile(`^FLAKE_([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// Environ returns the variables of keys among those of [os.Environ]. An empty one counts
// as unset. One that is of no key but looks like one is an error: it begins with FLAKE_ and
// a table, or is a key without its table. Kubernetes may set such for a service.
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
	set := make(map[string]string) // the variable of a cookie, or of its file
	for _, line := range environ {
		name, value, _ := strings.Cut(line, "=")
		key, ok := keys[name]
		switch {
		case value == "" || !ok && (!meant(name, keys) || ofService.MatchString(name)):
		case !ok:
			faults = append(faults, &Error{File: name, Want: fmt.Sprintf("unknown, the nearest known variable is %s", nearest(name, keys))})
		case set[cookieOf(key)] != "":
			faults = append(faults, &Error{File: name, Key: key, Want: fmt.Sprintf("%s is set too: only one of the two wanted", set[cookieOf(key)])})
		default:
			if cookie := cookieOf(key); cookie != "" {
				set[cookie] = name
			}
			if value == `""` {
				value = ""
			}
			flags = append(flags, Flag{name, key, value})
		}
	}
	return flags, join(faults)
}

// variables are the keys by their variables.
func variables() map[string]string {
	all := Default()
	all.Generators = make([]Generator, MaxGenerators)
	keys := map[string]string{cookieVariable: cookieKey, cookieFileVar: cookieKey + ofFile}
	for _, s := range all.settings() {
		keys[variable(s.key)] = s.key
	}
	for key := range retired {
		keys[variable(key)] = key
	}
	return keys
}

// meant reports whether a variable of no key looks like one.
func meant(name string, keys map[string]string) bool {
	for _, key := range keys {
		table := key[:strings.IndexAny(key, ".[")]
		if strings.HasPrefix(name, variable(table)+"_") || name == short(key) {
			return true
		}
	}
	return false
}

// short is the variable of a key without its table.
func short(key string) string { return variable(base(key)) }

// nearest returns the variable whose name, or whose name without its table, is most like
// the given one.
func nearest(name string, keys map[string]string) (best string) {
	least := len(name)
	for known, key := range keys {
		far := min(distance(name, known), distance(name, short(key))+1)
		if best == "" || far < least || far == least && known < best {
			best, least = known, far
		}
	}
	return best
}

// setText sets a value that has no type: it is a text, or else what TOML takes it for.
func setText(s setting, text string) bool {
	if s.set(text) {
		return true
	}
	var doc map[string]any
	_, err := toml.Decode("value = "+text, &doc)
	return err == nil && len(doc) == 1 && s.set(doc["value"])
}

// tablesOf makes the tables that the keys of flags are in, and notes formats, which
// decide about other keys.
func (c *Config) tablesOf(flags []Flag) {
	for _, f := range flags {
		c.Node.TLS.On = c.Node.TLS.On || strings.HasPrefix(f.Key, "node.tls.")
		c.HTTP.TLS.On = c.HTTP.TLS.On || strings.HasPrefix(f.Key, "http.tls.")
		c.Etcd.On = c.Etcd.On || strings.HasPrefix(f.Key, "etcd.")
		var n int
		if _, err := fmt.Sscanf(f.Key, "generator[%d].", &n); err == nil && n > len(c.Generators) {
			c.Generators = append(c.Generators, make([]Generator, n-len(c.Generators))...)
		}
		if n > 0 && base(f.Key) == "format" {
			c.Generators[n-1].Format = f.Value
		}
	}
}

// distance is the Levenshtein distance between a and b, in bytes.
func distance(a, b string) int {
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
