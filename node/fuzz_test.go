package node

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/idserver/iderl"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
)

var (
	fuzzOperations = flag.Int64("fuzz.operations", 10_000, "minimum number of operations of TestFuzz")
	fuzzTime       = flag.Duration("fuzz.time", 0, "minimum duration of TestFuzz")
	fuzzSeed       = flag.Uint64("fuzz.seed", 0, "seed of TestFuzz; 0 means a different one each time")
	fuzzPeers      = flag.Int("fuzz.peers", 8, "number of concurrent peers of TestFuzz")
)

// fuzzer runs several peers that perform random operations on a node, and checks the
// results:
//
//   - each call is answered once, and a server answers the calls of a process in order;
//   - each monitor and each link ends with one message, or is removed;
//   - a spawn request is answered once, and the end of its process is reported once;
//   - no id is sent twice, and the ids of a process ascend;
//   - no frame is unexpected, and only peers end their connections;
//   - another peer is served at the same time;
//   - when all peers have left, the node holds no memory for them.
//
// Servers are killed at random. Requests to a server that ends may be lost, as in Erlang.
type fuzzer struct {
	t    *testing.T
	node *Node
	seed uint64
	ids  ledger

	operations, refused atomic.Int64
	numbers             atomic.Uint32 // the last unique number
	stop                chan struct{}

	mu       sync.Mutex
	sessions map[string]*session // sessions to which answers may be sent, by name
	passed   map[string]*passed  // calls that one peer forwarded for another, by tag
	done     map[string]int      // operations by name
	fault    atomic.Bool
}

// TestFuzz runs the fuzzer. scripts/fuzz runs it for longer.
func TestFuzz(t *testing.T) {
	before := runtime.NumGoroutine()
	g, err := flake.NewGenerator(1, flake.Options{})
	if err != nil {
		t.Fatal(err)
	}
	server := &idserver.Server{IDs: formats.Flake(g)}
	f := &fuzzer{
		t: t, seed: *fuzzSeed, stop: make(chan struct{}),
		sessions: make(map[string]*session), passed: make(map[string]*passed), done: make(map[string]int),
		node: start(t, Options{
			Functions: iderl.Functions(server, nil, io.Discard),
			Supervisors: []Supervisor{{Name: "flake_sup", Children: []Child{
				{Name: "flake", Handler: &iderl.Handler{Server: server, Log: quiet}},
				{Name: "persistent_timer", Handler: iderl.Timer{IDs: server.IDs}},
			}}},
		}),
	}
	for f.seed == 0 {
		f.seed = rand.Uint64()
	}
	if *fuzzTime > 0 {
		defer time.AfterFunc(*fuzzTime, f.end).Stop()
	}
	f.run()
	f.ids.check(t)
	f.nothingLeft()
	if !t.Failed() {
		f.killAll()
	}
	f.node.Stop()
	awaitGoroutines(t, before)
	t.Logf("seed %d: %d operations, %d answers system_limit, %d ids", f.seed, f.operations.Load(),
		f.refused.Load(), f.ids.total)
	for _, name := range slices.Sorted(maps.Keys(f.done)) {
		t.Logf("%8d %s", f.done[name], name)
	}
}

func (f *fuzzer) run() {
	served := make(chan struct{})
	go func() {
		defer close(served)
		f.honest()
	}()
	var players sync.WaitGroup
	for i := range *fuzzPeers {
		random := rand.New(rand.NewPCG(f.seed, uint64(i)))
		players.Go(func() { f.play(fmt.Sprintf("fuzz%d@127.0.0.1", i), random) })
	}
	players.Wait()
	f.end()
	<-served
}

// end stops the peers.
func (f *fuzzer) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.stop:
	default:
		close(f.stop)
	}
}

func (f *fuzzer) over() bool {
	select {
	case <-f.stop:
		return true
	default:
		return *fuzzTime == 0 && f.operations.Load() >= *fuzzOperations
	}
}

// fail reports the first fault, which ends the test.
func (f *fuzzer) fail(format string, args ...any) {
	if !f.fault.Swap(true) {
		f.t.Errorf("seed %d, operation %d: %s", f.seed, f.operations.Load(), fmt.Sprintf(format, args...))
	}
	f.end()
}

func (f *fuzzer) number() uint32 { return f.numbers.Add(1) }

// servers holds pids by name. The pid of a missing server is "".
type servers map[etf.Atom]etf.Pid

