package original

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake/formats"
)

// write writes files to a new directory, and returns it.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The settings are those of the original's release, and those that its users add.
func TestSettings(t *testing.T) {
	t.Setenv("HOME", t.TempDir()) // the cookie is read from here
	dir := write(t, map[string]string{
		"sys.config": `%% -*- mode: erlang; coding: utf-8 -*-
[
 {flake, [
    {interface, "en0"},   % the MAC
    {timestamp_path, "/srv/flake/timestamp-dets"},
    {allowable_downtime, 2592000000},
    {secret, "S3CR3T"}
  ]},
 "more",
 {kernel, [{inet_dist_listen_min, 9100}, {inet_dist_listen_max, 9105}, {inet_dist_use_interface, {10,0,0,1}},
           {net_ticktime, 15}, {logger_level, debug}]},
 {sasl, [{sasl_error_logger, {file, "log/sasl-error.log"}}, {errlog_type, fun shop_log:type/1}]}
].
`,
		"more.config": `[{flake, [{interface, "eth1"}]}, "deeper"]. % the end`,
		"vm.args": `## Name of the node
-name flake@node1.example.com
#-name tmp

-setcookie 'S3CR3T with space'
##-heart
+K true
+A 5
-env ERL_MAX_PORTS 4096 -env ERL_EPMD_PORT 4370
-args_file more.args
-flake allowable_downtime 1000
#+Bd -noinput`,
		"more.args": "-kernel net_ticktime 30 inet_dist_listen_min 9101\n-heart -made up\n",
	})
	s := Settings{TimestampPath: "/var/lib/flake/timestamp"}
	if err := ReadSysConfig(filepath.Join(dir, "sys.config"), &s); err != nil {
		t.Fatal(err)
	}
	if err := ReadVMArgs(filepath.Join(dir, "vm.args"), &s); err != nil {
		t.Fatal(err)
	}
	want := Settings{
		Name: "flake@node1.example.com", Cookie: "S3CR3T with space",
		listenHost: "10.0.0.1", listenMin: 9101, listenMax: 9105, netTicktime: 30 * time.Second,
		ifName: "eth1", DetsPath: "/srv/flake/timestamp-dets", allowableDowntime: time.Second,
		TimestampPath: "/var/lib/flake/timestamp", TLS: config.TLS{Verify: "peer"},
		Taken: []string{
			`sys.config: flake interface "en0"`, `sys.config: flake timestamp_path "/srv/flake/timestamp-dets"`,
			`sys.config: flake allowable_downtime 2592000000`,
			`more.config: flake interface "eth1"`,
			`sys.config: kernel inet_dist_listen_min 9100`, `sys.config: kernel inet_dist_listen_max 9105`,
			`sys.config: kernel inet_dist_use_interface {10,0,0,1}`, `sys.config: kernel net_ticktime 15`,
			`vm.args: -name flake@node1.example.com`, `vm.args: -setcookie (hidden)`,
			`vm.args: kernel net_ticktime 30`, `vm.args: kernel inet_dist_listen_min 9101`,
			`vm.args: flake allowable_downtime 1000`,
		},
		Left: []string{
			`sys.config: flake secret: this node has nothing like it`,
			`more.config: the file "deeper": Erlang does not read files named there`,
			`sys.config: kernel logger_level: this node has nothing like it`,
			`sys.config: sasl, keys: 2: another application`,
			`vm.args: +K: for the Erlang VM`, `vm.args: +A: for the Erlang VM`,
			`vm.args: -env ERL_MAX_PORTS: for the Erlang VM`,
			`vm.args: -env ERL_EPMD_PORT: set it in the environment of this node too`,
			`vm.args: -heart: systemd or a container restarts this node`,
			`vm.args: -made: this node has nothing like it`,
		},
	}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("got  %+v\nwant %+v", s, want)
	}
	c := load(t, s)
	if c.Node.Name != s.Name || c.Node.Cookie != s.Cookie || c.Node.Listen != "10.0.0.1:9101" ||
		c.Node.NetTicktime != s.netTicktime ||
		c.Flake.Interface != "eth1" || c.Flake.TimestampPath != s.TimestampPath ||
		c.Flake.AllowableDowntime != time.Second {
		t.Errorf("%+v", c)
	}
	if toml := string(first(s.TOML())); !strings.Contains(toml, "# Not taken: vm.args: +A") ||
		strings.Count(toml, "S3CR3T") != 1 {
		t.Error(toml)
	}
}

func first(data []byte, _ error) []byte { return data }

// load loads the configuration that s.TOML returns.
func load(t *testing.T, s Settings) config.Config {
	t.Helper()
	toml, err := s.TOML()
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(filepath.Join(write(t, map[string]string{"sys.toml": string(toml)}), "sys.toml"))
	if err != nil {
		t.Fatalf("%v\n%s", err, toml)
	}
	return c
}

