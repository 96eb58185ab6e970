package distribution

import (
	"fmt"
	"math/big"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/wire"
)

// A refused spawn is answered with OTP's error.
func TestSpawnRefused(t *testing.T) {
	big := new(big.Int).Lsh(big.NewInt(1), 8*etf.MaxIntegerBytes)
	one, none := external(etf.List{int64(1)}), etf.List{}
	f := func(module etf.Atom, arity etf.Term) etf.Tuple { return etf.Tuple{module, etf.Atom("f"), arity} }
	for _, test := range []struct {
		name      string
		function  etf.Tuple
		arguments []byte
		options   etf.Term
		want      etf.Atom
	}{
		{"too big", f("m", int64(1)), external(etf.List{big}), none, "system_limit"},
		{"not a term", f("m", int64(1)), []byte{200, 1, 2}, none, "badarg"},
		{"not a list", f("m", int64(0)), external(etf.Atom("x")), none, "badarg"},
		{"arity an atom", f("m", etf.Atom("x")), external(none), none, "badarg"},
		{"no function", etf.Tuple{etf.Atom("m"), int64(1)}, one, none, "badarg"},
		{"more than a function", append(f("m", int64(1)), int64(1)), one, none, "badarg"},
		{"another arity", f("m", int64(1)), external(etf.List{int64(1), int64(2)}), none, "badarg"},
		{"a negative arity", f("m", int64(-1)), one, none, "badarg"},
		{"another arity, options not a list", f("m", int64(2)), one, etf.Atom("link"), "badarg"},
		{"long, options not a list", f("m", int64(1)), external(etf.List{make([]byte, maxArguments)}), etf.Atom("link"),
			"system_limit"},
		{"not an option", f("m", int64(1)), one, etf.List{etf.Atom("bad")}, "badopt"},
		{"not an option, long", f("m", int64(1)), external(etf.List{make([]byte, 2*ownArguments)}),
			etf.List{etf.Atom("bad")}, "badopt"},
		{"options not a list", f("m", int64(1)), one, etf.Atom("link"), "badopt"},
		{"a bad value", f("m", int64(1)), one, etf.List{etf.Tuple{etf.Atom("priority"), etf.Atom("x")}}, "badopt"},
		{"refused", f("not", int64(1)), one, none, "undef"},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, flags, func(t *testing.T, r *rig) {
				r.proto.Refuse = func(module, function etf.Atom, args []etf.Term) etf.Atom {
					if module == "not" && function == "f" && len(args) == 1 {
						return "undef"
					}
					return ""
				}
				request := etf.Tuple{
					number(wire.OpSpawnRequest), ref5, theirs, theirs, test.function, test.options,
				}
				r.send(frame(request, test.arguments))
				r.want(frame(etf.Tuple{number(wire.OpSpawnReply), ref5, theirs, int64(0), test.want}))
			})
		})
	}
}

// A spawn is refused if there is room for its arguments, but not for its goroutine.
func TestSpawnWithoutRoom(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		arguments := external(etf.List{int64(1)})
		others := everything - weight(arguments, 0) - functionSize + 1
		r.proto.pool.take(others)
		r.send(frame(etf.Tuple{
			number(wire.OpSpawnRequest), ref5, theirs, theirs, etf.Tuple{etf.Atom("m"), etf.Atom("f"), int64(1)}, etf.List{},
		}, arguments))
		r.want(frame(etf.Tuple{number(wire.OpSpawnReply), ref5, theirs, int64(0), etf.Atom("system_limit")}))
		r.proto.pool.give(others)
	})
}

