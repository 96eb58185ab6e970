package dist

import (
	"fmt"
	"sync"

	"github.com/flake-go/flake/node/etf"
)

// MaxSpawned bounds the spawned processes of one peer that run at a time. While
// they are as many, the peer's next one waits, and with it all that it sends.
const MaxSpawned = 64

// Spawn is what a process does that a peer has spawned here. It gives the reason
// that the process exits with.
type Spawn func(module, function etf.Atom, args []etf.Term) (reason etf.Term)

// The flags of a SPAWN_REPLY.
const (
	spawnedLink    = 1
	spawnedMonitor = 2
)

// spawned are the processes that run for the peer. They are goroutines: nobody
// can send to them, but their end is told to who linked or monitored them in
// the request.
type spawned struct {
	places  chan struct{}
	running sync.WaitGroup
}

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
	taken, err := c.weigh(m.message)
	if err != nil {
		c.sendControl(opSpawnReply, ref, from, etf.AppendInt(nil, 0), c.atom("system_limit"))
		return err
	}
	q, err := c.decodeSpawn(m)
	if err != nil {
		c.proto.shared.give(taken)
		c.sendControl(opSpawnReply, ref, from, etf.AppendInt(nil, 0), c.atom("badarg"))
		return err
	}
	c.sendControl(opSpawnReply, ref, from, etf.AppendInt(nil, q.flags), q.pid)
	c.spawned.places <- struct{}{}
	c.spawned.running.Go(func() {
		defer func() {
			c.proto.shared.give(taken)
			<-c.spawned.places
		}()
		c.run(q)
	})
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

// spawnedPid makes a pid that no process of Ergo's has: its serial is not 0.
func (c *Conn) spawnedPid() []byte {
	const serial = 1
	pid := etf.NewPid(etf.Atom(c.proto.Node), c.proto.spawned.Add(1), serial, c.proto.Creation)
	b, _ := etf.Append(nil, pid, c.caps)
	return b
}
