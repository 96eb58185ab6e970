package config

import (
	"maps"
	"slices"
)

// Ignored is a key that is set, and of which nothing comes any more.
type Ignored struct {
	Key, From string
	Why       string // and what to do
}

// retired are such keys, and what to do instead.
var retired = map[string]string{
	"etcd.claim_wait": "it did not keep ids apart after a restore of etcd: remove it, and see flake workers after-restore",
}

// ignore takes retired keys out of values.
func (c *Config) ignore(values map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(retired)) {
		if _, ok := values[key]; ok {
			c.Ignored = append(c.Ignored, Ignored{key, c.from[key], retired[key]})
			delete(values, key)
		}
	}
}
