package main

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/node/etf"
)

var upgradeTime = flag.Duration("upgrade.time", 0,
	"how long TestRollingUpgrade keeps upgrading its nodes, each at least once")

const upgradeCallers = 64

// TestRollingUpgrade upgrades two nodes, one after the other, while the processes of an
// Erlang node take ids with the client library. No call may fail, no id may repeat, and
// each caller's ids must ascend.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	port, folder := freePort(t), t.TempDir()
	startEPMD(t, port)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	var starts []func() *flakeNode
	var nodes []*flakeNode
	names := []string{"a@127.0.0.1", "b@127.0.0.1"}
	for _, name := range names {
		config := configFile(t, fmt.Sprintf("cookie = %q\ndrain_time = 1\n[http]\nlisten = \"127.0.0.1:0\"", cookie))
		start := func() *flakeNode { return startNode(t, port, "-config", config, "-name", name) }
		starts, nodes = append(starts, start), append(nodes, start())
	}
	args := append([]string{"-noinput", "-pa", compileClient(t), "-name", "callers@127.0.0.1", "-setcookie", cookie,
		"-start_epmd", "false"}, patient...)
	args = append(args, "-s", "upgrade", "main", "-extra", folder, strconv.Itoa(upgradeCallers))
	callers := spawn(t, port, "erl", append(args, names...)...)
	callers.await("CALLING")

	upgrades := 0
	for begin := time.Now(); upgrades < len(nodes) || time.Since(begin) < *upgradeTime; upgrades++ {
		i := upgrades % len(nodes)
		nodes[i].signal(syscall.SIGTERM)
		await(t, "it drains", func() bool { return strings.Contains(nodes[i].output(), "draining before the node stops") })
		if status := nodes[i].wait(); status != 0 {
			t.Errorf("exit status %d", status)
		}
		nodes[i] = starts[i]()
		if status, body := fetch(t, client, nodes[i].await("  HTTP ")+"readyz", ""); status != http.StatusOK {
			t.Errorf("/readyz after the upgrade: %d, %s", status, body)
		}
	}
	writeFile(t, filepath.Join(folder, "stop"), "")
	if failed := callers.await("FAILED "); failed != "0 []" {
		t.Errorf("calls failed: %s", failed)
	}
	callers.wait()
	g := readTaken(t, folder)
	if g.twice > 0 || g.descending > 0 || g.workers != len(nodes) {
		t.Errorf("%d ids repeated, %d were not greater than the caller's previous id; %d workers, want %d", g.twice,
			g.descending, g.workers, len(nodes))
	}
	t.Logf("%d upgrades, %d callers, %d ids: 0 calls failed, %d ids twice; the longest gap was %v of one "+
		"caller, %v of all",
		upgrades, upgradeCallers, g.ids, g.twice, g.gap, g.gapOfAll)
}

// A node that was killed makes ids above those from before. After a downgrade, it refuses the file of
// the later version. Once the file is moved away, the node's ids are above all earlier ones.
func TestThereAndBack(t *testing.T) {
	t.Parallel()
	config := configFile(t, fmt.Sprintf("cookie = %q\nepmd = \"off\"", cookie))
	path := filepath.Join(filepath.Dir(config), "timestamp")
	var last flake.ID
	life := func() {
		t.Helper()
		p := spawn(t, freePort(t), command, "-noinput", "-config", config)
		c, err := client.Dialer{Cookie: cookie, Addr: p.await("  address ")}.Dial(t.Context(), nodeName)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for range 10 {
			reply, err := c.Call(t.Context(), "flake", etf.Atom("get"))
			answer, ok := reply.(etf.Tuple)
			if err != nil || !ok || len(answer) != 2 || answer[0] != etf.Atom("ok") {
				t.Fatalf("%v, %v", reply, err)
			}
			id := flake.ID(answer[1].([]byte))
			if id.Compare(last) <= 0 {
				t.Errorf("%v was returned after %v", id, last)
			}
			last = id
		}
		p.signal(syscall.SIGKILL)
		p.wait()
	}
	life()
	life()

	data := readFile(t, path)
	later := strings.ReplaceAll(data, "flake-mark 1", "flake-mark 2")
	if later == data {
		t.Fatalf("%q", data)
	}
	writeFile(t, path, later)
	p := spawn(t, freePort(t), command, "-noinput", "-config", config)
	if status := p.wait(); status != exitFailure || !strings.Contains(p.output(), "its format is version 2") {
		t.Errorf("exit status %d", status)
	}
	if left := readFile(t, path); left != later {
		t.Errorf("the file was changed: %q", left)
	}
	if err := os.Rename(path, path+".later"); err != nil {
		t.Fatal(err)
	}
	life()
}

// compileClient compiles the client library and the callers into the folder that it returns.
func compileClient(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	sources, err := filepath.Glob("../../clients/erlang/flake_client/src/*.erl")
	if err != nil || len(sources) == 0 {
		t.Fatal(err, "no client")
	}
	need(t, compile(append([]string{"erlc", "-o", folder, "testdata/upgrade.erl"}, sources...)...))
	return folder
}

// takings are what callers received.
type takings struct {
	ids, twice, descending, workers int

	gap, gapOfAll time.Duration // the longest time without an id: for one caller, and for all
}

// readTaken reads the files that testdata/upgrade.erl wrote.
func readTaken(t *testing.T, folder string) (g takings) {
	t.Helper()
	const size, record = 16, 16 + 8
	var all [][]byte
	var times []int64
	workers := make(map[string]bool)
	for i := range upgradeCallers {
		data, err := os.ReadFile(filepath.Join(folder, strconv.Itoa(i+1)))
		if err != nil || len(data) == 0 || len(data)%record != 0 {
			t.Fatalf("%d bytes of a caller, %v", len(data), err)
		}
		var last []byte
		var at []int64
		for one := range slices.Chunk(data, record) {
			id := one[:size]
			if bytes.Compare(id, last) <= 0 {
				g.descending++
			}
			last = id
			all, at = append(all, id), append(at, int64(binary.BigEndian.Uint64(one[size:])))
			workers[string(id[8:14])] = true
		}
		g.gap, times = max(g.gap, widest(at)), append(times, at...)
	}
	slices.SortFunc(all, bytes.Compare)
	g.ids, g.workers = len(all), len(workers)
	g.twice = g.ids - len(slices.CompactFunc(all, bytes.Equal))
	slices.Sort(times)
	g.gapOfAll = widest(times)
	return g
}

// widest returns the longest time between two successive times in at, which are in us.
func widest(at []int64) (gap time.Duration) {
	for i := 1; i < len(at); i++ {
		gap = max(gap, time.Duration(at[i]-at[i-1])*time.Microsecond)
	}
	return gap
}