// The start of a spawned function is reported to the caller, and then its end if the caller
// monitors it or is linked to it.
func TestSpawned(t *testing.T) {
	args := etf.List{int64(1), etf.Atom("x")}
	for name, test := range map[string]struct {
		options  etf.List
		function etf.Atom
		flags    int64
		reason   etf.Term
	}{
		"alone":     {etf.List{}, "f", 0, nil},
		"linked":    {etf.List{etf.Atom("link")}, "f", spawnedLink, args},
		"monitored": {etf.List{etf.Atom("monitor")}, "f", spawnedMonitor, args},
		"both": {etf.List{etf.Atom("link"), etf.Tuple{etf.Atom("monitor"), etf.List{}}}, "f",
			spawnedLink | spawnedMonitor, args},
		"a fault": {etf.List{etf.Atom("monitor")}, "fault", spawnedMonitor, etf.Atom("killed")},
		"no term": {etf.List{etf.Atom("monitor")}, "noterm", spawnedMonitor, etf.Atom("badarg")},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, flags, func(t *testing.T, r *rig) {
				r.proto.Refuse = func(etf.Atom, etf.Atom, []etf.Term) etf.Atom { return "" }
				gate := make(chan struct{})
				r.proto.Spawn = func(_, function etf.Atom, args []etf.Term) etf.Term {
					<-gate
					switch function {
					case "fault":
						panic("fault")
					case "noterm":
						return make(chan int)
					}
					return etf.List(args)
				}
				function := etf.Tuple{etf.Atom("m"), test.function, int64(len(args))}
				r.send(frame(etf.Tuple{number(wire.OpSpawnRequest), ref5, theirs, theirs, function, test.options}, external(args)))
				// The bytes of the request are overwritten before the function ends.
				r.send(frame(etf.Tuple{number(wire.OpSend), etf.Atom(""), ours}, external(make([]byte, idleBuffer/2))))
				synctest.Wait()
				close(gate)
				got := r.received()
				var reply wire.Message
				if len(got) == 0 || reply.Decode(got[0][5:]) != nil || reply.N != 4 || !etf.Tag(reply.Args[3][0]).IsPid() {
					t.Fatalf("got %s", show(got))
				}
				pid := etf.Pid(reply.Args[3])
				want := [][]byte{frame(etf.Tuple{number(wire.OpSpawnReply), ref5, theirs, test.flags, pid})}
				if test.flags&spawnedMonitor != 0 {
					want = append(want, frame(etf.Tuple{number(wire.OpMonitorPExit), pid, theirs, ref5, test.reason}))
				}
				if test.flags&spawnedLink != 0 {
					want = append(want, frame(etf.Tuple{number(wire.OpExit), pid, theirs, test.reason}))
				}
				if show(got) != show(want) {
					t.Errorf("got %s\nwant %s", show(got), show(want))
				}
				if fault := strings.Contains(r.log.take(), "fault in the node"); fault != (name == "a fault") {
					t.Errorf("a fault is logged: %t", fault)
				}
			})
		})
	}
}

// SpawnFor either returns OTP's error, or sends the link and then reports the pid before the
// function runs.
func TestSpawnFor(t *testing.T) {
	list := func(octets int) []byte { return external(etf.List{make([]byte, octets)}) }
	none, long, longest := external(etf.List{}), list(2*ownArguments), list(maxArguments-len(list(0)))
	for name, test := range map[string]struct {
		owner              etf.Pid
		arguments, options []byte
		taken              int // bytes taken from the pool beforehand
		want               string
	}{
		"ordinary":      {theirs, none, none, 0, "began\nruns 0\n"},
		"at the limit":  {theirs, longest, none, 0, "began\nruns 1\n"},
		"too much":      {theirs, append(longest, 0), none, 0, "system_limit"},
		"another owner": {etf.NewPid("third@h", 9, 0, 1), none, none, 0, "notsup"},
		"bad options":   {theirs, none, external(etf.Atom("x")), 0, "badarg"},
		"not a list":    {theirs, external(make([]byte, 2*ownArguments)), none, 0, "badarg"},
		"no room":       {theirs, long, none, everything - weight(long, 0) + 1, "system_limit"},
		"little room":   {theirs, longest, none, everything - functionSize, "system_limit"},
		"not enough":    {theirs, long, none, everything - weight(long, 0), "system_limit"},
	} {
		for _, link := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, link %t", name, link), func(t *testing.T) {
				bubble(t, flags, func(t *testing.T, r *rig) {
					var log journal
					r.proto.Spawn = func(module, function etf.Atom, args []etf.Term) etf.Term {
						log.note("runs %d", len(args))
						return etf.List{module, function}
					}
					var pid []byte
					began := func(p []byte) {
						pid = p
						time.Sleep(time.Nanosecond) // lets all other goroutines run
						log.note("began")
					}
					r.local.flake.receive = func(c *Message) error {
						owner := []byte(test.owner)
						defer clear(owner)
						why := c.SpawnFor(owner, link, "m", "f", test.arguments, test.options, began)
						log.Write([]byte(why))
						return nil
					}
					r.proto.pool.take(test.taken)
					r.send(frame(etf.Tuple{number(wire.OpSend), etf.Atom(""), ours}, old))
					time.Sleep(time.Second)
					if got := log.take(); got != test.want {
						t.Errorf("got %q, want %q", got, test.want)
					}
					if link && pid != nil {
						r.want(frame(etf.Tuple{number(wire.OpLink), etf.Pid(pid), theirs}),
							frame(etf.Tuple{number(wire.OpExit), etf.Pid(pid), theirs, etf.List{etf.Atom("m"), etf.Atom("f")}}))
					}
					r.want()
					r.proto.pool.give(test.taken)
				})
			})
		}
	}
}

