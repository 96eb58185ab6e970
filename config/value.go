package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
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

// A Value is what a key has, and from where.
type Value struct {
	Key  string // as in "node.name" or "generator[1].id"
	Text string // as in the file; a cookie is hidden
	From string // a flag, a variable, a file with its line if that is known; empty: the default
}

// Values returns the values of all keys, in the order of the shipped file, but for those
// of tables that there are not, and keys of generators that are not set.
func (c *Config) Values() (values []Value) {
	absent := map[string]bool{"node.tls": !c.Node.TLS.On, "http.tls": !c.HTTP.TLS.On, "etcd": !c.Etcd.On}
	for _, s := range c.settings() {
		v := Value{s.key, s.value(), c.from[s.key]}
		if v.Text == hidden {
			v.Text = "(set)"
		}
		table := s.key[:strings.LastIndexByte(s.key, '.')]
		if absent[table] || strings.HasPrefix(table, "generator[") && v.From == "" {
			continue
		}
		values = append(values, v)
	}
	return values
}

// showList writes an array as in the file.
func showList(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = fmt.Sprintf("%q", s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
