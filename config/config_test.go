package config

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/flake/workers/stores"
)

func TestMain(m *testing.M) {
	os.Unsetenv("HOME") // otherwise Load reads the cookie there
	os.Exit(m.Run())
}

func TestShippedFile(t *testing.T) {
	const path = "../rel/files/sys.toml"
	c, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.HTTP.Listen = "127.0.0.1:8465" // without a file, HTTP is off
	if c.from = nil; !reflect.DeepEqual(c, want) {
		t.Errorf("Load = %+v\nwant   %+v", c, want)
	}
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lineOf := linesOf(strings.ReplaceAll(string(src), "\n# ", "\n"))
	for _, s := range c.settings() {
		if lineOf(s.key) == 0 {
			t.Errorf("%s is not in the file", s.key)
		}
	}
}

func TestEmptyFile(t *testing.T) {
	for _, src := range []string{"", "[flake]\nworker_id = ''"} {
		c, err := Load(write(t, src))
		if c.from = nil; err != nil || !reflect.DeepEqual(c, Default()) {
			t.Errorf("Load = %+v, %v", c, err)
		}
	}
}

func TestLoadEveryKey(t *testing.T) {
	c, err := Load(write(t, `
[node]
name = "flake@node1.example.com"
cookie = "s3cret"
listen = "[::]:9100"
epmd = "10.0.0.1:4370"
net_ticktime = 15
max_connections = 1000000
max_connections_per_host = 1
previous_cookie = "0ld"
drain_time = 20
memory_limit = "8589934591GiB"
tls = {cert = "cert.pem", key = "key.pem", verify = "none"}
[flake]
worker_id = "02-00-00-00-00-Ff"
timestamp_path = "/var/lib/flake/timestamp"
allowable_downtime = 9223372036854
clock = "monotonic"
[[generator]]
name = "orders"
format = "snowflake"
epoch = 2020-01-01T00:00:00Z
datacenter = 9
worker = 7
random_start = true
[[generator]]
name = "wide"
format = "snowflake"
machine_bits = 14
sequence_bits = 5
time_bits = 44
id = 16383
random_start = false
[[generator]]
name = "items"
format = "flake-idgen"
id = 1023
seq_mask = 255
[[generator]]
name = "events"
format = "sno"
partition = 65535
meta = 255
sequence_min = 0
sequence_max = 1023
[[generator]]
name = "more"
format = "flake"
worker_id = "02:00:00:00:00:02"
[[generator]]
name = "uuids"
format = "uuidv7"
worker_id = "random"
[[generator]]
name = "drawn"
format = "uuidv7"
[[generator]]
name = "ulids"
format = "ulid"
worker_id = "02:00:00:00:00:02"
[[generator]]
name = "shared"
format = "snowflake"
id = "assigned"
[[generator]]
name = "halves"
format = "flake-idgen"
datacenter = "assigned"
worker = "assigned"
[numbers]
store = "etcd"
prefix = "ids"
count = 6
hold = 60
wait = true
start_timeout = 30
[etcd]
endpoints = ["http://10.0.0.1:2379", "https://etcd.example.com:2379"]
user = "flake"
password_file = "/etc/flake/etcd"
ca = "ca.pem"
cert = "etcd.pem"
key = "etcd-key.pem"
[http]
listen = "0.0.0.0:8465"
metrics = "0.0.0.0:9464"
token_file = "/etc/flake/token"
open = false
pprof = true
tls = {cert = "http.pem", key = "http-key.pem"}
[log]
level = "debug"
format = "json"
`))
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		Node{"flake@node1.example.com", "s3cret", "", "[::]:9100", "10.0.0.1:4370", 15 * time.Second, 1000000, 1,
			TLS{true, "cert.pem", "key.pem", "", VerifyNone}, "0ld", 20 * time.Second, 8589934591 << 30, "", ""},
		Flake{Generator: Generator{Name: "flake", Format: "flake", Options: formats.Options{"worker_id": 0x0200000000FF}},
			TimestampPath: "/var/lib/flake/timestamp", AllowableDowntime: 9223372036854 * time.Millisecond,
			Clock: ClockMonotonic},
		[]Generator{
			{Name: "orders", Format: "snowflake", Options: formats.Options{"epoch": 1577836800000, "datacenter": 9,
				"worker": 7, "random_start": 1}},
			{Name: "wide", Format: "snowflake", Options: formats.Options{"machine_bits": 14, "sequence_bits": 5,
				"time_bits": 44, "id": 16383, "random_start": 0}},
			{Name: "items", Format: "flake-idgen", Options: formats.Options{"id": 1023, "seq_mask": 255}},
			{Name: "events", Format: "sno", Options: formats.Options{"partition": 65535, "meta": 255, "sequence_min": 0,
				"sequence_max": 1023}},
			{Name: "more", Format: "flake", Options: formats.Options{"worker_id": 0x020000000002}},
			{Name: "uuids", Format: "uuidv7", Random: true},
			{Name: "drawn", Format: "uuidv7", Random: true},
			{Name: "ulids", Format: "ulid", Options: formats.Options{"worker_id": 0x020000000002}},
			{Name: "shared", Format: "snowflake", Assigned: []string{"id"}},
			{Name: "halves", Format: "flake-idgen", Assigned: []string{"datacenter", "worker"}},
		},
		HTTP{"0.0.0.0:8465", "/etc/flake/token", false, HTTPTLS{true, "http.pem", "http-key.pem"}, true, "0.0.0.0:9464"},
		Numbers{true, "etcd", "ids", 6, time.Minute, 30 * time.Second, true, stores.Values{
			"etcd.endpoints": {"http://10.0.0.1:2379", "https://etcd.example.com:2379"}, "etcd.user": {"flake"},
			"etcd.password_file": {"/etc/flake/etcd"}, "etcd.ca": {"ca.pem"}, "etcd.cert": {"etcd.pem"},
			"etcd.key": {"etcd-key.pem"}}},
		Log{slog.LevelDebug, LogJSON},
		nil,
	}
	if c.from = nil; !reflect.DeepEqual(c, want) {
		t.Errorf("Load = %+v\nwant   %+v", c, want)
	}
}

