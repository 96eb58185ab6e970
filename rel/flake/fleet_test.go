package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/workers/etcd/etcdtest"
)

var (
	fleetTime = flag.Duration("fleet.time", 20*time.Second, "how long TestFleet keeps causing faults")
	fleetOnly = flag.String("fleet.only", "", "cause only the faults whose names contain this")
)

const (
	fleetNodes   = 8
	fleetNumbers = 6
	fleetCallers = 4 // Erlang nodes

	// settled is the interval at which callers report their answers, and so how late settle may
	// return.
	settled = 100 * time.Millisecond
)

// trial is a set of nodes with numbers from a real etcd, and of Erlang nodes that constantly call
// them.
type trial struct {
	t       *testing.T
	etcd    *etcdtest.Cluster
	command string
	port    string // of EPMD
	ids     string // folder of the ids that callers received
	nodes   []*trialNode
	callers []*process
	faults  []fault
}

type trialNode struct {
	*process
	trial        *trial
	name, config string
	more         string // settings for [etcd]
	link         *etcdtest.Link
	lost         int // losses when settle last began
}

// fault is one fault, which lasts until all numbers are in use again.
type fault struct {
	what     string
	node     string // empty: etcd
	from, to time.Time
}

// startTrial starts one node for each element of settings, which are lines for [etcd].
func startTrial(t *testing.T, members int, settings ...string) *trial {
	t.Helper()
	command, err := plain()
	if err != nil {
		t.Fatal(err)
	}
	f := &trial{t: t, etcd: etcdtest.Start(t, members), command: command, port: freePort(t), ids: t.TempDir()}
	startDaemon(t, f.port)
	arg := "fleet=" + f.ids
	for i, more := range settings {
		n := &trialNode{trial: f, name: fmt.Sprintf("n%d@127.0.0.1", i), more: more, link: f.etcd.Link()}
		n.renew()
		n.start()
		f.nodes = append(f.nodes, n)
		arg += "," + n.name
	}
	for i := range fleetCallers {
		f.callers = append(f.callers, spawnErl(t, f.port, []string{"-name", beam(i), "+S", "1:1"}, arg))
	}
	return f
}

// renew gives the node a new disk.
func (n *trialNode) renew() {
	n.config = etcdConfig(n.trial.t, n.link.Endpoints(), etcdHold, n.more)
}

func (n *trialNode) start() {
	n.process = spawn(n.trial.t, n.trial.port, n.trial.command, "-noinput", "-setcookie", cookie, "-name", n.name,
		"-config", n.config)
}

func (n *trialNode) end(s syscall.Signal) int {
	n.signal(s)
	return n.wait()
}

func (n *trialNode) losses() int { return strings.Count(n.output(), `msg="a worker id is lost`) }

// loses calls cause, and waits until the node has lost the number that it had when settle began.
// On a slow machine, the node may have lost that number before loses is called.
func (n *trialNode) loses(cause func()) {
	before := n.lost
	cause()
	await(n.trial.t, n.name+" has lost its number", func() bool { return n.losses() > before })
}

// pause pauses the process for d, or longer if no other node has its number yet.
func (n *trialNode) pause(d time.Duration) {
	n.loses(func() {
		from := time.Now()
		n.signal(syscall.SIGSTOP)
		n.trial.settle(fleetNumbers)
		time.Sleep(time.Until(from.Add(d))) // how long the fault lasts
		n.signal(syscall.SIGCONT)
	})
}

// cut drops, for d, one direction of the traffic between the node and all members of etcd.
func (n *trialNode) cut(drop func(), d time.Duration) {
	drop()
	time.Sleep(d) // how long the fault lasts
	n.link.Join()
}

// settle waits until the given number of nodes have handed out ids of all formats since settle
// began, and returns these nodes.
func (f *trial) settle(nodes int) (serving []*trialNode) {
	f.t.Helper()
	for _, n := range f.nodes {
		n.lost = n.losses()
	}
	p := f.callers[0]
	p.mu.Lock()
	defer p.mu.Unlock()
	for from := p.out.Len(); len(serving) < nodes; p.changed.Wait() {
		if p.ended {
			f.t.Fatal("the callers have ended")
		}
		// The first line may have begun before settle did.
		lines := strings.Split(string(p.out.Bytes()[from:]), "\n")
		if len(lines) < 4 {
			continue
		}
		before, now := answers(lines[1]), answers(lines[len(lines)-2])
		serving = nil
		for i, n := range f.nodes {
			grown := func(g int) bool { return now[3*i+g] > before[3*i+g] }
			if grown(0) && grown(1) && grown(2) {
				serving = append(serving, n)
			}
		}
	}
	return serving
}

