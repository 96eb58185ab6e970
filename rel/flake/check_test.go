package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flake-go/flake/internal/certstest"
)

// checkedConfig runs flake -check-config, and returns its output with dir replaced by DIR.
func checkedConfig(t *testing.T, dir, text string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	file := filepath.Join(dir, "sys.toml")
	writeFile(t, file, strings.ReplaceAll(text, "DIR", dir))
	var out, errs bytes.Buffer
	code = run(t.Context(), append([]string{"-check-config", "-config", file}, args...), &out, &errs)
	return code, strings.ReplaceAll(out.String(), dir, "DIR"), strings.ReplaceAll(errs.String(), dir, "DIR")
}

// TestCheckConfig compares the output with testdata/check.txt, and checks that no file was created.
func TestCheckConfig(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"cookie": "S3CRET\n", "token": "0123456789abcdef\n",
		"password": "S3CRET\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o400); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("FLAKE_COOKIE_FILE", filepath.Join(dir, "cookie"))
	t.Setenv("FLAKE_GENERATOR_1_WORKER", "7")
	code, stdout, stderr := checkedConfig(t, dir, `
[node]
name = "of_the_file@127.0.0.1"
cookie = "S3CRET of the file"
[flake]
worker_id = "02:00:00:00:00:01"
timestamp_path = "DIR/timestamp"
[[generator]]
name = "orders"
format = "snowflake"
datacenter = 9
[[generator]]
name = "made_up"
format = "flake"
worker_id = "random"
[[generator]]
name = "dealt_out"
format = "sno"
partition = "assigned"
[numbers]
store = "etcd"
[etcd]
endpoints = ["127.0.0.1:1"]
user = "flake"
password_file = "DIR/password"
[http]
listen = "127.0.0.1:0"
token_file = "DIR/token"
`, "-name", "flake@127.0.0.1")
	want := readFile(t, "testdata/check.txt")
	if code != 0 || stdout != want || stderr != "" {
		t.Errorf("exit status %d, %s\ngot\n%swant\n%s", code, stderr, stdout, want)
	}
	if strings.Contains(stdout, "S3CRET") {
		t.Error("the output contains a secret")
	}
	made, err := filepath.Glob(filepath.Join(dir, "timestamp*"))
	if err != nil || len(made) > 0 {
		t.Errorf("-check-config created %q, want no files; %v", made, err)
	}
}

