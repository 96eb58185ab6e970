package config

import (
	"slices"
	"strings"
	"testing"
)

// Changed names every key that changes, and no other.
func TestChanged(t *testing.T) {
	const generator = "[[generator]]\nname = 'a'\nformat = 'snowflake'\n"
	const numbers = "[numbers]\nstore = 'etcd'\n[etcd]\nendpoints = "
	for _, test := range []struct{ before, after, want string }{
		{"", "", ""},
		{"[node]\ncookie = 'a'", "[node]\ncookie = 'b'", "node.cookie"},
		{"[node]\nprevious_cookie = 'a'", "", "node.previous_cookie"},
		{"[node]\nnet_ticktime = 60", "[node]\nnet_ticktime = 15\ndrain_time = 1", "node.net_ticktime node.drain_time"},
		{"[node]\nmemory_limit = '32MiB'", "[node]\nmemory_limit = 33554432", ""},
		{"[flake]\nworker_id = 'random'", "[flake]\nworker_id = 'assigned'\n" + numbers + "['a:1']",
			"flake.worker_id numbers.store etcd.endpoints"},
		{numbers + "['a:1', 'b:1']", numbers + "['a:1']", "etcd.endpoints"},
		{"", "[flake]\ninterface = 'eth0'", "flake.interface flake.worker_id"},
		{"[[generator]]\nname = 'a'\nformat = 'uuidv7'", "[[generator]]\nname = 'a'\nformat = 'uuidv7'\n" +
			"worker_id = '02:00:00:00:00:01'", "generator[1].worker_id"},
		{generator + "id = 1", generator + "id = 1", ""},
		{generator + "id = 1", generator + "id = 2\nepoch = 2020-01-01T00:00:00Z",
			"generator[1].epoch generator[1].id"},
		{generator + "id = 1", generator + "id = 'assigned'\n" + numbers + "['a:1']",
			"numbers.store etcd.endpoints generator[1].id"},
		{generator + "id = 1", generator + "datacenter = 0\nworker = 1",
			"generator[1].id generator[1].datacenter generator[1].worker"},
	} {
		a, err := Load(write(t, test.before))
		if err != nil {
			t.Fatal(err)
		}
		b, err := Load(write(t, test.after))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(Changed(a, b), " "); got != test.want {
			t.Errorf("%s\n-> %s\nchanged %q, want %q", test.before, test.after, got, test.want)
		}
	}
	a, b := Default(), Default()
	b.Generators = []Generator{{Name: "a", Format: "sno"}}
	if more, less := Changed(a, b), Changed(b, a); len(more) == 0 || !slices.Equal(more, less) ||
		!strings.HasPrefix(more[0], "generator[1].") {
		t.Errorf("Changed = %q when a generator is added, %q when it is removed, want the same keys of generator[1]",
			more, less)
	}
}

// A configuration that is combined from two is checked like any other.
func TestCheck(t *testing.T) {
	c := Default()
	if err := c.Check(); err != nil {
		t.Error(err)
	}
	c.Node.Name = "flake@10.0.0.1"
	if err := c.Check(); err == nil || !strings.Contains(err.Error(), "this cookie is published") {
		t.Error(err)
	}
}

// Errors do not show the previous cookie.
func TestPreviousCookieHidden(t *testing.T) {
	_, err := Load(write(t, "[node]\nprevious_cookie = \"S3CR\u20acT\""))
	if err == nil || strings.Contains(err.Error(), "S3CR") ||
		!strings.Contains(err.Error(), "node.previous_cookie = (hidden)") {
		t.Error(err)
	}
}

// Take copies one key at a time from the other configuration.
func TestTake(t *testing.T) {
	a := Default()
	b, err := Load(write(t, `[node]
name = 'other@127.0.0.1'
cookie = '"é\"'
previous_cookie = '"b"'
listen = '127.0.0.1:4000'
drain_time = 1
max_connections = 2
memory_limit = '32MiB'
[flake]
worker_id = '02:00:00:00:00:01'
allowable_downtime = 1
[http]
listen = '0.0.0.0:1'
open = true
[log]
level = 'warn'
format = 'json'
`), Flag{"-setcookie", cookieKey, `"a\"`})
	if err != nil {
		t.Fatal(err)
	}
	keys := Changed(a, b)
	if len(keys) != 13 {
		t.Errorf("Changed returned %d keys, want 13: %q", len(keys), keys)
	}
	for len(keys) > 0 {
		a.Take(keys[0], &b)
		if keys[0] == "node.name" && a.Node.CookieFrom != "" {
			t.Errorf("Take(%q) also took the cookie's source", keys[0])
		}
		if left := Changed(a, b); !slices.Equal(left, keys[1:]) {
			t.Fatalf("after Take(%q), Changed = %q, want %q", keys[0], left, keys[1:])
		}
		keys = keys[1:]
	}
	if a.Node.Cookie != `"a\"` || a.Node.PreviousCookie != `"b"` || a.Node.CookieFrom != "-setcookie" {
		t.Errorf("%+v", a.Node)
	}
}
