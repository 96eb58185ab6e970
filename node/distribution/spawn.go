package distribution

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/wire"
)

// maxSpawned bounds how many functions run for one peer at a time; more functions wait. All of them
// count against MaxShared; a function that has no room there is refused with system_limit.
const maxSpawned = 64

// maxArguments bounds the bytes of a function's arguments, because the result or the stack of
// an exception may contain copies of them. Longer arguments are refused with system_limit.
const maxArguments = 1 << 20

// functionSize is the memory of a function's goroutine, or of a queue and its goroutine.
const functionSize = 8 << 10

// The flags of a SPAWN_REPLY.
const (
	spawnedLink    = 1
	spawnedMonitor = 2
)

// spawn calls started, and then f on a new goroutine unless the connection has ended by then. It
// takes functionSize bytes from the pool until the goroutine ends. If there is no room for them, it
// calls neither function and returns false. taken is the number of bytes that the caller has taken
// from the pool; they are returned when the goroutine ends, or immediately if spawn returns false.
func (c *Conn) spawn(taken int, started, f func()) bool {
	if !c.memory.take(functionSize) {
		c.memory.give(taken)
		return false
	}
	taken += functionSize
	started()
	c.proto.Go(func() {
		select {
		case c.functions <- struct{}{}:
			defer func() { <-c.functions }()
		case <-c.ctx.Done():
		}
		if c.ctx.Err() != nil || !c.memory.pin(taken) { // the result cannot be sent
			c.memory.give(taken)
			return
		}
		defer c.memory.unpin(taken)
		c.guard(func() error { f(); return nil })
	})
	return true
}

// A process spawned by a peer is a goroutine. It cannot receive messages, but its end is
// reported if the request asks for a link or a monitor.

// spawnRequest is a decoded SPAWN_REQUEST. It does not refer to the frame.
type spawnRequest struct {
	ref, from, pid   []byte
	module, function etf.Atom
	args             []etf.Term
	flags            int64
	taken            int // bytes taken from the pool for args
}

func (c *Conn) recvSpawnRequest(m *wire.Message) error {
	ref, from := m.Args[0], m.Args[1]
	q, why, err := c.decodeSpawn(m)
	started := func() { c.sendControl(wire.OpSpawnReply, ref, from, etf.AppendInt(nil, q.flags), q.pid) }
	if err != nil {
		c.memory.give(q.taken)
	} else if !c.spawn(q.taken, started, func() { c.run(q) }) {
		why = "system_limit"
	}
	if why != "" {
		c.sendControl(wire.OpSpawnReply, ref, from, etf.AppendInt(nil, 0), c.atom(why))
	}
	return err
}

// SpawnFor spawns a function for owner, a process of the peer, as net_kernel does for nodes that do
// not send spawn requests. If link is true, the new process is linked to owner. SpawnFor calls
// started with the new pid, or returns OTP's error.
func (m *Message) SpawnFor(owner []byte, link bool, module, function etf.Atom, arguments, options []byte,
	started func(pid []byte)) (refused string) {
	c := m.conn
	if string(nodeOf(owner)) != c.peer.Name {
		return "notsup"
	}
	if _, ok := spawnFlags(options); !ok {
		return "badarg"
	}
	args, taken, refused, err := c.decodeArguments(arguments)
	if err != nil {
		return refused
	}
	q := spawnRequest{from: bytes.Clone(owner), pid: c.spawnedPid(), module: module, function: function, args: args}
	if link {
		q.flags = spawnedLink
	}
	linked := func() {
		if link {
			c.sendControl(wire.OpLink, q.pid, q.from)
		}
		started(q.pid)
	}
	if !c.spawn(taken, linked, func() { c.run(q) }) {
		return "system_limit"
	}
	return ""
}

// decodeSpawn decodes a SPAWN_REQUEST. why is OTP's error; the caller must return q.taken to the
// pool in any case.
func (c *Conn) decodeSpawn(m *wire.Message) (q spawnRequest, why string, err error) {
	if q.args, q.taken, why, err = c.decodeArguments(m.Payload); err != nil {
		return q, why, err
	}
	r := etf.NewReader(m.Args[3])
	r.Tuple()
	q.module, q.function = etf.Atom(r.Atom()), etf.Atom(r.Atom())
	arity := r.Int()
	if err := r.Finish(); err != nil {
		return q, "badarg", err
	}
	if int64(len(q.args)) != arity {
		return q, "badarg", fmt.Errorf("spawn of %s:%s/%d with %d arguments", q.module, q.function, arity, len(q.args))
	}
	var ok bool
	if q.flags, ok = spawnFlags(m.Args[4]); !ok {
		return q, "badopt", fmt.Errorf("spawn with unknown options %s", text(m.Args[4]))
	}
	if why := c.proto.Refuse(q.module, q.function, q.args); why != "" {
		return q, string(why), fmt.Errorf("spawn of %s:%s/%d", q.module, q.function, arity)
	}
	q.ref, q.from = bytes.Clone(m.Args[0]), bytes.Clone(m.Args[1])
	q.pid = c.spawnedPid()
	return q, "", nil
}

