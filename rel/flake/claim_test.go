package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flake-go/flake/flake"
)

// Of two nodes with one worker id, each with a timestamp of its own, the second
// is refused, and gets in once the first is gone, however it went.
func TestOneWorkerTwice(t *testing.T) {
	t.Parallel()
	worker, err := flake.RandomWorker()
	if err != nil {
		t.Fatal(err)
	}
	config := func(name string) string {
		dir := t.TempDir()
		file := filepath.Join(dir, "sys.toml")
		text := fmt.Sprintf("[node]\nname = %q\n[flake]\ntimestamp_path = %q\nworker_id = %q\n",
			name+"@127.0.0.1", filepath.Join(dir, "timestamp"), worker)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	port := freePort(t)
	startDaemon(t, port)
	first := spawn(t, port, command, "-noinput", "-config", config("first"))
	first.await("  EPMD ")
	file := config("second")
	second := spawn(t, port, command, "-noinput", "-config", file)
	if status := second.wait(); status != exitFailure || !strings.Contains(second.output(), worker.String()+": another generator on this machine has it") {
		t.Errorf("exit status %d, want %d", status, exitFailure)
	}
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	first.wait()
	spawn(t, port, command, "-noinput", "-config", file).await("  EPMD ")
}
