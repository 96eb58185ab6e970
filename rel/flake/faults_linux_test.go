package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/flake/sno"
	"github.com/flake-go/flake/flake/snowflake"
	"github.com/flake-go/flake/flake/ulid"
	"github.com/flake-go/flake/flake/uuidv7"
	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/storetest"
	"github.com/flake-go/flake/internal/testenv"
)

var (
	faultsSeed  = flag.Uint64("faults.seed", 0, "repeats an earlier run of TestFaults; 0: a new one")
	faultsStore = flag.String("faults.store", "etcd", "the store of numbers: etcd, postgres or kubernetes")
	faultsOnly  = flag.String("faults.only", "", "a regular expression: cause only the faults whose names it matches")
)

const (
	rigNodes   = 6
	rigNumbers = 7 // so a node waits if others have lost two
)

// rigHold is hold. A longer one leaves more time, on a slow machine, in which ids would repeat.
var rigHold time.Duration

func init() {
	flag.DurationVar(&rigHold, "faults.hold", 3*time.Second, "hold of the nodes of TestFaults")
}

// rigMargin is more than the clock of a node that makes ids is ever ahead.
func rigMargin() time.Duration { return rigHold + time.Second }

// rigGenerators are what nodes have, at least the first. Those of one space share numbers.
var rigGenerators = []struct{ name, format, space, settings string }{
	{"flake", "flake", "flake", ""},
	{"orders", "snowflake", "orders", `id = "assigned"`},
	{"events", "sno", "sno", "partition = \"assigned\"\nsequence_max = 32767"},
	{"ulids", "ulid", "ulids", `worker_id = "assigned"`},
	{"logs", "sno", "sno", "partition = \"assigned\"\nsequence_min = 32768"},
	{"uuids", "uuidv7", "uuids", `worker_id = "assigned"`},
	{"idgens", "flake-idgen", "idgens", `id = "assigned"`},
	{"more", "snowflake", "more", "id = \"assigned\"\nepoch = 2020-01-01T00:00:00Z"},
}

// rigStore is the store of a rig's numbers.
type rigStore interface {
	// link makes a path from a machine to the store, and returns the tables of a configuration that uses it.
	link(m *machine) (l storetest.Link, tables string)
	open() (workers.Store, error)
	remove(key string) error
	save(folder string)    // copies the store's data to a new directory
	restore(folder string) // returns to data in a directory, which it moves
	another() rigStore     // starts another store
	actions() []rigAction  // of this store alone
}

// rigStores starts the stores.
var rigStores = map[string]func(t *testing.T) rigStore{"etcd": newRigEtcd, "postgres": newRigPostgres,
	"kubernetes": newRigKubernetes}

// rig is a fleet of nodes, with numbers from a real store, callers, and faults.
type rig struct {
	t       *testing.T
	command string // flake, with a clock that can be set
	folder  string
	disk    string // where a machine's disk is mounted
	clock   string // the file that says how far a machine's clock is ahead
	store   rigStore
	prefix  string
	hold    time.Duration
	nodes   []*rigNode // the last is not part of the fleet, and runs only during some faults
	book    *book

	operator *machine // whose link always works
	tables   string   // of its configuration
	another  rigStore // or nil
	faults   []cause
	allowed  []allowance
}

// cause is a fault that happened.
type cause struct {
	what     string
	node     int
	from, to time.Time
}

func (c cause) String() string {
	return fmt.Sprintf("%s to %s n%d: %s", c.from.Format("15:04:05.000"), c.to.Format("15:04:05.000"), c.node, c.what)
}

// allowance is a period in which two nodes may make the same ids, because a page says so.
type allowance struct {
	a, b     int
	from, to time.Time
}

// rigNode is a node of the fleet.
type rigNode struct {
	*process
	r            *rig
	i            int
	name, config string
	many         int // how many of rigGenerators it has
	settings     func(config string) string
	link         storetest.Link
	tables       string        // of the configuration, for the link
	ahead        time.Duration // of its clock
	kept         string        // an earlier file of marks
	copies       int           // lines that report a copy
	up           atomic.Bool   // whether it is started
	life         atomic.Int32
	served       []atomic.Int64 // when each generator last handed out ids, in µs

	mu sync.Mutex
	*machine
}

