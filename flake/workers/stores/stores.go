// Package stores is the table of the stores that can assign numbers: the keys of their
// configurations, and how to open them.
package stores

import (
	"maps"
	"slices"

	"github.com/flake-go/flake/flake/workers"
)

// Kinds lists the kinds of stores.
var Kinds = []*Kind{etcdKind, postgresKind, kubernetesKind}

// A Kind is a kind of store. Its name is also the name of its table in the configuration.
type Kind struct {
	Name string
	Keys []Key

	// Check returns the faults of values that [Key.Valid] accepts one by one.
	Check func(v Values) []Fault

	// Open returns a store. It reads the files that the values name, but does not connect. now
	// returns the current values; an open store uses new values of the keys that reload.
	// If peek is set, the store makes nothing, such as a table, that is missing.
	Open func(now func() Values, peek bool) (workers.Store, error)

	// Advise returns advice for the operator on an error of the store, or "". All keys in the
	// store begin with prefix.
	Advise func(err error, prefix string) string
}

// A Key is a key of a kind's table.
type Key struct {
	Name  string // including the table, such as "etcd.endpoints"
	List  bool   // whether the value is a list
	Valid func(one string) bool
	Must  string // what is valid

	// Reloads says whether a store that is open uses a new value.
	Reloads bool
	// Secret says whether values must not be shown.
	Secret bool
}

// A Fault is what is wrong with the value of a key.
type Fault struct{ Key, Want string }

// Values are the values of keys, by their names. They do not change.
type Values map[string][]string

// Replace returns v with another value of a key.
func (v Values) Replace(key string, value []string) Values {
	next := maps.Clone(v)
	if next == nil {
		next = Values{}
	}
	next[key] = value
	return next
}

// Text returns the value of a key that is no list.
func (v Values) Text(key string) string {
	if value := v[key]; len(value) > 0 {
		return value[0]
	}
	return ""
}

// Of returns the kind with that name, or nil.
func Of(name string) *Kind {
	i := slices.IndexFunc(Kinds, func(k *Kind) bool { return k.Name == name })
	if i < 0 {
		return nil
	}
	return Kinds[i]
}

// Names returns the names of all kinds.
func Names() (names []string) {
	for _, k := range Kinds {
		names = append(names, k.Name)
	}
	return names
}

// KeyOf returns the key with that name, or the zero Key.
func KeyOf(name string) Key {
	for _, kind := range Kinds {
		for _, k := range kind.Keys {
			if k.Name == name {
				return k
			}
		}
	}
	return Key{}
}