// decodeArguments decodes a list of arguments, and takes room for their terms, which the caller must
// return to the pool unless decodeArguments fails. why is OTP's error: badarg for malformed
// arguments, system_limit for arguments beyond a limit.
func (c *Conn) decodeArguments(b []byte) (args []etf.Term, taken int, why string, err error) {
	if len(b) > maxArguments {
		return nil, 0, "system_limit", fmt.Errorf("spawn with arguments of %d bytes, at most %d allowed",
			len(b), maxArguments)
	}
	r := etf.NewReader(b)
	r.Raw()
	if err := r.Finish(); err != nil {
		return nil, 0, "badarg", err
	}
	if taken, err = c.weigh(b, 0); err != nil {
		return nil, 0, "system_limit", err
	}
	term, err := etf.Decode(b)
	if err != nil {
		c.memory.give(taken)
		return nil, 0, "system_limit", err
	}
	args, ok := etf.Elements(term)
	if !ok {
		c.memory.give(taken)
		return nil, 0, "badarg", errors.New("arguments are not a list")
	}
	return args, taken, "", nil
}

// run runs a spawned process and reports its end.
func (c *Conn) run(q spawnRequest) {
	var exit etf.Term = etf.Atom("killed") // after a fault
	c.guard(func() error {
		exit = c.proto.Spawn(q.module, q.function, q.args)
		return nil
	})
	reason, err := etf.Append(nil, exit, c.caps)
	if err != nil {
		reason = c.atom("badarg") // the peer cannot read the result
	}
	if q.flags&spawnedMonitor != 0 {
		c.sendControl(wire.OpMonitorPExit, q.pid, q.from, q.ref, reason)
	}
	if q.flags&spawnedLink != 0 {
		c.sendControl(wire.OpExit, q.pid, q.from, reason)
	}
	c.out.poke()
}

// spawnedPid returns a pid that no registered process has, because its serial is not 0.
// For peers without V4_NC, an ID has 15 bits and a serial 13.
func (c *Conn) spawnedPid() []byte {
	const idBits, serials = 15, 1<<13 - 1
	n := c.proto.spawned.Add(1)
	id, serial := n&(1<<idBits-1), 1+n>>idBits%serials
	return c.encode(uint64(serial)<<32 | uint64(id))
}

// spawnFlags returns the flags for the options link and monitor. Other OTP options have no
// effect; ok is false if OTP would not accept the options.
func spawnFlags(options []byte) (flags int64, ok bool) {
	term, _ := etf.Decode(options)
	list, ok := etf.Elements(term)
	if !ok {
		return 0, false
	}
	for _, o := range list {
		pair, _ := o.(etf.Tuple)
		switch {
		case o == etf.Atom("link"):
			flags |= spawnedLink
		case o == etf.Atom("monitor"):
			flags |= spawnedMonitor
		case len(pair) != 2 || !fitsOption(pair[0], pair[1]):
			return 0, false
		case pair[0] == etf.Atom("monitor"):
			flags |= spawnedMonitor
		}
	}
	return flags, true
}

// fitsOption reports whether OTP has a spawn option with this name and value.
func fitsOption(name, value etf.Term) bool {
	number, isNumber := value.(int64)
	word, _ := value.(etf.Atom)
	switch name {
	case etf.Atom("priority"):
		return slices.Contains([]etf.Atom{"low", "normal", "high", "max"}, word)
	case etf.Atom("message_queue_data"):
		return word == "off_heap" || word == "on_heap"
	case etf.Atom("async_dist"):
		return word == "true" || word == "false"
	case etf.Atom("min_heap_size"), etf.Atom("min_bin_vheap_size"), etf.Atom("fullsweep_after"), etf.Atom("scheduler"):
		return isNumber && number >= 0
	case etf.Atom("max_heap_size"):
		m, _ := value.(etf.Map)
		return isNumber && number >= 0 || slices.ContainsFunc(m, func(p etf.Pair) bool { return p.Key == etf.Atom("size") })
	case etf.Atom("monitor"):
		list, ok := etf.Elements(value)
		return ok && !slices.ContainsFunc(list, func(o etf.Term) bool {
			t, _ := o.(etf.Tuple)
			return len(t) != 2 || t[0] != etf.Atom("alias") && t[0] != etf.Atom("tag")
		})
	case etf.Atom("reply"), etf.Atom("reply_tag"):
		return true // these take effect on the caller's node
	}
	return false
}
