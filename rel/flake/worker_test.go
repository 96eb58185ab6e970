package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/flake-go/flake/flake"
)

// withoutWorker returns the path of a configuration that does not set the worker.
func withoutWorker(t *testing.T) (config string) {
	t.Helper()
	config = configFile(t, "")
	text := readFile(t, config)
	before, _, _ := strings.Cut(text, "worker_id")
	writeFile(t, config, before)
	return config
}

// The environment configures the node. A random worker id, the default, is kept in the timestamp
// file, and lost with it.
func TestRandomWorkerByTheEnvironment(t *testing.T) {
	config := withoutWorker(t)
	path := filepath.Join(filepath.Dir(config), "timestamp")
	t.Setenv("FLAKE_WORKER_ID", "random")
	for key, value := range map[string]string{ // no other test uses this epoch
		"NAME": "orders", "FORMAT": "snowflake", "WORKER": "7", "EPOCH": "2003-07-11T09:08:07Z",
	} {
		t.Setenv("FLAKE_GENERATOR_1_"+key, value)
	}
	for key, value := range map[string]string{"NAME": "more", "FORMAT": "flake", "WORKER_ID": "random"} {
		t.Setenv("FLAKE_GENERATOR_2_"+key, value)
	}
	life := func() (workers [2]string, output string) {
		t.Helper()
		n := spawn(t, freePort(t), command, "-noinput", "-config", config)
		workers = [...]string{n.await("  worker id "), n.await("  generator  more: flake, ")}
		n.await("  generator  orders: snowflake, datacenter 0, worker 7")
		n.signal(syscall.SIGTERM)
		if status := n.wait(); status != 0 {
			t.Fatalf("exit status %d", status)
		}
		for _, w := range workers {
			if !strings.HasSuffix(w, " (random, kept in "+path+")") {
				t.Errorf("worker id %q, want a random one kept in %s", w, path)
			}
		}
		return workers, n.output()
	}
	const made = "chose a random worker id"
	first, output := life()
	if strings.Count(output, made) != len(first) {
		t.Errorf("the log does not have one line for each chosen worker id: %s", output)
	}
	os.Unsetenv("FLAKE_WORKER_ID")
	os.Unsetenv("FLAKE_GENERATOR_2_WORKER_ID")
	if second, output := life(); second != first || strings.Contains(output, made) {
		t.Errorf("worker ids %s after a restart, want %s: %s", second, first, output)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if third, _ := life(); third[0] == first[0] || third[1] == first[1] || third[0] == third[1] {
		t.Errorf("worker ids %s after the file was removed, and %s before; want all to differ", third, first)
	}
}

// An unknown variable is refused, and the error names it.
func TestBadEnvironment(t *testing.T) {
	t.Setenv("FLAKE_NODE_NAM", "wrong")
	p := spawn(t, freePort(t), command, "-noinput")
	const want = "flake: FLAKE_NODE_NAM: unknown, the nearest known variable is FLAKE_NODE_NAME\n"
	if status := p.wait(); status != exitUsage || p.output() != want {
		t.Errorf("exit status %d\ngot  %swant %s", status, p.output(), want)
	}
}

// The node warns about an interface whose MAC may change, and says what to do.
func TestDoubtfulInterface(t *testing.T) {
	config := withoutWorker(t)
	card, err := flake.NetworkCard("")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("FLAKE_FLAKE_INTERFACE", card.Name)
	n := spawn(t, freePort(t), command, "-noinput", "-config", config)
	if got, want := n.await("  worker id "), fmt.Sprintf("%v (interface %s)", card.Worker, card.Name); got != want {
		t.Errorf("worker id %s, want %s", got, want)
	}
	n.signal(syscall.SIGTERM)
	if status := n.wait(); status != 0 {
		t.Fatalf("exit status %d", status)
	}
	const remedy = "set flake.worker_id"
	if strings.Contains(n.output(), remedy) != (len(card.Doubts) > 0) {
		t.Errorf("%s with %q: %s", card.Name, card.Doubts, n.output())
	}
}
