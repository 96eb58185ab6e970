package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/generators"
	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/etcd"
	"github.com/flake-go/flake/flake/workers/etcd/etcdtest"
)

const etcdHold = 3 * time.Second

// etcdNode is a node with a number from etcd, and the ids that were taken from it.
type etcdNode struct {
	t       *testing.T
	config  string
	url     string
	process *process

	mu   sync.Mutex
	made map[string][]string // by generator
}

var etcdGenerators = []string{"flake", "orders", "events", "ulids"}

// etcdConfig writes the configuration of a node with generators of four formats. Etcd has a
// sixth of hold to answer. more holds keys of [numbers] and, after the line [etcd], of etcd's table.
func etcdConfig(t *testing.T, endpoints []string, hold time.Duration, more string) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "sys.toml")
	numbers, etcd, _ := strings.Cut(more, "[etcd]")
	text := fmt.Sprintf(`
[flake]
worker_id = "assigned"
timestamp_path = %q
[[generator]]
name = "orders"
format = "snowflake"
id = "assigned"
[[generator]]
name = "events"
format = "sno"
partition = "assigned"
[[generator]]
name = "ulids"
format = "ulid"
worker_id = "assigned"
[http]
listen = "127.0.0.1:0"
[numbers]
store = "etcd"
hold = %d
%s
[etcd]
endpoints = ["%s"]
%s
`, filepath.Join(dir, "timestamp"), hold/time.Second, numbers, strings.Join(endpoints, `", "`), etcd)
	writeFile(t, path, text)
	return path
}

func (n *etcdNode) start() {
	n.process = spawn(n.t, freePort(n.t), command, "-noinput", "-setcookie", cookie, "-config", n.config)
}

// take takes ids from all generators until ctx is done.
func (n *etcdNode) take(ctx context.Context) {
	client := http.Client{Timeout: time.Second}
	defer client.CloseIdleConnections()
	for ctx.Err() == nil {
		for _, generator := range etcdGenerators {
			ids, err := n.ask(ctx, &client, generator)
			if err != nil {
				time.Sleep(5 * time.Millisecond) // the node is down, paused, or has no number
				continue
			}
			n.mu.Lock()
			n.made[generator] = append(n.made[generator], ids...)
			n.mu.Unlock()
		}
		time.Sleep(5 * time.Millisecond) // a caller at a steady rate
	}
}

func (n *etcdNode) ask(ctx context.Context, client *http.Client, generator string) ([]string, error) {
	n.mu.Lock()
	url := n.url
	n.mu.Unlock()
	return idsAt(ctx, client, url+"v1/ids?n=20&base=16&generator="+generator)
}

// idsAt returns the ids in the answer from a URL, or an error.
func idsAt(ctx context.Context, client *http.Client, url string) ([]string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	if err != nil {
		return nil, err
	}
	return strings.Fields(string(body)), nil
}

// serving waits until the process, which may have been restarted, hands out ids.
func (n *etcdNode) serving() {
	url := n.process.await("  HTTP ")
	n.mu.Lock()
	n.url = url
	n.mu.Unlock()
}

// awaitMore waits until there are more ids of all formats.
func (n *etcdNode) awaitMore(what string) {
	n.t.Helper()
	n.mu.Lock()
	before := map[string]int{}
	for generator, ids := range n.made {
		before[generator] = len(ids)
	}
	n.mu.Unlock()
	start := time.Now()
	for _, generator := range etcdGenerators {
		for {
			n.mu.Lock()
			more := len(n.made[generator]) > before[generator]
			n.mu.Unlock()
			if more {
				break
			}
			if time.Since(start) > time.Minute {
				n.t.Fatalf("%s: no more ids of %s", what, generator)
			}
			time.Sleep(time.Millisecond)
		}
	}
	n.t.Logf("%s: ids after %v", what, time.Since(start).Round(time.Millisecond))
}

