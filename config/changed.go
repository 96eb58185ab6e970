package config

import (
	"slices"
	"strconv"
)

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

// Take gives a key, of a table that c has as well, the value that it has in from.
func (c *Config) Take(key string, from *Config) {
	value := from.values()[key]
	if text, err := strconv.Unquote(value); err == nil {
		value = text
	}
	settings := c.settings()
	setText(settings[slices.IndexFunc(settings, func(s setting) bool { return s.key == key })], value)
	if key == cookieKey {
		c.Node.CookieFrom = from.Node.CookieFrom
	}
}

// values are those of all keys as in the file, the cookies included.
func (c *Config) values() map[string]string {
	values := make(map[string]string)
	for _, s := range c.settings() {
		values[s.key] = s.value()
	}
	values[cookieKey], values[previousKey] = strconv.Quote(c.Node.Cookie), strconv.Quote(c.Node.PreviousCookie)
	return values
}

// Check returns the faults of a configuration that was put together of others, each of
// which [Load] has returned.
func (c *Config) Check() error { return join(c.faults(nil)) }
