package config

import (
	"fmt"
	"strings"
)

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
