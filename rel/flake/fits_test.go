package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/generators"
	"github.com/flake-go/flake/flake/workers"
)

// checked runs flake check until etcd answers in time. The exit status and the codes of the
// findings must be as given. Unless a node is running, no file may change.
func checked(t *testing.T, config string, running bool, status int, codes ...generators.Code) (r generators.Report) {
	t.Helper()
	before := contents(t, filepath.Dir(config))
	await(t, "etcd answers in time", func() bool {
		r = generators.Report{}
		out, err := exec.Command(command, "check", "-json", "-setcookie", cookie, "-config", config).Output()
		var exit *exec.ExitError
		got := 0
		if errors.As(err, &exit) {
			got = exit.ExitCode()
		}
		if strings.Contains(string(out), " in time") {
			return false
		}
		if err := json.Unmarshal(out, &r); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		var found []generators.Code
		for _, f := range r.Findings {
			found = append(found, f.Code)
		}
		if got != status || !slices.Equal(found, codes) {
			t.Fatalf("exit status %d, %q\n%s", got, found, out)
		}
		return true
	})
	if after := contents(t, filepath.Dir(config)); !running && after != before {
		t.Fatalf("the folder changed from %s to %s", before, after)
	}
	return r
}

// contents returns the names and contents of the files in a folder.
func contents(t *testing.T, dir string) string {
	t.Helper()
	var text strings.Builder
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		data := readFile(t, filepath.Join(dir, f.Name()))
		text.WriteString(f.Name() + ": " + data + "\n")
	}
	return text.String()
}

func TestCheck(t *testing.T) {
	t.Parallel()
	file := configFile(t, "")
	start := func() *process {
		n := spawn(t, freePort(t), command, "-noinput", "-setcookie", cookie, "-config", file)
		n.await("  address ")
		return n
	}
	r := checked(t, file, false, 0, generators.CodeNoFile)
	if r.Start != generators.StartsAtOnce || len(r.Generators) != 1 {
		t.Errorf("without a file: %+v", r)
	}
	n := start()
	if r := checked(t, file, true, 0); r.Start == generators.StartRefuses || r.Generators[0].Mark == 0 {
		t.Errorf("while it runs: %+v", r)
	}
	n.signal(syscall.SIGKILL)
	n.wait()
	if r := checked(t, file, false, 0); r.Start == generators.StartRefuses || r.Wait > 3001 {
		t.Errorf("after a kill: %+v", r)
	}
	out, err := exec.Command(command, "check", "-setcookie", cookie, "-config", file).Output()
	if err != nil || !strings.Contains(string(out), "starting now: ") {
		t.Errorf("as text: %v\n%s", err, out)
	}
	n = start()
	n.signal(syscall.SIGTERM)
	n.wait()
	path := filepath.Join(filepath.Dir(file), "timestamp")
	marks := readFile(t, path)
	writeFile(t, path, strings.Replace(marks, "flake-mark", "fluke-mark", 1))
	if r := checked(t, file, false, 1, generators.CodeDamaged); r.Start == generators.StartRefuses {
		t.Errorf("with half of the file damaged: %+v", r)
	}
	n = start()
	n.awaitText("half of the file of marks is damaged")
	n.await("  address ")
	n.signal(syscall.SIGKILL)
	n.wait()
	checked(t, file, false, 0)
	writeFile(t, path, "flake-mark 1 1")
	if r := checked(t, file, false, 1, generators.CodeFile); r.Start != generators.StartRefuses {
		t.Errorf("with a damaged file: %+v", r)
	}
	for _, args := range [][]string{{"check", "-no"}, {"check", "-config", file + "x"}} {
		if _, _, status := called(t, args...); status != exitUsage {
			t.Errorf("%q: exit status %d", args, status)
		}
	}
}

func TestCheckEtcd(t *testing.T) {
	t.Parallel()
	c, s := startEtcd(t)
	file := etcdConfig(t, c.Endpoints(), time.Minute, "")
	entryOf := func(generation uint64) workers.Entry {
		t.Helper()
		all, err := workers.List(t.Context(), s, "flake")
		if err != nil || len(all) != 1 || all[0].Generation != generation {
			t.Fatalf("%+v, %v", all, err)
		}
		return all[0]
	}
	start := func() *process {
		n := spawn(t, freePort(t), command, "-noinput", "-setcookie", cookie, "-config", file)
		n.await("  address ")
		return n
	}
	kill := func(n *process) {
		n.signal(syscall.SIGKILL)
		n.wait()
	}
	r := checked(t, file, false, 0, generators.CodeNoFile)
	if r.Number.Kept != nil || !r.Number.Claim.Random || len(r.Generators) != 4 {
		t.Errorf("without a file: %+v", r)
	}
	n := start()
	number := entryOf(1).Number
	resumes := func(when string, running bool) {
		t.Helper()
		r := checked(t, file, running, 0)
		c := r.Number.Claim
		if r.Number.Kept == nil || c == nil || !c.Resumed || c.Number != number || r.Start == generators.StartRefuses {
			t.Errorf("%s: %+v, %+v", when, r, r.Number)
		}
	}
	resumes("while it runs", true)
	kill(n)
	before := entryOf(1)
	resumes("after a kill", false)
	if after := entryOf(1); after != before {
		t.Errorf("the entry in the store changed from %+v to %+v", before, after)
	}
	n = start()
	if entryOf(2).Number != number {
		t.Error("the restarted node has another number")
	}
	kill(n)

	text := readFile(t, file)
	writeFile(t, file, strings.Replace(text, "[numbers]", "[numbers]\nprefix = 'other'", 1))
	if r := checked(t, file, false, 1, generators.CodeElsewhere); r.Start != generators.StartRefuses {
		t.Errorf("with another prefix: %+v", r)
	}
	writeFile(t, file, text)
	c.Members[0].Kill()
	if r := checked(t, file, false, 1, generators.CodeStore); r.Start != generators.StartWaits || r.Number.Kept == nil {
		t.Errorf("without the store: %+v", r)
	}
}
