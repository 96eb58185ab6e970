package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake"
)

// detsOf unpacks a dets file that a real OTP made, and sets its modification time.
func detsOf(t *testing.T, how string, modified time.Time) string {
	t.Helper()
	file, err := os.Open("original/testdata/dets.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "timestamp-dets")
	for archive := tar.NewReader(unzipped); ; {
		entry, err := archive.Next()
		if err != nil {
			t.Fatalf("%s: %v", how, err)
		}
		if entry.Name != "./"+how {
			continue
		}
		data, err := io.ReadAll(archive)
		if err = errors.Join(err, os.WriteFile(path, data, 0o600), os.Chtimes(path, modified, modified)); err != nil {
			t.Fatal(err)
		}
		return path
	}
}

// import imports what the original left, and its result is a valid configuration and mark.
func TestImport(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	modified := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	dets := detsOf(t, "otp25/killed", modified)
	write := func(name, text string) {
		t.Helper()
		writeFile(t, at(name), text)
	}
	write("sys.config",
		`[{flake, [{interface, "lo"}, {timestamp_path, "`+dets+`"}, {allowable_downtime, 7200000}]}, {sasl, [{x, y}]}].`)
	write("vm.args", "-name flake@127.0.0.1 -setcookie S3CRET +K true\n")
	args := []string{"import", "-sys-config", at("sys.config"), "-vm-args", at("vm.args"), "-out", at("sys.toml"),
		"-timestamp", at("timestamp")}
	stdout, stderr, status := called(t, args...)
	end := modified.Add(5 * time.Second).UTC().Format("2006-01-02T15:04:05.000Z")
	for _, want := range []string{
		`taken: sys.config: flake interface "lo"`, "taken: vm.args: -name flake@127.0.0.1",
		"left:  sys.config: sasl, keys: 1: another application",
		dets + ": written at " + modified.UTC().Format("2006-01-02T15:04:05.000Z") +
			"; its time is 2023-11-14T22:13:20.123Z; it was not closed: the original was killed, or is running\n",
		at("timestamp") + ": ids begin after " + end + "\n", at("sys.toml") + ": written\n",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %s in\n%s", want, stdout)
		}
	}
	if status != 0 || stderr != "" || strings.Contains(stdout, "S3CRET") || strings.Contains(stdout, "before starting") {
		t.Errorf("exit status %d, %s\n%s", status, stderr, stdout)
	}
	if info, err := os.Stat(at("sys.toml")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	raised, err := flake.RaiseMark(at("timestamp"), time.Time{})
	if err != nil || raised.Format("2006-01-02T15:04:05.000Z") != end {
		t.Errorf("%v, %v", raised, err)
	}
	cfg, err := config.Load(at("sys.toml"))
	if err != nil || cfg.Flake.Interface != "lo" || cfg.Flake.TimestampPath != at("timestamp") ||
		cfg.Node.Cookie != "S3CRET" {
		t.Errorf("%+v, %v", cfg, err)
	}

	if _, stderr, status := called(t, args...); status != exitUsage ||
		!strings.Contains(stderr, "already exists; name another file, or replace it with -overwrite") {
		t.Errorf("again: exit status %d, %s", status, stderr)
	}
	write("linked", "another's")
	if err := errors.Join(os.Remove(at("sys.toml")), os.Symlink(at("linked"), at("sys.toml"))); err != nil {
		t.Fatal(err)
	}
	if _, stderr, status := called(t, append(args, "-overwrite")...); status != 0 {
		t.Errorf("with -overwrite: exit status %d, %s", status, stderr)
	}
	if text := readFile(t, at("sys.toml")); !strings.Contains(text, "S3CRET") {
		t.Error(text)
	}
	if info, err := os.Lstat(at("sys.toml")); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if text := readFile(t, at("linked")); text != "another's" {
		t.Error(text)
	}

	if _, stderr, status := called(t, "import", "-dets", dets, "-timestamp", at("timestamp"), "-out",
		at("alone.toml")); status != exitUsage || !strings.Contains(stderr, "-out needs -sys-config or -vm-args") {
		t.Errorf("without a configuration to write: exit status %d, %s", status, stderr)
	}

	// The mark is never lowered, and not touched while a node uses it.
	earlier := detsOf(t, "otp29/closed", modified.Add(-time.Hour))
	if stdout, stderr, status := called(t, "import", "-dets", earlier, "-timestamp", at("timestamp")); status != 0 ||
		!strings.Contains(stdout, "ids begin after "+end) || strings.Contains(stdout, ": written\n") {
		t.Errorf("earlier: exit status %d, %s, %s", status, stdout, stderr)
	}
	link := at("link") // import by root must find the lock, which is next to the real mark
	if err := os.Symlink(at("timestamp"), link); err != nil {
		t.Fatal(err)
	}
	if _, stderr, status := called(t, "import", "-dets", dets, "-timestamp", link); status != 0 {
		t.Errorf("linked: exit status %d, %s", status, stderr)
	}
	held, err := flake.OpenMarks(at("timestamp"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if _, stderr, status := called(t, "import", "-dets", dets, "-timestamp", at("timestamp")); status != exitFailure ||
		!strings.Contains(stderr, "another node is running with it") {
		t.Errorf("held: exit status %d, %s", status, stderr)
	}
}

// import reports what may be wrong, and refuses files that it cannot read or would overwrite.
func TestImportTells(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	const hour = time.Hour
	for _, c := range []struct {
		how    string
		ago    time.Duration // since it was written
		more   string        // flags; DETS is the file, DIR its folder
		status int
		says   string // a regular expression
	}{
		{"otp25/closed", hour, "-dets DETS -timestamp DIR/mark", 0, "it was closed\n"},
		{"otp25/empty", hour, "-dets DETS -timestamp DIR/mark", 0, "it contains no time; it was closed\n"},
		{"otp29/future", hour, "-dets DETS -timestamp DIR/mark", 0,
			`2100-01-01T00:00:00.000Z is [0-9hms.]+ ahead of this machine's clock: (.|\n)*ids begin after ` +
				`2100-01-01T00:00:05(.|\n)*a node cannot start before then`},
		{"otp25/closed", -hour, "-dets DETS -timestamp DIR/mark", 0, `is 1h0m0s ahead`},
		{"otp25/closed", 4 * time.Second, "-dets DETS -timestamp DIR/mark", 0, `waiting until then: 1s\n`},
		{"otp23/bag", hour, "-dets DETS -timestamp DIR/mark", exitUsage, "its type is 2"},
		{"otp25/closed", hour, "-dets DETS -timestamp DETS", exitFailure,
			"it is the dets file of boundary/flake.*flake import -dets DETS"},
		{"otp25/closed", hour, "-dets DETS -timestamp DIR/none/mark", exitFailure, "create the directory"},
		{"otp25/closed", hour, "-timestamp DIR/mark", exitUsage, "no dets file"},
		{"otp25/closed", hour, "-dets DETS -vm-args DIR/none", exitUsage, "none: cannot be read: no such file"},
		{"otp25/closed", hour, "-dets DETS -vm-args DIR/args -timestamp DIR/mark -overwrite -out DETS", exitUsage,
			"-out DETS: that is the -dets file"},
		{"otp25/closed", hour, "-dets DETS -vm-args DIR/args -timestamp DIR/mark -out DIR/mark", exitUsage,
			"-out DIR/mark: that is the -timestamp file"},
		{"otp25/closed", hour, "-dets DETS -vm-args DIR/args -timestamp DIR/mark -overwrite -out DIR", exitUsage,
			"-out DIR: is a directory"},
		{"otp25/closed", hour, "-dets DETS -vm-args DIR/args -out DIR/a -timestamp DIR/mark", 0,
			"before starting, change it:\nDIR/a:.*node.cookie.*published"},
	} {
		synctest.Test(t, func(t *testing.T) { // the clock in the bubble stands still, however slow the machine is
			time.Sleep(time.Until(time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)))
			dets := detsOf(t, c.how, time.Now().Add(-c.ago))
			dir := filepath.Dir(dets)
			writeFile(t, filepath.Join(dir, "args"), "-name flake@node1.example.com -\x1b")
			names := strings.NewReplacer("DETS", dets, "DIR", dir)
			stdout, stderr, status := called(t, strings.Fields("import "+names.Replace(c.more))...)
			if status != c.status || strings.Contains(stdout, "\x1b") ||
				!regexp.MustCompile(names.Replace(c.says)).MatchString(stdout+stderr) {
				t.Errorf("%s, %s: exit status %d\n%s%s", c.how, c.more, status, stdout, stderr)
			}
			if data := readFile(t, dets); len(data) < 5000 {
				t.Errorf("%s: %d bytes are left", c.how, len(data))
			}
		})
	}
}

// A node that starts with the original's dets file refuses it, and names the command that imports it.
func TestStartWithDets(t *testing.T) {
	dets := detsOf(t, "otp25/closed", time.Now())
	code, _, stderr := checkedConfig(t, filepath.Dir(dets),
		"[flake]\nworker_id = '02:00:00:00:00:01'\ntimestamp_path = '"+dets+"'\n")
	if code == 0 || !strings.Contains(stderr, "it is the dets file of boundary/flake") ||
		!strings.Contains(stderr, "flake import -dets") {
		t.Errorf("exit status %d, %s", code, stderr)
	}
}
