package config

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/flake/workers/stores"
)

// Each key has its own variable.
func TestVariables(t *testing.T) {
	all := Default()
	all.Generators = make([]Generator, MaxGenerators)
	keys := variables()
	// Other names: 2 of the cookie, 5 of [flake].
	if want := len(all.settings()) + 2 + 5; len(keys) != want {
		t.Errorf("%d variables, want %d", len(keys), want)
	}
	for _, tt := range []struct{ variable, key string }{
		{"FLAKE_COOKIE", "node.cookie"},
		{"FLAKE_NODE_COOKIE", "node.cookie"},
		{"FLAKE_COOKIE_FILE", "node.cookie_file"},
		{"FLAKE_NODE_COOKIE_FILE", "node.cookie_file"},
		{"FLAKE_NODE_PREVIOUS_COOKIE_FILE", "node.previous_cookie_file"},
		{"FLAKE_FLAKE_WORKER_ID", "flake.worker_id"},
		{"FLAKE_WORKER_ID", "flake.worker_id"},
		{"FLAKE_TIMESTAMP_PATH", "flake.timestamp_path"},
		{"FLAKE_NODE_TLS_CA", "node.tls.ca"},
		{"FLAKE_GENERATOR_64_MACHINE_BITS", "generator[64].machine_bits"},
	} {
		if keys[tt.variable] != tt.key {
			t.Errorf("%s sets %q, want %q", tt.variable, keys[tt.variable], tt.key)
		}
	}
}