// The pids of spawned processes are small enough for old peers, differ from those of registered
// processes, and are not soon reused.
func TestSpawnedPids(t *testing.T) {
	c := quiet()
	seen := make(map[string]bool)
	for _, first := range []uint32{0, 1<<15 - 5, 1<<28 - 1<<15 - 30, 1<<32 - 1<<16} {
		c.proto.spawned.Store(first)
		for range 20 {
			b := c.spawnedPid()
			_, p, _ := etf.PidParts(b)
			if id, serial := uint32(p), p>>32; id >= 1<<15 || serial >= 1<<13 || serial == 0 || seen[string(b)] {
				t.Fatalf("pid %v, seen before: %t", etf.Pid(b), seen[string(b)])
			}
			seen[string(b)] = true
		}
	}
}

// OTP's options are accepted, but only link and monitor have an effect.
func TestSpawnOptions(t *testing.T) {
	atom := func(a etf.Atom) etf.Term { return a }
	pair := func(name etf.Atom, value etf.Term) etf.Term { return etf.Tuple{name, value} }
	size := func(key etf.Atom) etf.Term { return etf.Map{{Key: key, Value: int64(1)}} }
	bad := int64(-1)
	for _, test := range []struct {
		option etf.Term
		want   int64
	}{
		{atom("link"), spawnedLink},
		{atom("monitor"), spawnedMonitor},
		{pair("monitor", etf.List{pair("alias", atom("explicit_unalias")), pair("tag", int64(1))}), spawnedMonitor},
		{pair("monitor", etf.List{pair("x", int64(1))}), bad},
		{pair("monitor", etf.List{etf.Tuple{atom("alias"), int64(1), int64(1)}}), bad},
		{pair("monitor", etf.List{atom("alias")}), bad},
		{pair("monitor", atom("alias")), bad},
		{pair("priority", atom("high")), 0},
		{pair("priority", atom("x")), bad},
		{pair("priority", int64(1)), bad},
		{pair("message_queue_data", atom("on_heap")), 0},
		{pair("message_queue_data", atom("off_heap")), 0},
		{pair("message_queue_data", atom("x")), bad},
		{pair("async_dist", atom("true")), 0},
		{pair("async_dist", atom("false")), 0},
		{pair("async_dist", atom("x")), bad},
		{pair("min_heap_size", int64(0)), 0},
		{pair("min_bin_vheap_size", int64(1)), 0},
		{pair("fullsweep_after", int64(-1)), bad},
		{pair("scheduler", atom("x")), bad},
		{pair("max_heap_size", int64(0)), 0},
		{pair("max_heap_size", int64(-1)), bad},
		{pair("max_heap_size", atom("x")), bad},
		{pair("max_heap_size", size("size")), 0},
		{pair("max_heap_size", size("x")), bad},
		{pair("reply", atom("x")), 0},
		{pair("reply_tag", atom("x")), 0},
		{pair("x", atom("x")), bad},
		{etf.Tuple{atom("priority"), atom("high"), atom("x")}, bad},
		{atom("x"), bad},
	} {
		flags, ok := spawnFlags(external(etf.List{test.option}))
		if !ok {
			flags = bad
		}
		if flags != test.want {
			t.Errorf("%s: %d, want %d", etf.Format(nil, test.option), flags, test.want)
		}
	}
}