// FixedPort, Assigned and MaxNumber follow from the keys.
func TestDerived(t *testing.T) {
	const etcd = "[etcd]\nendpoints = ['a:1']\n[numbers]\nstore = 'etcd'\n"
	const snowflake = "[[generator]]\nname = 'a'\nformat = 'snowflake'\nid = "
	const sno = "[[generator]]\nname = 'b'\nformat = 'sno'\npartition = "
	for _, tt := range []struct {
		src, port string
		assigned  bool
		most      uint64
	}{
		{"", "", false, 65535},
		{"[node]\nlisten = '127.0.0.1:0'", "", false, 65535},
		{"[node]\nlisten = '[::1]:9100'", "9100", false, 65535},
		{snowflake + "7", "", false, 65535},
		{etcd + snowflake + "'assigned'", "", true, 1023},
		{etcd + snowflake + "7\n" + sno + "'assigned'", "", true, 65535},
		{etcd + "count = 6\n" + snowflake + "'assigned'", "", true, 5},
	} {
		c, err := Load(write(t, tt.src))
		port, assigned, most := c.Node.FixedPort(), c.Assigned(), c.MaxNumber()
		if err != nil || port != tt.port || assigned != tt.assigned || most != tt.most {
			t.Errorf("%s: port %q, assigned %t, at most %d, %v; want %+v", tt.src, port, assigned, most, err, tt)
		}
	}
}

// Each format has its own keys for the number. The keys of other formats are refused, whatever
// their values.
func TestNumberKeys(t *testing.T) {
	own, random := map[string][]string{}, map[string]bool{}
	for _, k := range formats.Kinds {
		for _, keys := range k.Numbers {
			own[k.Name] = append(own[k.Name], strings.Join(keys, " "))
			random[strings.Join(keys, " ")] = k.Random()
		}
	}
	for _, format := range formats.Names() {
		for keys, random := range random {
			for _, value := range []string{"7", `"assigned"`} {
				if random && value == "7" {
					value = `"02:00:00:00:00:07"`
				}
				src := fmt.Sprintf("[numbers]\nstore = 'etcd'\n[etcd]\nendpoints = ['a:1']\n"+
					"[[generator]]\nname = 'a'\nformat = %q\n", format)
				var want []string
				for _, key := range strings.Fields(keys) {
					src += key + " = " + value + "\n"
					want = append(want, fmt.Sprintf("%s = %s: not a key of format %s, only of ", key, value, format))
				}
				_, err := Load(write(t, src))
				if slices.Contains(own[format], keys) {
					if err != nil {
						t.Error(err)
					}
					continue
				}
				for _, want := range want {
					has := fmt.Sprintf("; use %s instead", strings.Fields(own[format][0])[0])
					if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), has) {
						t.Errorf("%s\ngot %v, want %s and %s", src, err, want, has)
					}
				}
			}
		}
	}
}

