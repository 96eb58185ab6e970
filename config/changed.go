package config

import "slices"

// Changed lists the keys that have another value in b than in a, in the order of the
// shipped file, and then those that only a has.
func Changed(a, b Config) (keys []string) {
	before, after := a.values(), b.values()
	for _, s := range slices.Concat(b.settings(), a.settings()) {
		was, had := before[s.key]
		is, has := after[s.key]
		if (was != is || had != has) && !slices.Contains(keys, s.key) {
			keys = append(keys, s.key)
		}
	}
	return keys
}

// values are those of all keys as in the file, the cookies included.
func (c *Config) values() map[string]string {
	values := make(map[string]string)
	for _, s := range c.settings() {
		values[s.key] = s.value()
	}
	values[cookieKey], values[previousKey] = c.Node.Cookie, c.Node.PreviousCookie
	return values
}

// Check returns the faults of a configuration that was put together of others, each of
// which [Load] has returned.
func (c *Config) Check() error { return join(c.faults(nil)) }
