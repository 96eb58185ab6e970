package config

import (
	"maps"
	"slices"
)

// Ignored is a key that is set but no longer has an effect, or several with one reason.
type Ignored struct {
	Key, From string // From is where the first was set
	Why       string // and what to do
}

// retired are such keys, and what to do instead.
var retired = map[string]string{
	"etcd.claim_wait":      "it did not keep ids apart after a restore of etcd: remove it, and see flake workers after-restore",
	"flake.peers":          peersGone,
	"flake.peers_interval": peersGone,
}

const peersGone = "nodes no longer compare their workers: remove it; numbers from etcd keep nodes apart, and a wrong clock is for the monitoring of the machine to find"

// ignore takes retired keys out of values.
func (c *Config) ignore(values map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(retired)) {
		if _, ok := values[key]; !ok {
			continue
		}
		delete(values, key)
		if last := len(c.Ignored) - 1; last >= 0 && c.Ignored[last].Why == retired[key] {
			c.Ignored[last].Key += ", " + key
			continue
		}
		c.Ignored = append(c.Ignored, Ignored{key, c.from[key], retired[key]})
	}
}