// The environment wins over the file, flags win over both, and a variable creates its table.
func TestEnvironment(t *testing.T) {
	file := write(t, `
[node]
name = "file@127.0.0.1"
cookie = "of the file"
[http]
listen = "127.0.0.1:8465"
[[generator]]
name = "orders"
format = "snowflake"
worker = 31
`)
	flags, err := Environ([]string{
		"PATH=/bin", "NO_FLAKE_X=1", "FLAKE_NODE=a@b", "FLAKE_ADDRESS=x", "FLAKE_NODE_EPMD=", // not ours, or empty
		"FLAKE_NODE_NAME=env@127.0.0.1", "FLAKE_NODE_NET_TICKTIME=15", "FLAKE_NODE_MAX_CONNECTIONS=12000",
		`FLAKE_HTTP_LISTEN=""`, "FLAKE_HTTP_OPEN=true",
		"FLAKE_TIMESTAMP_PATH=/a=b", "FLAKE_FLAKE_WORKER_ID=02:00:00:00:00:01",
		"FLAKE_GENERATOR_1_WORKER=7",
		"FLAKE_GENERATOR_2_NAME=items", "FLAKE_GENERATOR_2_FORMAT=flake-idgen", "FLAKE_GENERATOR_2_ID=assigned",
		"FLAKE_GENERATOR_2_EPOCH=2020-01-01T00:00:00Z",
		"FLAKE_NUMBERS_STORE=etcd", `FLAKE_ETCD_ENDPOINTS=["a:1", "b:2"]`,
		"FLAKE_NODE_TLS_CERT=c.pem", "FLAKE_NODE_TLS_KEY=k.pem", "FLAKE_NODE_TLS_CA=ca.pem",
		"FLAKE_HTTP_TLS_CERT=c.pem", "FLAKE_HTTP_TLS_KEY=k.pem",
		"FLAKE_PORT=tcp://10.0.0.1:4369", "FLAKE_SERVICE_HOST=10.0.0.1", "FLAKE_SERVICE_PORT_HTTP=80",
		"FLAKE_PORT_4369_TCP_ADDR=10.0.0.1", "FLAKE_NODE_PORT_4369_TCP=tcp://10.0.0.1:4369", // set by Kubernetes
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := Load(file, append(flags, Flag{"-name", "node.name", "flag@127.0.0.1"})...)
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Node = Node{Name: "flag@127.0.0.1", Cookie: "of the file", EPMD: "auto",
		MaxConnections: 12000, MaxConnectionsPerHost: 4096, NetTicktime: 15 * time.Second,
		TLS: TLS{true, "c.pem", "k.pem", "ca.pem", VerifyPeer}}
	want.Flake.TimestampPath, want.Flake.Random = "/a=b", false
	want.Flake.Options = formats.Options{"worker_id": 0x020000000001}
	want.HTTP = HTTP{Open: true, TLS: HTTPTLS{true, "c.pem", "k.pem"}}
	want.Numbers.On, want.Numbers.Store = true, "etcd"
	want.Numbers.Keys = stores.Values{"etcd.endpoints": {"a:1", "b:2"}}
	want.Generators = []Generator{
		{Name: "orders", Format: "snowflake", Options: formats.Options{"worker": 7}},
		{Name: "items", Format: "flake-idgen", Assigned: []string{"id"}, Options: formats.Options{"epoch": 1577836800000}},
	}
	if c.from = nil; !reflect.DeepEqual(c, want) {
		t.Errorf("Load = %+v\nwant   %+v", c, want)
	}
}

// Errors name the variable.
func TestBadEnvironment(t *testing.T) {
	const mustBeSize = `must be at least 32 MiB, as a number of bytes or as in "256MiB" or "2GiB", or 0 for none`
	for _, tt := range []struct{ environ, want string }{
		{"FLAKE_NODE_NET_TICKTIME=5s",
			`FLAKE_NODE_NET_TICKTIME: node.net_ticktime = "5s": must be an integer from 4 to 3600, in seconds`},
		{"FLAKE_NODE_NET_TICKTIME=5\nx = 6",
			`FLAKE_NODE_NET_TICKTIME: node.net_ticktime = "5\nx = 6": must be an integer from 4 to 3600, in seconds`},
		{"FLAKE_NODE_NET_TICKTIME=3",
			`FLAKE_NODE_NET_TICKTIME: node.net_ticktime = 3: must be an integer from 4 to 3600, in seconds`},
		{"FLAKE_HTTP_OPEN=1", `FLAKE_HTTP_OPEN: http.open = "1": must be true or false`},
		{"FLAKE_NODE_COOKIE=S\x00", "FLAKE_NODE_COOKIE: node.cookie = (hidden): " +
			"must be 1 to 255 printable characters of Latin-1"},
		{"FLAKE_COOKIE=x FLAKE_NODE_COOKIE=y",
			"FLAKE_NODE_COOKIE: node.cookie: FLAKE_COOKIE is set too: set only one of the two"},
		{"FLAKE_COOKIE_FILE=x FLAKE_NODE_COOKIE=y",
			"FLAKE_NODE_COOKIE: node.cookie: FLAKE_COOKIE_FILE is set too: set only one of the two"},
		{"FLAKE_COOKIE=x FLAKE_NODE_PREVIOUS_COOKIE=y FLAKE_NODE_PREVIOUS_COOKIE_FILE=z",
			"FLAKE_NODE_PREVIOUS_COOKIE_FILE: node.previous_cookie_file: FLAKE_NODE_PREVIOUS_COOKIE is set too: " +
				"set only one of the two"},
		{"FLAKE_NODE_COOKIE_FILE=none",
			`FLAKE_NODE_COOKIE_FILE: node.cookie_file = "none": cannot be read: no such file or directory`},
		{"FLAKE_WORKER_ID=random FLAKE_FLAKE_WORKER_ID=random",
			"FLAKE_WORKER_ID: flake.worker_id: FLAKE_FLAKE_WORKER_ID is set too: set only one of the two"},
		{"FLAKE_LOG_FOO=x", "FLAKE_LOG_FOO: unknown"},
		{"FLAKE_NODE_NAM=a@b", "FLAKE_NODE_NAM: unknown, the nearest known variable is FLAKE_NODE_NAME"},
		{"FLAKE_GENERATOR_1_WORKR=1", "FLAKE_GENERATOR_1_WORKR: unknown, " +
			"the nearest known variable is FLAKE_GENERATOR_1_WORKER"},
		{"FLAKE_GENERATOR_65_WORKER=1", "FLAKE_GENERATOR_65_WORKER: unknown, " +
			"the nearest known variable is FLAKE_GENERATOR_6_WORKER"},
		{"FLAKE_NAME=a@b", "FLAKE_NAME: unknown, the nearest known variable is FLAKE_NODE_NAME"},
		{"FLAKE_INTERFACE=\xff", `FLAKE_INTERFACE: flake.interface = "\xff": must be the name of a network interface`},
		{"FLAKE_NODE_MEMORY_LIMIT=1T", `FLAKE_NODE_MEMORY_LIMIT: node.memory_limit = "1T": ` + mustBeSize},
		{"FLAKE_NODE_MEMORY_LIMIT=17179869185GiB", // 2^64 bytes and 1 GiB, so it overflows
			`FLAKE_NODE_MEMORY_LIMIT: node.memory_limit = "17179869185GiB": ` + mustBeSize},
		{"FLAKE_HTTP_METRICS=127.0.0.1:1", `FLAKE_HTTP_METRICS: http.metrics = "127.0.0.1:1": needs http.listen`},
		{"FLAKE_NUMBERS_STORE=etcd", `config: etcd.endpoints = []: must be an array of "host:port"`},
		{`FLAKE_NUMBERS_STORE=etcd FLAKE_ETCD_ENDPOINTS=["ftp://a:1"]`,
			`FLAKE_ETCD_ENDPOINTS: etcd.endpoints = ["ftp://a:1"]: must be an array of "host:port"`},
		{`FLAKE_ETCD_ENDPOINTS=[7, "a:1"]`,
			`FLAKE_ETCD_ENDPOINTS: etcd.endpoints = "[7, \"a:1\"]": must be an array of "host:port"`},
		{"FLAKE_GENERATOR_1_WORKER=32 FLAKE_GENERATOR_1_NAME=a FLAKE_GENERATOR_1_FORMAT=snowflake",
			`FLAKE_GENERATOR_1_WORKER: generator[1].worker = 32: must be an integer from 0 to 31, or "assigned"`},
		{"FLAKE_GENERATOR_1_WORKER_ID=assigned FLAKE_GENERATOR_1_NAME=a FLAKE_GENERATOR_1_FORMAT=sno " +
			"FLAKE_GENERATOR_1_PARTITION=1",
			`FLAKE_GENERATOR_1_WORKER_ID: generator[1].worker_id = "assigned": not a key of format sno, only of ` +
				formats.WithKey("worker_id") + "; use partition instead"},
	} {
		environ := strings.Split(tt.environ, " FLAKE_")
		for i := range environ[1:] {
			environ[i+1] = "FLAKE_" + environ[i+1]
		}
		flags, err := Environ(environ)
		if err == nil {
			_, err = Load("", flags...)
		}
		if err == nil || err.Error() != tt.want {
			t.Errorf("%q:\ngot  %v\nwant %s", tt.environ, err, tt.want)
		}
	}
}

// A fault of the file is reported with its line, even if flags are set or cause it. Unlike in the
// environment, text is not accepted as a number.
func TestBadFileWithFlags(t *testing.T) {
	for _, tt := range []struct {
		file string
		flag Flag
		want string
	}{
		{"[node]\nnet_ticktime = '15'", Flag{"-name", "node.name", "a@localhost"}, `net_ticktime = "15"`},
		{"[node]\ncookie = 'flake'", Flag{"-name", "node.name", "flake@10.0.0.1"}, `:2: node.cookie = "flake": ` +
			`this cookie is published: set your own, because node.name flake@10.0.0.1 can be reached from other hosts`},
		{"_file = 1", Flag{"-name", "node.name", "a@localhost"}, "_file: unknown"},
		{"[http]\ntoken = 'x'", Flag{"FLAKE_HTTP_TOKEN_FILE", "http.token_file", "x"}, "http.token: unknown"},
	} {
		if _, err := Load(write(t, tt.file), tt.flag); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
}