// maxSpawned functions run at a time; others wait, or are refused if there is no room.
func TestMaxSpawned(t *testing.T) {
	const functions = maxSpawned + 3
	bubble(t, flags, func(t *testing.T, r *rig) {
		r.proto.pool.take(MaxShared - functions*functionSize)
		for round := range 2 {
			gate := make(chan struct{})
			var ran, started atomic.Int32
			for i := range functions + 3 {
				if runs := r.conn.aside(func(*Message) { started.Add(1); <-gate; ran.Add(1) }); runs != (i < functions) {
					t.Errorf("round %d: function %d is accepted: %t", round, i, runs)
				}
			}
			if synctest.Wait(); started.Load() != maxSpawned {
				t.Errorf("round %d: %d functions run at a time, want maxSpawned", round, started.Load())
			}
			request := etf.Tuple{
				number(wire.OpSpawnRequest), ref5, theirs, theirs, etf.Tuple{etf.Atom("m"), etf.Atom("f"), int64(0)}, etf.List{},
			}
			r.send(frame(request, external(etf.List{})))
			r.want(frame(etf.Tuple{number(wire.OpSpawnReply), ref5, theirs, int64(0), etf.Atom("system_limit")}))
			close(gate)
			r.proto.Wait()
			if n := ran.Load(); n != functions {
				t.Errorf("round %d: %d functions ran, want %d", round, n, functions)
			}
		}
		r.proto.pool.give(MaxShared - functions*functionSize)
	})
}

// Functions that are still waiting when the connection ends do not run, and release their memory.
func TestSpawnEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := connect(t, flags)
		gate := make(chan struct{})
		for range maxSpawned {
			r.conn.aside(func(*Message) { <-gate })
		}
		synctest.Wait()
		if !r.conn.aside(func(*Message) { t.Error("a function ran after its connection ended") }) {
			t.Error("the last function is refused")
		}
		r.close()
		close(gate)
		r.proto.Wait()
		if held := r.proto.pool.held.Load(); held != 0 {
			t.Errorf("%d bytes are still held", held)
		}
	})
}

// A function that runs when its connection is ended to make room counts against the pool until it
// ends.
func TestSpawnOutlives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := connect(t, flags)
		pool, gate := &r.proto.pool, make(chan struct{})
		r.conn.aside(func(*Message) { <-gate })
		synctest.Wait()
		function := int(pool.held.Load())
		if !r.conn.memory.take(smallMemory) {
			t.Fatal("the pool has no room")
		}
		others := everything - int(pool.held.Load())
		pool.take(others)
		little := newMemory(pool)
		if !little.take(1) || r.alive() {
			t.Error("the connection is not ended to make room")
		}
		if held := int(pool.held.Load()); held != others+1+function || function < functionSize {
			t.Errorf("%d bytes are held, want %d for the function", held-others-1, function)
		}
		close(gate)
		r.proto.Wait()
		little.give(1)
		pool.give(others)
		pool.nothing(t)
	})
}

// A function passed to Later holds the memory of its message's terms until it ends. Without room,
// it is refused.
func TestLaterHoldsMessage(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		gate := make(chan struct{})
		runs := false
		r.local.flake.receive = func(c *Message) error {
			c.Later(func(m *Message) {
				if runs = m.Grow(1); runs {
					<-gate
				}
			})
			return nil
		}
		to := etf.Tuple{number(wire.OpRegSend), theirs, etf.Atom(""), etf.Atom("flake")}
		pool := &r.proto.pool
		for _, size := range []int{ownArguments - 10, 2 * ownArguments, 2 * ownMessage} {
			message := external(make([]byte, size))
			r.send(frame(to, message))
			synctest.Wait()
			if got, want := int(pool.held.Load()), functionSize+weight(message, 0); got != want || !runs {
				t.Errorf("%d bytes are held for a message of %d, want %d", got, len(message), want)
			}
			gate <- struct{}{}
			synctest.Wait()
			if got := pool.held.Load(); got != 0 {
				t.Errorf("%d bytes are still held", got)
			}
		}
		pool.take(everything)
		r.send(frame(to, external(make([]byte, 2*ownArguments))))
		if synctest.Wait(); runs {
			t.Error("the function runs without room")
		}
		message := external(make([]byte, 2*ownArguments))
		left := functionSize + weight(message, 0) - 1
		pool.give(left)
		r.send(frame(to, message))
		if synctest.Wait(); runs || int(pool.held.Load()) != everything-left {
			t.Errorf("the function runs: %t; %d bytes are held", runs, pool.held.Load())
		}
		runs = true
		pool.take(left - functionSize) // now there is room for the goroutine alone
		r.send(frame(to, external(etf.String(make([]byte, ownMessage/2)))))
		if synctest.Wait(); runs || int(pool.held.Load()) != everything-functionSize {
			t.Errorf("the function runs: %t; %d bytes are held", runs, pool.held.Load())
		}
		close(gate)
		pool.give(everything - functionSize)
	})
}