// answered waits until the first caller has at least the given number of answers from each generator
// of each node.
func (f *trial) answered(least int) {
	f.t.Helper()
	p := f.callers[0]
	p.mu.Lock()
	defer p.mu.Unlock()
	for ; !p.ended; p.changed.Wait() {
		lines := strings.Split(p.out.String(), "\n")
		if len(lines) > 1 && slices.Min(answers(lines[len(lines)-2])) >= least { // the last line is empty or incomplete
			return
		}
	}
	f.t.Fatal("the callers have ended")
}

// answers parses a line of a caller: the number of answers of each node's three generators.
func answers(line string) (all []int) {
	for _, field := range strings.Fields(line)[1:] {
		n := 0
		fmt.Sscan(field, &n)
		all = append(all, n)
	}
	return all
}

// stop ends the callers, and returns what they received.
func (f *trial) stop() *given {
	f.t.Helper()
	writeFile(f.t, filepath.Join(f.ids, "stop"), "")
	said := 0
	for _, p := range f.callers {
		wantChecks(f.t, p, "fleet")
		text := p.output()
		line, _, _ := strings.Cut(text[strings.LastIndex(text, "ANSWERS "):], "\n")
		for _, n := range answers(line) {
			said += n
		}
	}
	g := readGiven(f.t, f.ids)
	if g.answers != said {
		f.t.Errorf("%d answers are in the files, but callers report %d", g.answers, said)
	}
	return g
}

// kinds are the faults, the most important first.
var kinds = []struct {
	what string
	do   func(f *trial, n *trialNode) // n is one of the nodes that hand out ids
	node bool                         // the fault affects only the node
}{
	{"SIGSTOP for three times hold", func(_ *trial, n *trialNode) { n.pause(3 * etcdHold) }, true},
	{"kill -9", func(_ *trial, n *trialNode) { n.end(syscall.SIGKILL); n.start() }, true},
	{"kill -9, a new disk", func(_ *trial, n *trialNode) { n.end(syscall.SIGKILL); n.renew(); n.start() }, true},
	{"its answers from etcd dropped for half of hold", func(_ *trial, n *trialNode) {
		n.cut(n.link.DropAnswers, etcdHold/2)
	}, true},
	{"etcd's leader cut off for twice hold", func(f *trial, _ *trialNode) {
		leader := f.etcd.Leader()
		leader.Cut()
		time.Sleep(2 * etcdHold) // how long the fault lasts
		leader.Join()
	}, false},
	{"its answers from etcd dropped for twice hold", func(_ *trial, n *trialNode) {
		n.cut(n.link.DropAnswers, 2*etcdHold)
	}, true},
	{"flake workers release", (*trial).release, true},
	{"SIGSTOP beyond hold", func(_ *trial, n *trialNode) { n.pause(0) }, true},
	{"its requests to etcd dropped for twice hold", func(_ *trial, n *trialNode) {
		n.cut(n.link.DropRequests, 2*etcdHold)
	}, true},
	{"SIGTERM", (*trial).stopCleanly, true},
	{"etcd's leader killed", func(f *trial, _ *trialNode) { f.kill(f.etcd.Leader()) }, false},
	{"all of etcd paused for twice hold", func(f *trial, _ *trialNode) {
		for _, m := range f.etcd.Members {
			m.Pause()
		}
		time.Sleep(2 * etcdHold) // how long the fault lasts
		for _, m := range f.etcd.Members {
			m.Resume()
		}
	}, false},
	{"another member of etcd killed", func(f *trial, _ *trialNode) { f.kill(f.follower()) }, false},
	{"kill -9, a start, SIGTERM at its first ids, a start", (*trial).crashAndStop, true},
	{"etcd's leader not heard for twice hold", func(f *trial, _ *trialNode) {
		leader := f.etcd.Leader()
		leader.Mute()
		time.Sleep(2 * etcdHold) // how long the fault lasts
		leader.Join()
	}, false},
	{"another member of etcd paused for twice hold", func(f *trial, _ *trialNode) {
		m := f.follower()
		m.Pause()
		time.Sleep(2 * etcdHold) // how long the fault lasts
		m.Resume()
	}, false},
}

// follower returns a member of etcd that is not the leader.
func (f *trial) follower() *etcdtest.Member {
	leader := f.etcd.Leader()
	return f.etcd.Members[slices.IndexFunc(f.etcd.Members, func(m *etcdtest.Member) bool { return m != leader })]
}