// wantMetric fails unless the metrics contain want.
func (n *etcdNode) wantMetric(want string) {
	n.t.Helper()
	response, err := http.Get(n.url + "metrics")
	if err != nil {
		n.t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || !strings.Contains(string(body), want) {
		n.t.Errorf("the metrics lack %s, %v", want, err)
	}
}

// Four nodes share three numbers, in three formats. One node is paused for so long that it loses
// its number, another is killed, and etcd's leader is killed and paused. No id repeats.
func TestEtcd(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 3)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var nodes []*etcdNode
	var wg sync.WaitGroup
	for range 4 {
		n := &etcdNode{t: t, config: etcdConfig(t, c.Endpoints(), etcdHold, "count = 3\nwait = true"),
			made: map[string][]string{}, url: "http://127.0.0.1:1/"}
		n.start()
		if len(nodes) < 3 {
			n.serving()
		}
		nodes = append(nodes, n)
		wg.Go(func() { n.take(ctx) })
	}
	paused, killed, third, waits := nodes[0], nodes[1], nodes[2], nodes[3]
	paused.awaitMore("at the start")
	paused.process.signal(syscall.SIGSTOP)
	waits.serving() // with the number of the paused node
	waits.awaitMore("with the number of the paused node")
	waits.wantMetric(`flake_worker_info{from="store",generator="orders"} 1`)
	waits.wantMetric(`flake_worker_left_seconds{generator="events"} `)
	paused.process.signal(syscall.SIGCONT)
	paused.process.awaitText(`msg="a worker id is lost`)
	killed.process.signal(syscall.SIGKILL)
	killed.process.wait()
	killed.start()
	leader := c.Leader()
	leader.Kill()
	third.awaitMore("after the leader was killed")
	leader.Start()
	leader = c.Leader()
	leader.Pause()
	third.awaitMore("while the leader is paused")
	leader.Resume()
	waits.process.signal(syscall.SIGTERM) // frees its number for another node
	if status := waits.process.wait(); status != 0 {
		t.Errorf("exit status %d", status)
	}
	killed.serving()
	for _, n := range []*etcdNode{paused, killed, third} {
		n.awaitMore("at the end")
	}
	stop()
	wg.Wait()
	for _, n := range nodes[:3] {
		n.process.signal(syscall.SIGTERM)
		if status := n.process.wait(); status != 0 || strings.Contains(n.process.output(), "DATA RACE") {
			t.Errorf("exit status %d", status)
		}
	}
	differ(t, nodes...)
}

// differ fails if any two ids of the nodes are equal.
func differ(t *testing.T, nodes ...*etcdNode) {
	t.Helper()
	for _, generator := range etcdGenerators {
		seen := map[string]bool{}
		for _, n := range nodes {
			for _, id := range n.made[generator] {
				if generator == "ulids" {
					id = id[:len(id)-4] // without random bits
				}
				if seen[id] {
					t.Errorf("%s: %s repeated", generator, id)
				}
				seen[id] = true
			}
		}
		t.Logf("%s: %d ids", generator, len(seen))
	}
}