func newRig(t *testing.T) *rig {
	t.Helper()
	needRoot(t)
	testenv.Need(t, "unshare", "nsenter", "ip", "mount")
	start, known := rigStores[*faultsStore]
	if !known {
		t.Fatalf("no store is called %q", *faultsStore)
	}
	r := &rig{t: t, folder: t.TempDir(), store: start(t), prefix: "flake", hold: rigHold}
	r.clock = filepath.Join(built, "clock", "ahead") // each machine has its own file at the path
	var err error
	r.command, err = withClock()
	need(t, err)
	r.disk = filepath.Join(r.folder, "disk")
	r.book = &book{t: t, folder: filepath.Join(r.folder, "ids")}
	for _, dir := range []string{r.disk, r.book.folder, filepath.Dir(r.clock)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	r.operator = newMachine(t, nil)
	t.Cleanup(r.operator.stop)
	_, r.tables = r.store.link(r.operator)
	return r
}

// add adds a node. Its machine has a new disk.
func (r *rig) add(generators int) *rigNode {
	i := len(r.nodes)
	n := &rigNode{r: r, i: i, name: fmt.Sprintf("n%d@127.0.0.1", i), many: generators,
		config: filepath.Join(r.folder, fmt.Sprint("n", i, ".toml")), served: make([]atomic.Int64, len(rigGenerators))}
	r.nodes = append(r.nodes, n)
	n.move(nil)
	r.t.Cleanup(func() {
		n.end(syscall.SIGKILL)
		n.machine.stop()
	})
	return n
}

// move gives the node a new machine.
func (n *rigNode) move(of *machine) {
	m := newMachine(n.r.t, of, n.r.disk, filepath.Dir(n.r.clock))
	n.mu.Lock()
	before := n.machine
	n.machine = m
	n.mu.Unlock()
	if before != nil {
		before.stop()
	}
	n.life.Add(1)
	n.link, n.tables = n.r.store.link(m)
}

// door returns the address at which this process reaches a port of the node.
func (n *rigNode) door(port string) string {
	return storetest.NewProxy(n.r.t).Forward(nil, func() (net.Conn, error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.machine.dial("127.0.0.1:" + port)
	}).Addrs[0]
}

const distPort, httpPort = "4370", "8465"

// numbersTable returns the table [numbers] of a configuration, and those of its store.
func (r *rig) numbersTable(store, prefix string) string {
	return fmt.Sprintf("[numbers]\nprefix = %q\nhold = %d\ncount = %d\nwait = true\n%s",
		prefix, r.hold/time.Second, rigNumbers, store)
}

// configure writes the node's configuration.
func (n *rigNode) configure() {
	text := fmt.Sprintf("[node]\nlisten = \"127.0.0.1:%s\"\n[flake]\nworker_id = \"assigned\"\ntimestamp_path = %q\n",
		distPort, filepath.Join(n.r.disk, "timestamp"))
	for _, g := range rigGenerators[1:n.many] {
		text += fmt.Sprintf("[[generator]]\nname = %q\nformat = %q\n%s\n", g.name, g.format, g.settings)
	}
	text += fmt.Sprintf("[http]\nlisten = \"127.0.0.1:%s\"\n", httpPort) + n.r.numbersTable(n.tables, n.r.prefix)
	if n.settings != nil {
		text = n.settings(text)
	}
	writeFile(n.r.t, n.config, text)
}

// flake returns the command, to run on the node's machine.
func (n *rigNode) flake(args ...string) *exec.Cmd {
	n.configure()
	return n.r.flake(n.machine, nil, append(args, "-config", n.config)...)
}

// flake returns the command, to run on a machine, with variables of the environment.
func (r *rig) flake(m *machine, env []string, args ...string) *exec.Cmd {
	return m.command(slices.Concat([]string{"env", "-", "HOME=/none", "CLOCK_AHEAD=" + r.clock}, m.env, env,
		[]string{r.command}, args)...)
}

func (n *rigNode) start() {
	n.process = &process{t: n.r.t, cmd: n.flake("-noinput", "-setcookie", cookie, "-name", n.name)}
	n.copies = 0
	n.process.begin()
	n.up.Store(true)
}

// end ends the process, if it runs.
func (n *rigNode) end(s syscall.Signal) int {
	if n.process == nil {
		return 0
	}
	n.up.Store(false)
	n.process.cmd.Process.Signal(s)
	if !soon(n.hasEnded) {
		n.r.wrong("n%d does not end after %v:\n%s", n.i, s, tail(n.output()))
		n.process.cmd.Process.Kill()
		n.wait()
	}
	n.inspect(true)
	return n.process.cmd.ProcessState.ExitCode()
}

func (n *rigNode) hasEnded() bool {
	n.process.mu.Lock()
	defer n.process.mu.Unlock()
	return n.ended
}

// inspect reports lines of the log that blame a copy, unless there is one.
func (n *rigNode) inspect(copied bool) {
	if n.process == nil {
		return
	}
	text := n.output()
	if all := strings.Count(text, "another process has its token"); all > n.copies {
		if n.copies = all; !copied {
			n.r.wrong("n%d reports a copy of itself, but there is none:\n%s", n.i, tail(text))
		}
	}
	if strings.Contains(text, "panic: ") {
		n.r.wrong("n%d panicked:\n%s", n.i, tail(text))
	}
}

// tail returns the last lines of a log.
func tail(text string) string {
	lines := strings.SplitAfter(text, "\n")
	return strings.Join(lines[max(0, len(lines)-6):], "")
}

// wrong records what is wrong.
func (r *rig) wrong(format string, args ...any) {
	r.t.Helper()
	text := fmt.Sprintf(format, args...)
	r.t.Errorf("%s %s", time.Now().Format("15:04:05.000"), text)
}

// allow excuses ids of two nodes that repeat until now, or are received shortly after.
func (r *rig) allow(a, b *rigNode, from time.Time) {
	r.allowed = append(r.allowed, allowance{min(a.i, b.i), max(a.i, b.i), from, time.Now().Add(time.Second)})
}

func (r *rig) excused(a, b arrival) bool {
	for _, x := range r.allowed {
		if x.a == min(a.node, b.node) && x.b == max(a.node, b.node) &&
			min(a.at, b.at) >= x.from.UnixMicro() && max(a.at, b.at) <= x.to.UnixMicro() {
			return true
		}
	}
	return false
}

// soon waits until a condition holds, for at most two minutes, and reports whether it does.
func soon(done func() bool) bool {
	for end := time.Now().Add(2 * time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// serves reports whether all generators of a node have handed out ids since a time.
func (n *rigNode) serves(since time.Time) bool {
	for i := range n.many {
		if n.served[i].Load() < since.UnixMicro() {
			return false
		}
	}
	return true
}

// passes reports whether a log says that the node ended because of what passes without a change of the settings. A
// node that starts after the numbers were deleted refuses until another node has noticed.
func passes(log string) bool {
	return strings.Contains(log, "clock_running_backwards") || strings.Contains(log, "not known to continue those")
}

// settle waits until all nodes hand out ids again. A node that does not, gets a new disk.
func (r *rig) settle(after string) {
	since := time.Now()
	for _, n := range r.nodes[:rigNodes] {
		for range 2 {
			if soon(func() bool {
				if n.hasEnded() && passes(n.output()) {
					time.Sleep(200 * time.Millisecond) // as a service manager waits
					n.again(syscall.SIGKILL, nil)
				}
				return n.serves(since) || n.hasEnded()
			}) && !n.hasEnded() {
				break
			}
			r.wrong("after %q, n%d hands out no ids:\n%s", after, n.i, tail(n.output()))
			n.end(syscall.SIGKILL)
			n.wipe()
			n.start()
		}
	}
}

// caller takes ids from all generators of a node, at a steady rate, until stop is done.
func (n *rigNode) caller(stop context.Context, kind string, door client.Door, many func() int) {
	type source struct {
		take   func(ctx context.Context, n int) ([]lease, error)
		format *formats.Format
		page   *page
	}
	var all []source
	for _, g := range rigGenerators[:n.many] {
		all = append(all, source{taker(door, g.name, g.format), formats.KindOf(g.format).Format(nil),
			n.r.book.page(g.space, kind, n.i)})
	}
	for stop.Err() == nil {
		for i, s := range all {
			if !n.up.Load() {
				break
			}
			ctx, cancel := context.WithTimeout(stop, time.Second)
			life := int(n.life.Load())
			runs, err := s.take(ctx, many())
			cancel()
			at := time.Now()
			if after := int(n.life.Load()); after != life {
				life = -after // it is not known which disk the ids are from
			}
			if err == nil {
				n.served[i].Store(at.UnixMicro())
				err = s.page.add(s.format, life, at, runs)
			} else {
				time.Sleep(10 * time.Millisecond) // the node is down, paused, or has no number
			}
			if errors.Is(err, client.ErrNotAbove) {
				n.r.wrong("n%d: %v", n.i, err)
			}
		}
		time.Sleep(4 * time.Millisecond) // a caller at a steady rate
	}
}

// taker returns a function that takes ids through a door. Each call makes a new [client.IDs], because an IDs refuses
// repeated ids.
func taker(door client.Door, generator, format string) func(ctx context.Context, n int) ([]lease, error) {
	switch format {
	case "flake":
		return takerOf[flake.ID](door, generator)
	case "sno":
		return takerOf[sno.ID](door, generator)
	case "uuidv7":
		return takerOf[uuidv7.ID](door, generator)
	case "ulid":
		return takerOf[ulid.ID](door, generator)
	}
	return takerOf[snowflake.ID](door, generator)
}

func takerOf[ID client.Format](door client.Door, generator string) func(ctx context.Context, n int) ([]lease, error) {
	return func(ctx context.Context, n int) ([]lease, error) {
		ids := client.NewIDs[ID](door, generator)
		if n == 1 {
			id, err := ids.Next(ctx)
			if err != nil {
				return nil, err
			}
			return leased([]client.Run[ID]{{First: id, Count: 1}}, nil)
		}
		return leased(ids.Lease(ctx, n))
	}
}

// call adds nodes with the given numbers of generators, and calls them until stop is called.
func (r *rig) call(generators ...int) (stop func()) {
	var callers sync.WaitGroup
	ctx, cancel := context.WithCancel(r.t.Context())
	for _, many := range generators {
		r.add(many).call(ctx, &callers)
	}
	return func() {
		cancel()
		callers.Wait()
	}
}

// call starts three callers of a node: for single ids over HTTP, for some, and for many at a time over the
// distribution.
func (n *rigNode) call(ctx context.Context, wg *sync.WaitGroup) {
	web, err := client.NewHTTP("http://"+n.door(httpPort), client.HTTPOptions{})
	if err != nil {
		n.r.t.Fatal(err)
	}
	addr := n.door(distPort)
	for kind, many := range map[string]func() int{"http": func() int { return 1 },
		"some": func() int { return 1 + rand.IntN(50) }, "leases": func() int { return 1 + rand.IntN(20_000) }} {
		door := client.Door(web)
		if kind != "http" {
			node := client.NewNode(n.name, client.Dialer{Cookie: cookie, Addr: addr})
			n.r.t.Cleanup(func() { node.Close() })
			door = node
		}
		wg.Go(func() { n.caller(ctx, kind, door, many) })
	}
}

// TestFaults runs six nodes with one to eight generators each, with numbers from a real store, and causes
// faults, one after the other. No id may repeat, and each caller's ids from a node must ascend, except where a
// page says so. This command repeats one fault, and prints the ids:
//
//	go test -v -run TestFaults ./rel/flake -faults.only='key deleted' -faults.time=1m
func TestFaults(t *testing.T) {
	t.Parallel()
	seed := *faultsSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	r := newRig(t)
	x := rand.New(rand.NewPCG(seed, 0))
	many := []int{1, 2, 3, 5, 8, len(rigGenerators)}
	x.Shuffle(len(many), func(i, j int) { many[i], many[j] = many[j], many[i] })
	stop := r.call(append(many, 2)...)
	defer func() {
		stop()
		r.judge(seed)
	}()
	for _, n := range r.nodes[:rigNodes] {
		n.start()
	}
	r.settle("the start")
	only := regexp.MustCompile(*faultsOnly)
	var due []rigAction // each as often as its weight says
	for _, a := range r.actions() {
		if only.MatchString(a.name) {
			for range a.weight {
				due = append(due, a)
			}
		}
	}
	if len(due) == 0 {
		t.Fatalf("no fault matches %q", *faultsOnly)
	}
	for step, begin := uint64(1), time.Now(); time.Since(begin) < *faultsTime; step++ {
		if (step-1)%uint64(len(due)) == 0 {
			x.Shuffle(len(due), func(i, j int) { due[i], due[j] = due[j], due[i] })
		}
		a := due[(step-1)%uint64(len(due))]
		x := rand.New(rand.NewPCG(seed, step)) // so that a step does not depend on how the others went
		n := r.nodes[x.IntN(rigNodes)]
		now := cause{what: a.name, node: n.i, from: time.Now()}
		a.do(r, n, x)
		r.settle(a.name)
		for _, n := range r.nodes {
			n.inspect(a.copies)
		}
		now.to = time.Now()
		r.faults = append(r.faults, now)
		t.Log(now)
	}
}

// The rig finds repeated ids and counts them, here of two nodes with the same number by hand.
func TestFaultsFinds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	stop := r.call(len(rigGenerators), len(rigGenerators))
	for _, n := range r.nodes {
		n.settings = byHand
		n.start()
		n.said("  HTTP ")
	}
	for range 30 { // both nodes hand out ids in so many milliseconds that some are the same
		since := time.Now()
		if !soon(func() bool { return r.nodes[0].serves(since) && r.nodes[1].serves(since) }) {
			t.Fatal("the nodes hand out no ids")
		}
	}
	stop()
	text, wrong, err := r.book.report(func(_, _ arrival) bool { return false })
	if err != nil || len(wrong) != 1 || wrong[[2]int{0, 1}].ids == 0 {
		t.Errorf("%v, %v\n%s", err, wrong, text)
	}
}

// judge prints the ids and the faults, and fails the test if an id repeats or descends.
func (r *rig) judge(seed uint64) {
	text, wrong, err := r.book.report(r.excused)
	if err != nil {
		r.t.Error(err)
	}
	near := func(from, to int64) (text string) {
		for _, c := range r.faults {
			if c.to.Add(rigHold).UnixMicro() >= from && c.from.Add(-rigHold).UnixMicro() <= to {
				text += "\n\t" + c.String()
			}
		}
		return text
	}
	for pair, t := range wrong {
		r.t.Errorf("%d ids of n%d and n%d are twice, received from %s to %s, near:%s", t.ids, pair[0], pair[1],
			time.UnixMicro(t.first).Format("15:04:05.000"), time.UnixMicro(t.last).Format("15:04:05.000"),
			near(t.first, t.last))
	}
	for _, p := range r.book.pages {
		wrong := slices.DeleteFunc(p.back, func(b turn) bool { return p.space == "sno" && r.clocked(p.node, b.at) })
		if len(wrong) > 0 {
			b := wrong[0]
			r.t.Errorf("%s of n%d: %d times an id is not above the one before, first %x after %x, at %s, near:%s", p.space,
				p.node, len(wrong), b.is, b.last, time.UnixMicro(b.at).Format("15:04:05.000"), near(b.at, b.at))
		}
	}
	for _, a := range r.actions() {
		count, least, most, others := 0, time.Hour, time.Duration(0), time.Duration(0)
		for _, c := range r.faults {
			if c.what == a.name {
				its, all := r.outage(c)
				count, least, most, others = count+1, min(least, its), max(most, its), max(others, all)
			}
		}
		if count > 0 {
			text += fmt.Sprintf("%4d  %-62s its ids stop for %.1fs to %.1fs, others' for at most %.1fs\n",
				count, a.name, least.Seconds(), most.Seconds(), others.Seconds())
		}
	}
	r.t.Logf("-faults.seed=%d, %d faults\n%s", seed, len(r.faults), text)
}

// clocked reports whether a node's clock was set back shortly before a time, in µs. Then sno ids may descend.
func (r *rig) clocked(node int, at int64) bool {
	return slices.ContainsFunc(r.faults, func(c cause) bool {
		return c.node == node && strings.Contains(c.what, "clock") && c.from.UnixMicro() <= at &&
			at <= c.to.Add(rigHold).UnixMicro()
	})
}

// outage returns how long a fault stopped the ids of its node, and of any other node in the fleet.
func (r *rig) outage(c cause) (its, others time.Duration) {
	for _, p := range r.book.pages {
		switch gap := p.longest(c.from, c.to); {
		case p.node == c.node:
			its = max(its, gap)
		case p.node < rigNodes:
			others = max(others, gap)
		}
	}
	return its, others
}