// Every problem that would keep the node from starting is reported, not only the first.
func TestCheckConfigFaults(t *testing.T) {
	dir := t.TempDir()
	ca, other := certstest.NewCA(t, "CA"), certstest.NewCA(t, "other")
	cert, _ := ca.Issue("node", "127.0.0.1")
	_, foreign := other.Issue("node", "127.0.0.1")
	const worker = "[flake]\nworker_id = '02:00:00:00:00:01'\n"
	const numbers = "[etcd]\nendpoints = ['a:1']\n[numbers]\nstore = 'etcd'\n"
	for name, tt := range map[string]struct{ text, want string }{
		"configuration": {"[node]\nnam = 'x'", "flake: DIR/sys.toml:2: node.nam: unknown, the nearest known is node.name\n"},
		"no folder": {worker + "timestamp_path = 'DIR/none/timestamp'",
			"timestamp_path DIR/none/timestamp: lstat DIR/none: no such file or directory; create the directory"},
		"no mark":      {worker + "timestamp_path = 'DIR/sys.toml'", "timestamp_path DIR/sys.toml: "},
		"no interface": {"[flake]\ninterface = 'none'\ntimestamp_path = 'DIR/timestamp'", `interface "none"`},
		"one place": {worker + "timestamp_path = 'DIR/timestamp'\n[[generator]]\nname = 'a'\nformat = 'flake'\nworker_id " +
			"= '02:00:00:00:00:01'",
			"generator a: worker_id 02:00:00:00:00:01: generator flake has it, and both would hand out the same ids; give " +
				"one of them another worker_id\n"},
		"one assigned number": {"[flake]\nworker_id = 'assigned'\ntimestamp_path = 'DIR/timestamp'\n" + numbers +
			"[[generator]]\nname = 'a'\nformat = 'snowflake'\nid = 'assigned'\n[[generator]]\nname = 'b'\nformat = " +
			"'uuidv7'\nworker_id = 'assigned'\n" +
			"[[generator]]\nname = 'c'\nformat = 'snowflake'\ndatacenter = 'assigned'\nworker = 'assigned'",
			"flake: generator c: id \"assigned\": generator a has it, and both would hand out the same ids; give " +
				"one of them another id\n"},
		"a number that may be assigned": {"[flake]\nworker_id = 'assigned'\ntimestamp_path = 'DIR/timestamp'\n" + numbers +
			"count = 8\n" +
			"[[generator]]\nname = 'a'\nformat = 'sno'\npartition = 'assigned'\n[[generator]]\nname = 'b'\nformat " +
			"= 'sno'\npartition = 7",
			"flake: generator b: partition 7 of format sno with sequence numbers 0 to 65535: generator a may be " +
				"assigned it, and both would hand out the same ids; give one of them another partition\n"},
		"numbers, one of them taken": {"[flake]\nworker_id = 'random'\ntimestamp_path = " +
			"'DIR/timestamp'\n" + numbers +
			"[[generator]]\nname = 'a'\nformat = 'sno'\npartition = 3\nsequence_max = 99\n[[generator]]\nname = 'b'\nformat " +
			"= 'sno'\npartition = 'assigned'\nsequence_min = 100\n" +
			"[[generator]]\nname = 'c'\nformat = 'snowflake'\nid = 2\nmachine_bits = 11\n[[generator]]\nname = 'd'\nformat = " +
			"'snowflake'\nid = 'assigned'",
			"flake: generator d: id \"assigned\": generator c has one of these numbers, and both would hand out the same ids; " +
				"give one of them another id\n"},
		"no HTTP, whose files are not read": {worker + "timestamp_path = 'DIR/none/timestamp'\n[http]\ntoken_file = " +
			"'DIR/none'\n[http.tls]\ncert = 'DIR/none'\nkey = 'DIR/none'",
			"flake: timestamp_path DIR/none/timestamp: "},
		"all": {worker + "timestamp_path = 'DIR/none/timestamp'\n[node.tls]\ncert = 'DIR/none'\nkey = " +
			"'DIR/none'\nverify = 'none'\n" +
			"[http]\nlisten = '127.0.0.1:0'\ntoken_file = 'DIR/none'\n[http.tls]\ncert = '" + cert + "'\nkey = '" + foreign +
			"'\n[[generator]]\nname = 'a'\nformat = 'sno'\npartition = 'assigned'\n" +
			"[numbers]\nstore = 'etcd'\n[etcd]\nendpoints = ['a:1']\nuser = 'x'\npassword_file = 'DIR/none'",
			"node.tls: cert \"DIR/none\" http.tls: http.token_file \"DIR/none\": cannot be read etcd.password_file " +
				"\"DIR/none\": timestamp_path DIR/none/timestamp"},
	} {
		code, _, stderr := checkedConfig(t, dir, tt.text)
		wants := []string{tt.want}
		if name == "all" {
			wants = strings.SplitAfter(tt.want, " ")
		}
		for _, want := range wants {
			if code != exitUsage || !strings.Contains(stderr, strings.TrimSpace(want)) {
				t.Errorf("%s: exit status %d, %swant %s", name, code, stderr, want)
			}
		}
	}
}

// -check-config works while the node runs, although the node's workers are claimed and its files
// locked.
func TestCheckConfigOfRunning(t *testing.T) {
	n := startNode(t, "")
	check := spawn(t, n.port, command, "-check-config", "-config", n.cmd.Args[slices.Index(n.cmd.Args, "-config")+1])
	if code := check.wait(); code != 0 || !strings.Contains(check.output(), "would hand out ids") {
		t.Errorf("exit status %d\n%s", code, check.output())
	}
	n.erl(nil, "get")
}