// TestBadFiles reads testdata/bad. For each X.toml, X.txt contains the expected error. In it, FILE
// stands for the path, FORMATS and STORES for the lists of all formats and stores, and FORMATS(KEY) for the list of
// formats that have the key.
func TestBadFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.toml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no testdata/bad/*.toml: %v", err)
	}
	var pairs []string
	for _, key := range formats.Keys() {
		pairs = append(pairs, "FORMATS("+key.Name+")", formats.WithKey(key.Name))
	}
	withKey := strings.NewReplacer(pairs...)
	for _, path := range files {
		golden := strings.TrimSuffix(path, ".toml") + ".txt"
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Error(err)
			continue
		}
		_, err = Load(path)
		if err == nil {
			t.Errorf("%s: no error", path)
			continue
		}
		got := strings.NewReplacer(path, "FILE", `of "`+strings.Join(formats.Names(), `", "`)+`"`, "of FORMATS",
			`of "`+strings.Join(stores.Names(), `", "`)+`"`, "of STORES").Replace(err.Error()) + "\n"
		if want := withKey.Replace(string(want)); got != want {
			t.Errorf("%s:\ngot  %swant %s", path, got, want)
		}
		if e := (*Error)(nil); !errors.As(err, &e) || e.File != path {
			t.Errorf("%s: no Error that names the file: %#v", path, err)
		}
	}
}

// Each level has only one spelling, and there are no levels in between.
func TestLevels(t *testing.T) {
	for level, ok := range map[string]bool{"debug": true, "error": true, "INFO": false, "info+1": false} {
		if _, err := Load(write(t, "[log]\nlevel = '"+level+"'")); (err == nil) != ok {
			t.Errorf("%s: %v", level, err)
		}
	}
}

func TestUnreadableFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.toml")
	_, err := Load(path)
	if want := path + ": cannot be read: no such file or directory"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestFlagsWin(t *testing.T) {
	for _, tt := range []struct{ name, cookie, want string }{
		{"flake@127.0.0.1", "flake", ""},
		{"flake@127.1.2.3", "flake", ""},
		{"flake@::1", "flake", ""},
		{"flake@localhost", "flake", ""},
		{"flake@localhost.localdomain", "flake", ""},
		{"flake@10.0.0.1", "own", ""},
		{"flake@10.0.0.1", "flake", `-setcookie: node.cookie = "flake": this cookie is published: ` +
			`set your own, because node.name flake@10.0.0.1 can be reached from other hosts`},
		{"flake", "flake", `-name: node.name = "flake": must be name@host: letters, digits, _ and - ` +
			`before the @, no space after it, at most 255 bytes`},
		{"flake@localhost", "", "-setcookie: node.cookie = (hidden): must be 1 to 255 printable characters of Latin-1"},
	} {
		file := write(t, "[node]\nname = 'other@10.0.0.2'\ncookie = 'of the file'")
		c, err := Load(file, Flag{"-name", "node.name", tt.name}, Flag{"-setcookie", "node.cookie", tt.cookie})
		got := ""
		if err != nil {
			got = err.Error()
		} else if c.Node.Name != tt.name || c.Node.Cookie != tt.cookie {
			t.Errorf("%s, %s: got %+v", tt.name, tt.cookie, c.Node)
		}
		if got != tt.want {
			t.Errorf("%s, %s: got %q, want %q", tt.name, tt.cookie, got, tt.want)
		}
	}
}

func TestNames(t *testing.T) {
	for _, name := range []string{"a@b", "A_-9@host.example", "flake@fd00::2", "f@hôst",
		"flake@" + strings.Repeat("h", 249)} {
		if !validName(name) {
			t.Errorf("%q is refused", name)
		}
	}
	long := "flake@" + strings.Repeat("h", 250)
	for _, name := range []string{"", "@", "a@", "@b", "a", "a.b@c", "a b@c", "é@c", "a@b@c", "a@b c", "a@b\n",
		"a@\xff", long} {
		if validName(name) {
			t.Errorf("%q is accepted", name)
		}
	}
}

func FuzzParse(f *testing.F) {
	src, err := os.ReadFile("../rel/files/sys.toml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(src))
	f.Add("[[node]]\n[flake.worker_id]\nx = [1]")
	f.Add("[[generator]]\nname = 'a'\nformat = 'sno'\npartition = 'assigned'\n'b.c' = 1\n" +
		"[numbers]\nstore = 'etcd'\n[etcd]\nendpoints = ['a:1']")
	f.Fuzz(func(t *testing.T, src string) {
		if c, faults := parse("", src, nil); len(faults) == 0 && len(c.faults(nil)) > 0 {
			t.Errorf("parse found no fault, but Config.faults found: %v", join(c.faults(nil)))
		}
	})
}

func write(t *testing.T, src string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sys.toml")
	if err := os.WriteFile(path, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The nearest key has something in common with the unknown one, and most of it if it is in another table.
func TestNearestKey(t *testing.T) {
	for src, want := range map[string]string{
		"x = 1": "", "[http]\nx = 1": "", "[http]\nhost = 1": "", "[node]\nport = 1": "", "[flake]\nnode = 1": "",
		"[node]\nnam = 1": "node.name", "[node]\nwoker_id = 1": "flake.worker_id", "[http]\nca = 1": "node.tls.ca",
		"[htpt]\nx = 1": "http",
	} {
		_, err := Load(write(t, src))
		if err == nil {
			t.Fatalf("%s is accepted", src)
		}
		if _, got, _ := strings.Cut(err.Error(), "the nearest known is "); got != want {
			t.Errorf("%s: the nearest known is %q, want %q", src, got, want)
		}
	}
}