// crashAndStop kills a node and starts it again, with the same number. Then it stops the node
// cleanly and starts it once more.
func (f *trial) crashAndStop(n *trialNode) {
	n.end(syscall.SIGKILL)
	n.start()
	n.await("  HTTP ") // it hands out ids
	if status := n.end(syscall.SIGTERM); status != 0 {
		f.t.Errorf("exit status %d", status)
	}
	n.start()
}

// release runs flake workers release for a node's number, unless the node has just lost it,
// and waits until a node has claimed it.
func (f *trial) release(n *trialNode) {
	i := -1
	n.loses(func() {
		all := f.entries()
		i = slices.IndexFunc(all, func(e entry) bool { return e.state == "held" && e.name == n.name })
		if i >= 0 {
			f.workers("release", all[i].number)
		}
	})
	if i >= 0 {
		await(f.t, "a node has claimed the number of "+n.name, func() bool { return f.entries()[i].state == "held" })
	}
}

// entry is a line that flake workers prints.
type entry struct{ number, state, name string }

func (f *trial) entries() (all []entry) {
	for line := range strings.Lines(f.workers()) {
		fields := strings.Fields(line)
		all = append(all, entry{fields[0], fields[1], fields[4]})
	}
	return all
}

// workers runs flake workers until etcd answers in time.
func (f *trial) workers(args ...string) (out string) {
	f.t.Helper()
	await(f.t, "flake workers succeeds", func() bool {
		text, err := exec.Command(f.command,
			append([]string{"workers", "-config", f.nodes[0].config}, args...)...).CombinedOutput()
		if out = string(text); err != nil {
			f.t.Log(out)
		}
		return err == nil
	})
	return out
}

// stopCleanly stops a node cleanly, and starts it again when another node has its number.
func (f *trial) stopCleanly(n *trialNode) {
	if status := n.end(syscall.SIGTERM); status != 0 {
		f.t.Errorf("exit status %d", status)
	}
	f.settle(fleetNumbers)
	n.start()
}

// kill kills a member, and starts it again after hold.
func (f *trial) kill(m *etcdtest.Member) {
	m.Kill()
	time.Sleep(etcdHold) // how long the fault lasts
	m.Start()
	f.etcd.Leader()
}

// TestFleet runs eight nodes with six numbers from a real etcd of three members, so two nodes
// always wait for a number. Erlang nodes constantly take ids of three formats, while faults hit
// nodes and etcd one after another. No id repeats, and no two nodes have the same number at the
// same time. This command runs it for longer, and prints how long each fault stops the ids:
//
//	go test -v -run TestFleet ./rel/flake -fleet.time=3m
func TestFleet(t *testing.T) {
	t.Parallel()
	f := startTrial(t, 3, slices.Repeat([]string{fmt.Sprintf("numbers = %d\nwait = true", fleetNumbers)}, fleetNodes)...)
	serving := f.settle(fleetNumbers)
	start := time.Now()
	for i := 0; time.Since(start) < *fleetTime; i++ {
		kind := kinds[i%len(kinds)]
		if !strings.Contains(kind.what, *fleetOnly) {
			continue
		}
		n := serving[rand.IntN(len(serving))]
		now := fault{what: kind.what, from: time.Now()}
		if kind.node {
			now.node = n.name
		}
		kind.do(f, n)
		serving = f.settle(fleetNumbers)
		now.to = time.Now().Add(-settled)
		f.faults = append(f.faults, now)
	}
	g := f.stop()
	for _, n := range serving {
		if status := n.end(syscall.SIGTERM); status != 0 {
			t.Errorf("%s: exit status %d", n.name, status)
		}
	}
	for generator, format := range sizes {
		ids := g.ids[generator]
		found := judge(ids, format)
		if found != (findings{}) || len(ids) == 0 {
			t.Errorf("%s: %+v", generator, found)
		}
		t.Logf("%s: %d ids, %+v", generator, len(ids), found)
	}
	if g.descending > 0 {
		t.Errorf("%d ids are not greater than the caller's previous id", g.descending)
	}
	t.Logf("%d faults, %d answers\n%s", len(f.faults), g.answers, g.table(f.faults))
}

// A trial finds repeated ids if two nodes have the same number, here because their prefixes differ.
func TestFleetFinds(t *testing.T) {
	t.Parallel()
	f := startTrial(t, 1, "numbers = 1\nprefix = 'a'", "numbers = 1\nprefix = 'b'")
	f.answered(250)
	g := f.stop()
	for generator, format := range sizes {
		ids := g.ids[generator]
		found := judge(ids, format)
		if found.twice == 0 || found.shared == 0 {
			t.Errorf("%s: %+v", generator, found)
		}
		t.Logf("%s: %d ids, %+v", generator, len(ids), found)
	}
}
