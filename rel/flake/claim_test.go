package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flake-go/flake/flake"
)

// A node with the worker id of a running node is refused, even if it has a different timestamp file. It can
// start once the other node has ended, however that ended.
func TestOneWorkerTwice(t *testing.T) {
	t.Parallel()
	worker := flake.RandomWorker()
	config := func(name string) string {
		dir := t.TempDir()
		file := filepath.Join(dir, "sys.toml")
		text := fmt.Sprintf("[node]\nname = %q\n[flake]\ntimestamp_path = %q\nworker_id = %q\n",
			name+"@127.0.0.1", filepath.Join(dir, "timestamp"), worker)
		writeFile(t, file, text)
		return file
	}
	port := freePort(t)
	startEPMD(t, port)
	first := spawn(t, port, command, "-noinput", "-config", config("first"))
	first.await("  EPMD ")
	file := config("second")
	second := spawn(t, port, command, "-noinput", "-config", file)
	if status := second.wait(); status != exitFailure ||
		!strings.Contains(second.output(), worker.String()+": another generator on this machine has it") {
		t.Errorf("exit status %d, want %d", status, exitFailure)
	}
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	first.wait()
	spawn(t, port, command, "-noinput", "-config", file).await("  EPMD ")
}

// A claim by another user's process does not keep a node with a configured id from starting.
func TestClaimOfAStranger(t *testing.T) {
	t.Parallel()
	needRoot(t)
	file := configFile(t, `epmd = "off"`)
	dir := filepath.Dir(file)
	theirs := filepath.Join(dir, "theirs")
	text, err := os.ReadFile(file)
	if err == nil {
		text = bytes.Replace(text, []byte(dir), []byte(theirs), 1)
		err = errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Mkdir(theirs, 0o755), os.Chown(theirs, 65534, 65534),
			os.WriteFile(dir+"/theirs.toml", text, 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
	spawn(t, freePort(t), "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
		command, "-noinput", "-config", dir+"/theirs.toml").await("  EPMD ")
	n := spawn(t, freePort(t), command, "-noinput", "-config", file)
	n.await("  EPMD ")
	n.awaitText("uid=65534") // the warning about the other process, which may be logged later
}