// startEtcd runs an etcd of one member until the test ends.
func startEtcd(t *testing.T) (*etcdtest.Cluster, *etcd.Store) {
	t.Helper()
	c := etcdtest.Start(t, 1)
	s, err := etcd.New(etcd.Config{Endpoints: c.Endpoints()})
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

// Errors say why no number can be claimed, and what to do.
func TestEtcdRefused(t *testing.T) {
	t.Parallel()
	c, s := startEtcd(t)
	other, err := workers.New(workers.Config{Store: s, Prefix: "taken", Hold: time.Hour, Name: "other@127.0.0.1"})
	if err == nil {
		err = other.Step(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"later/n/000000000000", "taken/eu/n/000000000000",
		"taken/config"} { // the last two do not matter
		if _, err := s.Swap(t.Context(), nil, map[string]string{key: "2 1700000000000"}); err != nil {
			t.Fatal(err)
		}
	}
	nobody := freePort(t)
	shown := etcdConfig(t, c.Endpoints(), time.Minute, "prefix = 'taken'")
	for _, tt := range [][2]string{
		{"", "0       held   20"}, {"after-restore", "ids with a new claim begin after 20"},
		{"release 0", "worker id 0 may be claimed from 20"}, {"", "0       free   20"},
		{"release 5", "worker id 5 was never claimed"}, {"move other:taken", `knows the place "other:taken"`},
		{"no", "release NUMBER, after-restore, withdraw or move PLACE"},
	} {
		out := inTime(t, tt[1], func() string {
			out, _ := exec.Command(command,
				append([]string{"workers", "-config", shown}, strings.Fields(tt[0])...)...).CombinedOutput()
			return string(out)
		})
		if !strings.Contains(out, tt[1]) {
			t.Errorf("flake workers %s: %s", tt[0], out)
		}
	}
	cluster, err := s.Cluster(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	released, _ := other.Claim()
	if err := other.Step(t.Context()); !errors.Is(err, workers.ErrNoneFree) || !released.Clean() {
		t.Error(err, released.Clean())
	}
	if _, err := s.Swap(t.Context(), nil, map[string]string{
		"held/n/000000000000": workers.Value{Mark: uint64(time.Now().Add(time.Hour).UnixMilli()), Generation: 1, Token: 1,
			Name: "other@127.0.0.1"}.String(),
		"held/floor": workers.Floor{Places: workers.Place(cluster, "held")}.String(),
	}); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		endpoint, more, want string
	}{
		"nobody answers": {"127.0.0.1:" + nobody, "start_timeout = 2",
			"numbers.start_timeout, 2s, has passed: etcd at http://127.0.0.1:" + nobody + ": dial tcp 127.0.0.1:" + nobody +
				": connect: connection refused"},
		"none is free": {c.Members[0].Endpoint, "prefix = 'held'\ncount = 1",
			"no worker id is free from 0 to 0; the first may be free at "},
		"who has it": {c.Members[0].Endpoint, "prefix = 'held'\ncount = 1", "held: 0 by other@127.0.0.1 until "},
		"what to do": {c.Members[0].Endpoint, "prefix = 'held'\ncount = 1",
			"; set numbers.wait to wait for one, or take one from its node: flake workers release NUMBER"},
		"other format": {c.Members[0].Endpoint, "prefix = 'later'",
			`later/n/000000000000 has the unknown value "2 1700000000000", perhaps from a later version of flake`},
		"one number twice": {c.Members[0].Endpoint, "[[generator]]\nname = 'more'\nformat = 'flake'\nworker_id = 'assigned'",
			`generator more: worker_id "assigned": generator flake has it, and both would hand out the same ids; give one of ` +
				`them another worker_id`},
		"no certificate": {c.Members[0].Endpoint, "[etcd]\nca = 'none.pem'",
			`etcd.ca "none.pem": cannot be read: no such file or directory`},
		"no password file": {c.Members[0].Endpoint, "[etcd]\nuser = 'x'\npassword_file = 'none'",
			`etcd.password_file "none": `},
	} {
		t.Run(name, func(t *testing.T) {
			out := refusal(t, "-noinput", "-setcookie", cookie, "-config",
				etcdConfig(t, []string{tt.endpoint}, time.Minute, tt.more))
			if !strings.Contains(out, tt.want) {
				t.Errorf("got %s\nwant %s", out, tt.want)
			}
			t.Log(out)
		})
	}
}

// A node refuses to start, and flake check says so, if a number set by hand is another node's in
// etcd. It does not matter whether the node has a generator of that format with a number from etcd.
func TestEtcdHandNumbered(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(text string) string{
		"instead of etcd": func(text string) string { return strings.Replace(text, "\nid = \"assigned\"", "\nid = 1", 1) },
		"beside etcd": func(text string) string {
			return text + "\n[[generator]]\nname = 'more'\nformat = 'snowflake'\nid = 1"
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, s := startEtcd(t)
			start := func(numbers int) *etcdNode {
				n := &etcdNode{t: t, config: etcdConfig(t, c.Endpoints(), time.Minute, fmt.Sprintf("count = %d", numbers))}
				n.start()
				n.serving()
				return n
			}
			changed := start(1) // has number 0
			other := start(2)   // has number 1
			ended := func() {
				changed.process.wait()
				await(t, "number 0 is free", func() bool {
					all, err := workers.List(t.Context(), s, "flake")
					return err == nil && all[0].Mark < uint64(time.Now().UnixMilli())
				})
			}
			changed.process.signal(syscall.SIGTERM)
			ended()
			writeFile(t, changed.config, change(readFile(t, changed.config)))
			if r := checked(t, changed.config, false, 1, generators.CodeByHand); r.Start != generators.StartRefuses {
				t.Errorf("flake check: %+v", r)
			}
			changed.start()
			if changed.process.says("  HTTP ") {
				t.Fatalf("the node started; %d ids twice", twice(changed, other))
			} else if code := changed.process.wait(); code != 1 || !strings.Contains(changed.process.output(), "numbers.count") {
				t.Errorf("exit status %d\n%s", code, changed.process.output())
			}
			ended()
			writeFile(t, changed.config, strings.Replace(readFile(t, changed.config), "\nid = 1", "\nid = 2", 1))
			checked(t, changed.config, false, 0)
			changed.start()
			changed.serving()
		})
	}
}

// twice takes ids from nodes at the same time, and returns how many were handed out twice.
func twice(nodes ...*etcdNode) (repeated int) {
	var client http.Client
	defer client.CloseIdleConnections()
	for _, n := range nodes {
		n.serving()
	}
	seen := map[string]bool{}
	for range 300 {
		for _, n := range nodes {
			for _, generator := range []string{"orders", "more"} {
				ids, _ := n.ask(n.t.Context(), &client, generator) // not all nodes have all generators
				for _, id := range ids {
					if seen[id] {
						repeated++
					}
					seen[id] = true
				}
			}
		}
	}
	return repeated
}

// inTime runs a command repeatedly until etcd answers in time, or the output contains want, and
// returns the output.
func inTime(t *testing.T, want string, run func() string) (out string) {
	t.Helper()
	await(t, "etcd answers in time", func() bool {
		out = run()
		return want != "" && strings.Contains(out, want) || !strings.Contains(out, " in time")
	})
	return out
}

// refusal runs a command that must fail, and returns its output.
func refusal(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command, args...)
	cmd.Env = append(os.Environ(), "PATH=",
		"ERL_EPMD_PORT="+freePort(t)) // otherwise it starts an epmd, which keeps running
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Error("the command succeeded, but must fail")
	}
	return string(out)
}

// awaitText waits until the output contains text.
func (p *process) awaitText(text string) {
	p.t.Helper()
	if !p.says(text) {
		p.t.Fatalf("the process ended without printing %q", text)
	}
}