func (f *fuzzer) servers() servers {
	all := make(servers)
	for _, name := range []etf.Atom{"flake", "flake_sup", "persistent_timer", "kernel_sup", "net_kernel", "rex"} {
		all[name] = pidOf(f.node, string(name))
	}
	return all
}

// alive reports whether one of the servers has the pid.
func (s servers) alive(pid etf.Pid) bool {
	for _, p := range s {
		if p == pid {
			return pid != ""
		}
	}
	return false
}

// honest is a peer that calls like gen_server:call, one call at a time.
func (f *fuzzer) honest() {
	c, err := f.dial("honest@127.0.0.1")
	if err != nil {
		f.fail("honest: %v", err)
		return
	}
	defer c.Close()
	p := &peer{conn: c, pid: etf.NewPid("honest@127.0.0.1", 9, 0, 77)}
	var last idRun
	for tag := int64(1); ; tag++ {
		select {
		case <-f.stop:
			return
		default:
		}
		c.SetDeadline(time.Now().Add(patience))
		run, err := p.honestCall(tag)
		if err != nil {
			f.fail("honest: call %d: %v", tag, err)
			return
		}
		if run.from != 0 {
			if run.from <= last.to {
				f.fail("honest: call %d: an id that is not above the last", tag)
			}
			last = run
			f.ids.add(run)
		}
	}
}

// honestCall returns the id, or the zero id if the server was missing.
func (p *peer) honestCall(tag int64) (idRun, error) {
	ref := etf.NewRef("honest@127.0.0.1", 77, uint32(tag), 2, 3)
	var out []byte
	out = appendFrame(out, monitor(p.pid, etf.Atom("flake"), ref))
	out = appendFrame(out, regSend(p.pid, "flake"),
		etf.Tuple{etf.Atom("$gen_call"), etf.Tuple{p.pid, tag}, etf.Atom("get")})
	if _, err := p.conn.Write(out); err != nil {
		return idRun{}, err
	}
	for {
		b, err := frameOf(p.conn)
		if err != nil {
			return idRun{}, err
		}
		r := etf.NewReader(b[2:])
		control := string(etf.FormatRaw(nil, r.Raw(), 1000))
		if strings.HasPrefix(control, fmt.Sprintf("{21,flake,%s,%s,", p.pid, ref)) {
			return idRun{}, nil
		}
		if r.Version(); r.Tuple() != 2 || r.Int() != tag {
			continue // the answer to an earlier call
		}
		if _, err := p.conn.Write(appendFrame(nil, etf.Tuple{int64(20), p.pid, etf.Atom("flake"), ref})); err != nil {
			return idRun{}, err
		}
		runs, err := readIDs(askedGet, 0, r.Rest())
		if err != nil {
			return idRun{}, err
		}
		return runs[0], nil
	}
}

func (f *fuzzer) dial(name string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := new(net.Dialer).DialContext(ctx, "tcp", f.node.Addr().String())
	if err != nil {
		return nil, err
	}
	c.SetDeadline(time.Now().Add(patience))
	o := handshake.Options{Node: name, Creation: 77, Cookie: cookie}
	if _, err := handshake.Start(c, f.node.Name(), o); err != nil {
		c.Close()
		return nil, fmt.Errorf("%s: cannot connect: %w", name, err)
	}
	c.SetDeadline(time.Time{})
	return c, nil
}

// nothingLeft checks that the node holds no connections and no memory for the peers.
func (f *fuzzer) nothingLeft() {
	n := f.node
	await(f.t, "no node is connected", func() bool { return n.Traffic().Connections == 0 })
	await(f.t, "no shared memory is held", func() bool { return n.proto.Held() == 0 })
	n.gate.mu.Lock()
	defer n.gate.mu.Unlock()
	if left := len(n.gate.connected.All); left != 0 {
		f.t.Errorf("%d connections are still counted", left)
	}
}

// killAll kills each server, which must be restarted.
func (f *fuzzer) killAll() {
	p := dial(f.t, f.node, "last@127.0.0.1")
	for name, pid := range f.servers() {
		if name == "flake_sup" || name == "kernel_sup" {
			continue
		}
		p.send(etf.Tuple{int64(8), p.pid, pid, etf.Atom("kill")})
		await(f.t, string(name)+" runs again", func() bool {
			now := pidOf(f.node, string(name))
			return now != "" && now != pid
		})
	}
	p.get()
}
