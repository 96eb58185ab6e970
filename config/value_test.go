package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Values returns each value with its source, and no secret.
func TestValues(t *testing.T) {
	secret := write(t, "S3CRET\n")
	flags, err := Environ([]string{"FLAKE_COOKIE_FILE=" + secret, "FLAKE_NODE_NET_TICKTIME=15",
		"FLAKE_GENERATOR_1_WORKER=7", "FLAKE_GENERATOR_2_FORMAT=sno",
		"FLAKE_GENERATOR_2_NAME=b", "FLAKE_GENERATOR_2_PARTITION=assigned"})
	if err != nil {
		t.Fatal(err)
	}
	file := write(t, `
[node]
name = "a@127.0.0.1"
cookie = "S3CRET of the file"
tls = {verify = "none", cert = "c.pem", key = "k.pem"}
[flake]
worker_id = "random"
[[generator]]
name = "a"
format = "snowflake"
epoch = 2020-01-01T00:00:00Z
worker = 5
random_start = true
[numbers]
store = "etcd"
[etcd]
endpoints = ["a:1"]
`)
	c, err := Load(file, append(flags, Flag{"-name", "node.name", "f@127.0.0.1"})...)
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]Value)
	for _, v := range c.Values() {
		got[v.Key] = v
		if strings.Contains(v.Text, "S3CRET") {
			t.Errorf("%+v shows the secret", v)
		}
	}
	for _, want := range []Value{
		{"node.name", `"f@127.0.0.1"`, "-name"},
		{"node.cookie", "(set)", secret},
		{"node.cookie_file", `"` + secret + `"`, "FLAKE_COOKIE_FILE"},
		{"node.previous_cookie", `""`, ""},
		{"node.net_ticktime", "15", "FLAKE_NODE_NET_TICKTIME"},
		{"node.epmd", `"auto"`, ""},
		{"node.tls.verify", `"none"`, file},
		{"flake.worker_id", `"random"`, file + ":7"},
		{"generator[1].epoch", "2020-01-01T00:00:00Z", file + ":11"},
		{"generator[1].random_start", "true", file + ":13"},
		{"generator[1].worker", "7", "FLAKE_GENERATOR_1_WORKER"},
		{"generator[2].partition", `"assigned"`, "FLAKE_GENERATOR_2_PARTITION"},
		{"etcd.endpoints", `["a:1"]`, file + ":17"},
		{"numbers.hold", "600", ""},
		{"log.level", `"info"`, ""},
	} {
		if got[want.Key] != want {
			t.Errorf("got %+v, want %+v", got[want.Key], want)
		}
	}
	for _, absent := range []string{"http.tls.cert", "generator[1].id", "generator[2].worker_id"} {
		if v, ok := got[absent]; ok {
			t.Errorf("got %+v, want no value for that key", v)
		}
	}
}

// The source of a home cookie is its file. A flag that is overridden leaves nothing behind.
func TestValuesOfCookies(t *testing.T) {
	home := setHome(t, "S3CRET", 0o400)
	for _, tt := range []struct {
		flags []Flag
		want  string
	}{
		{nil, home},
		{[]Flag{{"FLAKE_COOKIE_FILE", cookieKey + ofFile, write(t, "x")}, {"-setcookie", cookieKey, "y"}},
			"-setcookie"},
	} {
		c, err := Load("", tt.flags...)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range c.Values() {
			if v.Key == cookieKey && (v.From != tt.want || v.Text != "(set)") ||
				v.Key == cookieKey+ofFile && (v.From != "" || v.Text != `""`) {
				t.Errorf("got %+v, want the cookie from %s", v, tt.want)
			}
		}
	}
	os.Remove(filepath.Join(home))
	if c, err := Load(""); err != nil || c.from[cookieKey] != "" {
		t.Errorf("without a home cookie: got sources %v, %v", c.from, err)
	}
}
