package dist

import (
	"fmt"

	"github.com/flake-go/flake/node/etf"
)

// MaxSpawned bounds the functions of one peer that run at a time. More wait their
// turn, for which they take room of MaxShared; if there is none, they are refused
// with system_limit.
const MaxSpawned = 64

// MaxArguments bounds the octets of the arguments of a function. They may come
// back, in the result or in the stack of an exception, and are then there several
// times over. More are refused with system_limit.
const MaxArguments = 1 << 20

// waitingSize is what a function takes that waits: its goroutine, and arguments
// of ownArguments as terms.
const waitingSize = 16 << 10

// Spawn is what a process does that a peer has spawned here. It gives the reason
// that the process exits with.
type Spawn func(module, function etf.Atom, args []etf.Term) (reason etf.Term)

// The flags of a SPAWN_REPLY.
const (
	spawnedLink    = 1
	spawnedMonitor = 2
)

// Go runs f on a goroutine of its own, when its turn comes; not if the connection
// has ended by then. It may outlive the connection.
func (c *Conn) Go(f func()) bool { return c.spawn(f, func() {}) }

// spawn is Go, and calls done at the end, whether f was called or not.
func (c *Conn) spawn(f, done func()) bool {
	waits := 0
	if c.functions.Add(1) > MaxSpawned {
		waits = waitingSize
	}
	if !c.proto.shared.take(waits) {
		c.functions.Add(-1)
		return false
	}
	c.proto.running.Go(func() {
		defer done()
		defer c.functions.Add(-1)
		select {
		case c.places <- struct{}{}:
			defer func() { <-c.places }()
		case <-c.ctx.Done():
		}
		c.proto.shared.give(waits)
		if c.ctx.Err() == nil { // else nobody wants the result
			c.guard(f)
		}
	})
	return true
}

// guard turns a fault of ours in f into a line in the log.
func (c *Conn) guard(f func()) {
	defer func() {
		if fault := recover(); fault != nil {
			c.survive(fault)
		}
	}()
	f()
}

// A process that a peer has spawned is a goroutine: nobody can send to it, but
// its end is told to who linked or monitored it in the request.

// spawnRequest is a SPAWN_REQUEST taken apart. All but the arguments are octets
// that stay when the frame is gone.
type spawnRequest struct {
	ref, from, pid   []byte
	module, function etf.Atom
	args             []etf.Term
	flags            int64
}

func (c *Conn) recvSpawnRequest(m *control) error {
	ref, from := m.args[0], m.args[1]
	refuse := func(why string) {
		c.sendControl(opSpawnReply, ref, from, etf.AppendInt(nil, 0), c.atom(why))
	}
	if len(m.message) > MaxArguments {
		refuse("system_limit")
		return fmt.Errorf("spawn with arguments of %d octets, want at most %d", len(m.message), MaxArguments)
	}
	taken, err := c.weigh(m.message, ownArguments)
	if err != nil {
		refuse("system_limit")
		return err
	}
	q, err := c.decodeSpawn(m)
	if err != nil {
		c.proto.shared.give(taken)
		refuse("badarg")
		return err
	}
	replied := make(chan struct{}) // the end is told after the beginning
	runs := c.spawn(func() {
		<-replied
		c.run(q)
	}, func() { c.proto.shared.give(taken) })
	if runs {
		c.sendControl(opSpawnReply, ref, from, etf.AppendInt(nil, q.flags), q.pid)
	} else {
		c.proto.shared.give(taken)
		refuse("system_limit")
	}
	close(replied)
	return nil
}

func (c *Conn) decodeSpawn(m *control) (q spawnRequest, err error) {
	r := etf.NewReader(m.args[3])
	arity := r.Tuple()
	q.module, q.function = etf.Atom(r.Atom()), etf.Atom(r.Atom())
	wanted := r.Int()
	if err := r.Finish(); err != nil {
		return q, err
	}
	args, err := etf.Decode(m.message)
	if err != nil {
		return q, err
	}
	list, ok := etf.Elements(args)
	if q.args = list; !ok || arity != 3 || int64(len(list)) != wanted {
		return q, fmt.Errorf("spawn of %s:%s/%d with %d arguments", q.module, q.function, wanted, len(q.args))
	}
	options, err := etf.Decode(m.args[4])
	if err != nil {
		return q, err
	}
	list, _ = etf.Elements(options)
	for _, o := range list {
		if t, ok := o.(etf.Tuple); ok && len(t) > 0 {
			o = t[0] // {monitor, Options}
		}
		switch o {
		case etf.Atom("link"):
			q.flags |= spawnedLink
		case etf.Atom("monitor"):
			q.flags |= spawnedMonitor
		}
	}
	q.ref = append([]byte(nil), m.args[0]...)
	q.from = append([]byte(nil), m.args[1]...)
	q.pid = c.spawnedPid()
	return q, nil
}

// run is the life of a spawned process.
func (c *Conn) run(q spawnRequest) {
	reason, err := etf.Append(nil, c.exitReason(q), c.caps)
	if err != nil {
		reason = c.atom("badarg") // a result that the peer cannot read
	}
	if q.flags&spawnedMonitor != 0 {
		c.sendControl(opMonitorPExit, q.pid, q.from, q.ref, reason)
	}
	if q.flags&spawnedLink != 0 {
		c.sendControl(opExit, q.pid, q.from, reason)
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

// spawnedPid makes a pid that no process of Ergo's has: its serial is not 0. To
// peers without V4_NC an ID has 15 bits, and a serial 13.
func (c *Conn) spawnedPid() []byte {
	const idBits, serials = 15, 1<<13 - 1
	n := c.proto.spawned.Add(1)
	id, serial := n&(1<<idBits-1), 1+n>>idBits%serials
	b, _ := etf.Append(nil, etf.NewPid(etf.Atom(c.proto.Node), id, serial, c.proto.Creation), c.caps)
	return b
}
