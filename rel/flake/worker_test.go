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

// withoutWorker returns the file of a configuration in which nothing is said of the worker.
func withoutWorker(t *testing.T) (config string) {
	t.Helper()
	config = configFile(t, "")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(text), "worker_id")
	if err := os.WriteFile(config, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	return config
}

// The environment configures the node. A random worker id, which is the default, stays with
// the file that the timestamp is in, and goes with it.
func TestRandomWorkerByTheEnvironment(t *testing.T) {
	config := withoutWorker(t)
	path := filepath.Join(filepath.Dir(config), "timestamp")
	t.Setenv("FLAKE_WORKER_ID", "random")
	for key, value := range map[string]string{
		"NAME": "orders", "FORMAT": "snowflake", "WORKER": "7", "EPOCH": "2003-07-11T09:08:07Z", // the epoch of no other test
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
				t.Errorf("worker id %q, kept in %s?", w, path)
			}
		}
		return workers, n.output()
	}
	const made = "chose a random worker id"
	first, output := life()
	if strings.Count(output, made) != len(first) {
		t.Errorf("they are not logged: %s", output)
	}
	os.Unsetenv("FLAKE_WORKER_ID")
	os.Unsetenv("FLAKE_GENERATOR_2_WORKER_ID")
	if second, output := life(); second != first || strings.Contains(output, made) {
		t.Errorf("%s after %s: %s", second, first, output)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if third, _ := life(); third[0] == first[0] || third[1] == first[1] || third[0] == third[1] {
		t.Errorf("%s after %s, without the file", third, first)
	}
}

// A variable that is not known, or whose value is wrong, is refused by its name.
func TestBadEnvironment(t *testing.T) {
	for name, want := range map[string]string{
		"FLAKE_NODE_NAM":  "flake: FLAKE_NODE_NAM: unknown, the nearest known variable is FLAKE_NODE_NAME\n",
		"FLAKE_NODE_EPMD": "flake: FLAKE_NODE_EPMD: node.epmd = \"wrong\": must be \"auto\", \"off\" or \"host:port\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, "wrong")
			p := spawn(t, freePort(t), command, "-noinput")
			if status := p.wait(); status != exitUsage || p.output() != want {
				t.Errorf("exit status %d\ngot  %swant %s", status, p.output(), want)
			}
		})
	}
}

// Of an interface whose MAC is not for good, the node warns, with the remedy.
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