// The configuration has all settings, whatever they contain.
func TestTOML(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	for name, s := range map[string]Settings{
		"none": {},
		"all": {Name: "a@10.0.0.1", Cookie: `"q\` + "'\u00ff",
			listenMin: 9100, WorkerID: net.HardwareAddr{2, 0, 0, 0, 0, 1}, TimestampPath: "/a b/\"c\"\t\x7f"},
		"a range":   {Name: "a@10.0.0.1", Cookie: "c", listenMin: 9100, listenMax: 9105},
		"host only": {listenHost: "::1"},
		"comments":  {Left: []string{"a\n[node]", "b\r\x00c", "\xff"}},
		"tls":       {TLS: config.TLS{On: true, Cert: "c.pem", Key: "k.pem", CA: "ca.pem", Verify: "peer"}},
		"tls, none": {TLS: config.TLS{On: true, Cert: "c.pem", Key: "k.pem", Verify: "none"}},
		"interface": {ifName: "eth7"},
		"worker":    {WorkerID: net.HardwareAddr{2, 0, 0, 0, 0, 1}, ifName: "eth7"},
		"downtime":  {allowableDowntime: 9223372036854 * time.Millisecond},
	} {
		c := load(t, s)
		want := config.Default()
		if s.Name != "" {
			want.Node.Name, want.Node.Cookie = s.Name, s.Cookie
		}
		want.Node.Listen = map[string]string{"all": "0.0.0.0:9100", "a range": "0.0.0.0:9100",
			"host only": "[::1]:0"}[name]
		if want.Flake.Interface = s.ifName; s.WorkerID != nil {
			want.Flake.Interface, want.Flake.Options = "", formats.Options{"worker_id": 0x020000000001}
		}
		want.Flake.Random = s.ifName == "" && s.WorkerID == nil
		want.Flake.TimestampPath = s.TimestampPath
		if s.allowableDowntime > 0 {
			want.Flake.AllowableDowntime = s.allowableDowntime
		}
		if s.TLS.On {
			want.Node.TLS = s.TLS
		}
		if len(config.Changed(want, c)) > 0 {
			t.Errorf("%s: these differ: %q", name, config.Changed(want, c))
		}
	}
	if toml, err := (Settings{Cookie: "\xff"}).TOML(); err == nil || !strings.Contains(err.Error(), "cookie") ||
		strings.Contains(err.Error(), "xff") {
		t.Errorf("%s, %v", toml, err)
	}
}

// Comments say what is not set, and explain values.
func TestComments(t *testing.T) {
	const head = "# From boundary/flake, the Erlang server that this node replaces. A key that is not " +
		"here has its default.\n"
	for want, s := range map[string]Settings{
		head + `
[node]
# no cookie was set: the one in ~/.erlang.cookie is read

[flake]
# no interface was set: the original uses eth0, or in later versions the first interface with a MAC; this node
# chooses a random worker id. To keep the original's, set interface, or set worker_id to bytes 9 to 14 of its ids
timestamp_path = "/t"  # not its dets file: this node has its own format
`: {TimestampPath: "/t"},
		head + `# Not taken: +A

[node]
name = "a@b"
cookie = "c"
listen = "0.0.0.0:9100"  # the first of its ports, 9100 to 9105

[flake]
interface = "eth1"  # its MAC is the worker id
timestamp_path = "/t"  # not its dets file: this node has its own format
`: {Left: []string{"+A"}, Name: "a@b", Cookie: "c", listenMin: 9100, listenMax: 9105, ifName: "eth1",
			TimestampPath: "/t"},
		head + `
[node]
cookie = "c"
listen = "0.0.0.0:9100"

[flake]
worker_id = "02:00:00:00:00:01"  # the original's
timestamp_path = "/t"  # not its dets file: this node has its own format
`: {Cookie: "c", listenMin: 9100, listenMax: 9100, TimestampPath: "/t", WorkerID: net.HardwareAddr{2, 0, 0, 0, 0, 1}},
	} {
		if got, err := s.TOML(); string(got) != want || err != nil {
			t.Errorf("got  %s, %v\nwant %s", got, err, want)
		}
	}
}

func TestSysConfig(t *testing.T) {
	for source, want := range map[string]struct {
		interfaceOf string
		says        string // the error, or a setting that is left
	}{
		`[].`:                              {"", ""},
		``:                                 {"", "must be one Erlang term with a full stop"},
		`[], [].`:                          {"", "must be one Erlang term with a full stop"},
		`[[a]].`:                           {"", "nor a file name"},
		`[[55296]].`:                       {"", "nor a file name"},
		`[[4294967393]].`:                  {"", "nor a file name"},
		`[{sasl,[]}].`:                     {"", ""},
		`[{flake,[{interface,""}]}].`:      {"", "not a string"},
		`[{flake,[{interface,"a"}]}]`:      {"", "not an Erlang term"},
		`[{flake,[{interface,"a"}]}].`:     {"a", ""},
		`[{flake,[{interface,"a"}]}]. %`:   {"a", ""},
		`[{flake,[{interface,"a"}]}]. x`:   {"", "unexpected text after its term"},
		`[{flake,[{interface,"a"}]}]. [].`: {"", "unexpected text after its term"},
		`[{flake,[{interface,"a"}]},{flake,[{interface,"b"}]}].`: {"b", ""},
		`[{flake,[{interface,"a","b"}]}].`:                       {"", "an element of flake: not a key with a value"},
		`[{flake,[{interface,eth0}]}].`:                          {"", "flake interface eth0: not a string"},
		`[{flake,[{interface,<<"eth0">>}]}].`:                    {"", "not a string"},
		`[{flake,[{interface,"a\0"}]}].`:                         {"", "not a string"},
		`[{flake,[{"interface","a"}]}].`: {"",
			`flake "interface": this node has nothing like it`},
		`[{flake,interface}].`:                                      {"", "flake: not a list of keys"},
		`[{flake,[{allowable_downtime,0}]}].`:                       {"", "not a positive number of milliseconds"},
		`[{flake,[{allowable_downtime,infinity}]}].`:                {"", ""},
		`[{flake,[{allowable_downtime,"1"}]}].`:                     {"", "not a positive number of milliseconds"},
		`[{kernel,[{inet_dist_listen_min,65536}]}].`:                {"", "not a port"},
		`[{kernel,[{inet_dist_listen_min,-1}]}].`:                   {"", "not a port"},
		`[{kernel,[{inet_dist_listen_min,"1"}]}].`:                  {"", "not a port"},
		`[{kernel,[{inet_dist_use_interface,{1,2,3,-1}}]}].`:        {"", "not an address"},
		`[{kernel,[{inet_dist_use_interface,{1,2,3,a}}]}].`:         {"", "not an address"},
		`[{kernel,[{inet_dist_use_interface,{}}]}].`:                {"", "not an address"},
		`[{kernel,[{inet_dist_use_interface,"::1"}]}].`:             {"", "not an address"},
		`[{kernel,[{inet_dist_use_interface,{1,2,3,256}}]}].`:       {"", "not an address"},
		`[{kernel,[{inet_dist_use_interface,{1,2,3}}]}].`:           {"", "not an address"},
		`[{kernel,[{inet_dist_use_interface,{0,0,0,0,0,0,0,1}}]}].`: {"", ""},
		`[{kernel,[{net_ticktime,3}]}].`:                            {"", "4 to 3600 seconds"},
		`[{kernel,[{net_ticktime,3601}]}].`:                         {"", "4 to 3600 seconds"},
		`{flake,[]}.`:                                               {"", "must be a list"},
		`[flake].`: {"",
			"flake is neither an application with a list of keys nor a file name"},
		`[{flake,[{interface,If}]}].`:                           {"", "without variables"},
		`[{flake,[{interface,os:getenv("IF")}]}].`:              {"", "without variables, matches or calls"},
		"[\n{flake,[{interface,\"${FLAKE_IF}\"}]}].":            {"", "line 2: ${FLAKE_IF} stands for a variable"},
		"[{kernel,[{net_ticktime,${TICK:-60}}]}].":              {"", "${TICK:-60} stands for a variable"},
		"%% as ${FLAKE_IF} says\n[].":                           {"", ""},
		"%% coding: latin-1\n[{flake,[{interface,\"\xe4\"}]}].": {"ä", ""},
		"[{flake,[{interface,\"\xe4\"}]}].":                     {"", "not UTF-8"},
		"[{flake,[{interface,\"ä\"}]}].":                        {"ä", ""},
		"[{flake,[{interface,\"Ā\"}]}].":                        {"Ā", ""},
		`["none"].`:                                             {"", "none.config: cannot be read: no such file"},
	} {
		var s Settings
		err := ReadSysConfig(filepath.Join(write(t, map[string]string{"sys.config": source}), "sys.config"), &s)
		says := strings.Join(s.Left, "\n")
		if err != nil {
			says, s.ifName = err.Error(), ""
		}
		if (want.says == "") != (says == "") || !strings.Contains(says, want.says) || s.ifName != want.interfaceOf {
			t.Errorf("%s\n%q, %s\nwant %+v", source, s.ifName, says, want)
		}
		if !utf8.ValidString(says) {
			t.Errorf("%q", says)
		}
	}
}

// Any sys.config is read or refused. It adds no unexpected table to sys.toml.
func FuzzSysConfig(f *testing.F) {
	f.Add([]byte(`["sys", {flake,[{interface,"a\"\n[http]"},{timestamp_path,"/t"},{allowable_downtime,7}]}].`))
	f.Add([]byte(`[{kernel,[{net_ticktime,15},{inet_dist_listen_min,1},{inet_dist_listen_max,2},` +
		`{inet_dist_use_interface,{10,0,0,1}}]}].`))
	f.Add([]byte("%% coding: latin-1\n[{made,up},{flake,[{interface,\"\xe4\"},{no,<<1>>}|x]}]. %"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "sys.config")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		var s Settings
		if ReadSysConfig(path, &s) != nil {
			return
		}
		text, err := s.TOML()
		if err != nil {
			return
		}
		var tables map[string]map[string]any
		if _, err := toml.Decode(string(text), &tables); err != nil {
			t.Fatalf("%q: %v\n%s", data, err, text)
		}
		if delete(tables, "node"); len(tables) != 1 || tables["flake"] == nil {
			t.Errorf("%q: %v\n%s", data, tables, text)
		}
	})
}

// Values up to the limits of their keys are taken.
func TestValues(t *testing.T) {
	const forever = 9223372036854 * time.Millisecond
	for source, want := range map[string]Settings{
		`{flake,[{allowable_downtime,1}]}`:                                   {allowableDowntime: time.Millisecond},
		`{flake,[{allowable_downtime,9223372036855}]}`:                       {allowableDowntime: forever},
		`{flake,[{allowable_downtime,infinity}]}`:                            {allowableDowntime: forever},
		`{kernel,[{net_ticktime,4}]}`:                                        {netTicktime: 4 * time.Second},
		`{kernel,[{net_ticktime,3600}]}`:                                     {netTicktime: time.Hour},
		`{kernel,[{inet_dist_listen_min,1},{inet_dist_listen_max,65535}]}`:   {listenMin: 1, listenMax: 65535},
		`{kernel,[{inet_dist_listen_min,0}]}`:                                {},
		`{kernel,[{inet_dist_use_interface,{255,0,0,1}}]}`:                   {listenHost: "255.0.0.1"},
		`{kernel,[{inet_dist_use_interface,{8193,3512,0,0,0,0,258,65535}}]}`: {listenHost: "2001:db8::102:ffff"},
		`{flake,[{interface,"a"},{timestamp_path,[47,256]}]}`:                {ifName: "a", DetsPath: "/Ā"},
	} {
		var s Settings
		err := ReadSysConfig(filepath.Join(write(t, map[string]string{"sys.config": "[" + source + "]."}),
			"sys.config"), &s)
		if s.Taken = nil; err != nil || !reflect.DeepEqual(s, want) {
			t.Errorf("%s: %+v, %v", source, s, err)
		}
	}
}

// A file that another file names is looked for in Erlang's order: first next to a sys.config and
// then in the working directory, or the reverse for a vm.args. An absolute path is used as it is.
func TestFolders(t *testing.T) {
	for _, tt := range []struct{ named, where, sysConfig, vmArgs string }{
		{"more", "beside", "beside", "beside"},
		{"more", "working", "working", "working"},
		{"more", "beside working", "beside", "working"},
		{"/none/more", "beside working", "", ""},
	} {
		working, beside := t.TempDir(), t.TempDir()
		t.Chdir(working)
		for name, dir := range map[string]string{"working": working, "beside": beside} {
			if strings.Contains(tt.where, name) {
				for _, at := range []string{filepath.Join(dir, "more"), filepath.Join(dir, "none", "more")} {
					err1 := os.MkdirAll(filepath.Dir(at), 0o700)
					err2 := os.WriteFile(at+".config", []byte(`[{flake,[{interface,"`+name+`"}]}].`), 0o600)
					err3 := os.WriteFile(at, []byte(`-flake interface '"`+name+`"'`), 0o600)
					if err := errors.Join(err1, err2, err3); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		sys, vm := filepath.Join(beside, "sys.config"), filepath.Join(beside, "vm.args")
		err1 := os.WriteFile(sys, []byte(`["`+tt.named+`"].`), 0o600)
		err2 := os.WriteFile(vm, []byte("-args_file "+tt.named), 0o600)
		var s1, s2 Settings
		err3, err4 := ReadSysConfig(sys, &s1), ReadVMArgs(vm, &s2)
		none := tt.sysConfig == ""
		if errors.Join(err1, err2) != nil || s1.ifName != tt.sysConfig || s2.ifName != tt.vmArgs ||
			(err3 != nil) != none || (err4 != nil) != none {
			t.Errorf("%+v: %q, %v; %q, %v", tt, s1.ifName, err3, s2.ifName, err4)
		}
	}
}
