package dist

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/wire"
)

// MaxSpawned bounds the functions of one peer that run at a time. More wait their
// turn. All take room of MaxShared; without room they are refused with system_limit.
const MaxSpawned = 64

// MaxArguments bounds the bytes of a function's arguments. They may come back, in the
// result or in an exception's stack, and then exist several times over. More are
// refused with system_limit.
const MaxArguments = 1 << 20

// functionSize is what a function takes besides its arguments: a goroutine.
const functionSize = 8 << 10

// Spawn is what a process spawned by a peer does here. It returns the process's exit
// reason.
type Spawn func(module, function etf.Atom, args []etf.Term) (reason etf.Term)

// The flags of a SPAWN_REPLY.
const (
	spawnedLink    = 1
	spawnedMonitor = 2
)

// spawn runs f on its own goroutine, and calls done at the end, whether f ran or not.
// It takes size bytes for that; at the end it gives back size and taken.
func (c *Conn) spawn(f, done func(), size, taken int) bool {
	if !c.share.take(size) {
		c.share.give(taken)
		return false
	}
	taken += size
	c.proto.Go(func() {
		defer done()
		select {
		case c.places <- struct{}{}:
			defer func() { <-c.places }()
		case <-c.ctx.Done():
		}
		if c.ctx.Err() != nil || !c.share.pin(taken) { // nobody wants the result
			c.share.give(taken)
			return
		}
		defer c.share.unpin(taken)
		c.guard(f)
	})
	return true
}

// guard logs a fault of ours in f.
func (c *Conn) guard(f func()) {
	defer func() {
		if fault := recover(); fault != nil {
			c.survive(fault)
		}
	}()
	f()
}

// A process spawned by a peer is a goroutine: nobody can send to it, but whoever
// linked to it or monitored it in the request is told its end.

// spawnRequest is a decoded SPAWN_REQUEST. All but the arguments are bytes that
// outlive the frame.
type spawnRequest struct {
	ref, from, pid   []byte
	module, function etf.Atom
	args             []etf.Term
	flags            int64
}

func (c *Conn) recvSpawnRequest(m *wire.Message) error {
	ref, from := m.Args[0], m.Args[1]
	refuse := func(why string) {
		c.sendControl(wire.OpSpawnReply, ref, from, etf.AppendInt(nil, 0), c.atom(why))
	}
	if len(m.Payload) > MaxArguments {
		refuse("system_limit")
		return fmt.Errorf("spawn with arguments of %d bytes, want at most %d", len(m.Payload), MaxArguments)
	}
	taken, err := c.weigh(m.Payload, 0)
	if err != nil {
		refuse("system_limit")
		return err
	}
	q, why, err := c.decodeSpawn(m)
	if err != nil {
		c.share.give(taken)
		refuse(why)
		return err
	}
	if !c.begin(q, taken, func() { c.sendControl(wire.OpSpawnReply, ref, from, etf.AppendInt(nil, q.flags), q.pid) }) {
		refuse("system_limit")
	}
	return nil
}

// begin runs q and calls began before its end is told. It gives back what was taken
// for the arguments.
func (c *Conn) begin(q spawnRequest, taken int, began func()) bool {
	told := make(chan struct{})
	runs := c.spawn(func() {
		<-told
		c.run(q)
	}, func() {}, functionSize, taken)
	if runs {
		began()
	}
	close(told)
	return runs
}

// SpawnFor spawns a function for a process of the peer, linked to it or not, as
// net_kernel does for nodes that send no spawn requests. It calls began with the new
// pid, or returns why it refuses, in OTP's word.
func (m *Message) SpawnFor(owner []byte, link bool, module, function etf.Atom, arguments, options []byte, began func(pid []byte)) (refused string) {
	c := m.conn
	if string(nodeOf(owner)) != c.peer.Name {
		return "notsup"
	}
	if _, ok := spawnFlags(options); !ok {
		return "badarg"
	}
	if len(arguments) > MaxArguments {
		return "system_limit"
	}
	taken, err := c.weigh(arguments, 0)
	if err != nil {
		return "system_limit"
	}
	args, why, err := decodeArguments(arguments)
	if err != nil {
		c.share.give(taken)
		return why
	}
	q := spawnRequest{from: bytes.Clone(owner), pid: c.spawnedPid(), module: module, function: function, args: args}
	if link {
		q.flags = spawnedLink
	}
	if !c.begin(q, taken, func() {
		if link {
			c.sendControl(wire.OpLink, q.pid, q.from)
		}
		began(q.pid)
	}) {
		return "system_limit"
	}
	return ""
}

// decodeSpawn also returns why it refuses, in OTP's word.
func (c *Conn) decodeSpawn(m *wire.Message) (q spawnRequest, why string, err error) {
	r := etf.NewReader(m.Args[3])
	r.Tuple()
	q.module, q.function = etf.Atom(r.Atom()), etf.Atom(r.Atom())
	wanted := r.Int()
	if err := r.Finish(); err != nil {
		return q, "badarg", err
	}
	if q.args, why, err = decodeArguments(m.Payload); err != nil {
		return q, why, err
	}
	if int64(len(q.args)) != wanted {
		return q, "badarg", fmt.Errorf("spawn of %s:%s/%d with %d arguments", q.module, q.function, wanted, len(q.args))
	}
	var ok bool
	if q.flags, ok = spawnFlags(m.Args[4]); !ok {
		return q, "badopt", fmt.Errorf("spawn with options %s", etf.FormatRaw(nil, m.Args[4], maxReason))
	}
	if c.proto.Refuse != nil {
		if why := c.proto.Refuse(q.module, q.function, q.args); why != "" {
			return q, string(why), fmt.Errorf("spawn of %s:%s/%d", q.module, q.function, wanted)
		}
	}
	q.ref = bytes.Clone(m.Args[0])
	q.from = bytes.Clone(m.Args[1])
	q.pid = c.spawnedPid()
	return q, "", nil
}

// decodeArguments decodes a list of arguments. Arguments beyond the limits of
// etf.Decode are too many, not malformed.
func decodeArguments(b []byte) (args []etf.Term, why string, err error) {
	r := etf.NewReader(b)
	r.Raw()
	if err := r.Finish(); err != nil {
		return nil, "badarg", err
	}
	term, err := etf.Decode(b)
	if err != nil {
		return nil, "system_limit", err
	}
	args, ok := etf.Elements(term)
	if !ok {
		return nil, "badarg", errNoArguments
	}
	return args, "", nil
}

var errNoArguments = errors.New("the arguments are not a list")

// run is the life of a spawned process.
func (c *Conn) run(q spawnRequest) {
	reason, err := etf.Append(nil, c.exitReason(q), c.caps)
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

func (c *Conn) exitReason(q spawnRequest) (reason etf.Term) {
	defer func() {
		if fault := recover(); fault != nil {
			c.survive(fault)
			reason = etf.Atom("killed")
		}
	}()
	return c.proto.Spawn(q.module, q.function, q.args)
}

// spawnedPid makes a pid that no other process here has: its serial is not 0. For
// peers without V4_NC an ID has 15 bits and a serial 13.
func (c *Conn) spawnedPid() []byte {
	const idBits, serials = 15, 1<<13 - 1
	n := c.proto.spawned.Add(1)
	id, serial := n&(1<<idBits-1), 1+n>>idBits%serials
	b, _ := etf.Append(nil, etf.NewPid(etf.Atom(c.proto.Node), id, serial, c.proto.Creation), c.caps)
	return b
}
