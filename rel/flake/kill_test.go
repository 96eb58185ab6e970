package main

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/flake-go/flake/flake"
)

var kills = flag.Int("kills", 10, "how often TestKillNine kills the command")

// TestKillNine kills the command with SIGKILL at random moments while Erlang
// callers take ids, and starts it again. No id may come twice, and all that a
// life gives must be above all of the lives before.
func TestKillNine(t *testing.T) {
	t.Parallel()
	port, config, ids := freePort(t), configFile(t, ""), t.TempDir()
	// An EPMD of the test's, or the callers would wait for the one that dies.
	startDaemon(t, port)
	caller := spawnErl(t, port, nil, fmt.Sprintf("collect=%d,%s", *kills, ids))
	for life := range *kills {
		n := spawn(t, port, command, "-noinput", "-config", config)
		caller.await(fmt.Sprintf("CALLING %d", life+1))
		time.Sleep(time.Duration(rand.IntN(700)) * time.Millisecond) // the moment is the test
		n.signal(syscall.SIGKILL)
		caller.await(fmt.Sprintf("LIFE %d", life+1))
	}
	caller.wait()

	var last flake.ID
	total := 0
	for life := range *kills {
		all := readIDs(t, filepath.Join(ids, fmt.Sprint(life+1)))
		slices.SortFunc(all, flake.ID.Compare)
		for _, id := range all {
			if id.Compare(last) <= 0 {
				t.Fatalf("life %d: %v is not above %v", life+1, id, last)
			}
			last = id
		}
		total += len(all)
	}
	if total == 0 {
		t.Error("no ids")
	}
	t.Logf("%d ids in %d lives", total, *kills)
}

func readIDs(t *testing.T, path string) (ids []flake.ID) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for r := bytes.NewReader(data); r.Len() > 0; {
		var id flake.ID
		if n, err := r.Read(id[:]); n != len(id) {
			t.Fatalf("%s: %v", path, err)
		}
		ids = append(ids, id)
	}
	return ids
}
