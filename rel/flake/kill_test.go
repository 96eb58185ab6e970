package main

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flake-go/flake/flake"
)

var (
	kills  = flag.Int("kills", 10, "how often TestKillNine kills the command")
	leases = flag.Int("leases", 1_000_000, "the minimum number of ids that TestLeases leases")
)

// TestKillNine kills the command with SIGKILL at random moments while Erlang callers
// take ids, and restarts it. No id may repeat, and every id must be above those of all
// earlier lives.
func TestKillNine(t *testing.T) {
	t.Parallel()
	port, config, ids := freePort(t), configFile(t, ""), t.TempDir()
	// The test starts an EPMD. Otherwise callers would wait for the EPMD of the node, which is killed.
	startEPMD(t, port)
	caller := spawnErl(t, port, nil, fmt.Sprintf("collect=%d,%s", *kills, ids))
	for life := range *kills {
		n := spawn(t, port, command, "-noinput", "-config", config)
		caller.await(fmt.Sprintf("CALLING %d", life+1))
		time.Sleep(time.Duration(rand.IntN(700)) * time.Millisecond) // kill at a random moment
		n.signal(syscall.SIGKILL)
		n.wait() // callers notice the end before the lock and the claims are released
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
		t.Error("no ids were collected")
	}
	t.Logf("%d ids in %d lives", total, *kills)
}

// TestLeases is like TestKillNine, with callers that lease ids and callers that take single ones. No id may be
// handed out twice, in leases or singly.
func TestLeases(t *testing.T) {
	t.Parallel()
	const minLives = 3
	port, config, folder := freePort(t), configFile(t, ""), t.TempDir()
	startEPMD(t, port)
	caller := spawnErl(t, port, nil, "leases="+folder)
	var top flake.ID // the highest id handed out so far
	total, life := 0, 0
	for life < minLives || total < *leases {
		life++
		n := spawn(t, port, command, "-noinput", "-config", config)
		caller.await(fmt.Sprintf("CALLING %d", life))
		time.Sleep(time.Duration(rand.IntN(700)) * time.Millisecond) // kill at a random moment
		n.signal(syscall.SIGKILL)
		n.wait() // callers notice the end before the lock and the claims are released
		caller.await(fmt.Sprintf("LIFE %d ", life))
		runs := readRuns(t, filepath.Join(folder, fmt.Sprint(life)))
		slices.SortFunc(runs, func(a, b flake.Run) int { return a.First.Compare(b.First) })
		for _, run := range runs {
			if run.First.Compare(top) <= 0 {
				t.Fatalf("life %d: %v is not above %v", life, run.First, top)
			}
			top = run.At(run.Count - 1)
			total += run.Count
		}
	}
	t.Logf("%d ids in %d lives", total, life)
}

func readRuns(t *testing.T, path string) (runs []flake.Run) {
	t.Helper()
	data := readFile(t, path)
	const size = len(flake.ID{}) + 4
	for run := range slices.Chunk([]byte(data), size) {
		id := flake.ID(run[:len(flake.ID{})])
		runs = append(runs, flake.Run{First: id, Count: int(binary.BigEndian.Uint32(run[len(id):]))})
	}
	return runs
}

func readIDs(t *testing.T, path string) (ids []flake.ID) {
	t.Helper()
	data := readFile(t, path)
	for r := strings.NewReader(data); r.Len() > 0; {
		var id flake.ID
		if n, err := r.Read(id[:]); n != len(id) {
			t.Fatalf("%s: %v", path, err)
		}
		ids = append(ids, id)
	}
	return ids
}
