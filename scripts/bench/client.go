package main

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
	"github.com/flake-go/flake/node/wire"
)

const (
	timeout  = 10 * time.Second // how long to wait for a silent server
	maxFrame = 64 << 10
	maxBare  = 1024 // goroutines that call on one connection
)

// A bareClient is a connection on which goroutines call for ids concurrently, with as little work
// as Go allows: one goroutine writes all pending calls together, already encoded, and another
// passes each reply, undecoded, to the first waiting caller.
type bareClient struct {
	conn    net.Conn
	calls   chan chan error // from callers
	waiting chan chan error // from callers whose call has been written
}

var bareClients atomic.Uint32 // made so far

// dialBare connects to a server. Each call is the frame that a C node sends for
// gen_server:call(flake, get):
//
//	{6, Pid, '', flake}    {'$gen_call', {Pid, Ref}, get}
func dialBare(s *server) (*bareClient, error) {
	conn, err := net.DialTimeout("tcp", s.addr, timeout)
	if err != nil {
		return nil, err
	}
	conn.SetDeadline(time.Now().Add(timeout))
	node := fmt.Sprintf("bare%d@127.0.0.1", bareClients.Add(1))
	self, ref := etf.NewPid(etf.Atom(node), 1, 0, 1), etf.NewRef(etf.Atom(node), 1, 1, 2, 3)
	call, err := wire.Append(nil, etf.AllCaps,
		etf.Tuple{int64(wire.OpRegSend), self, etf.Atom(""), etf.Atom("flake")},
		etf.Tuple{etf.Atom("$gen_call"), etf.Tuple{self, ref}, etf.Atom("get")})
	if err == nil {
		_, err = handshake.Start(conn, s.node, handshake.Options{Node: node, Creation: 1, Cookie: cookie})
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("%s: %w", s.node, err)
	}
	conn.SetDeadline(time.Time{})
	c := &bareClient{conn, make(chan chan error, maxBare), make(chan chan error, maxBare)}
	go c.write(call)
	go c.read()
	return c, nil
}

// call makes a call and waits for its reply.
func (c *bareClient) call() error {
	done := make(chan error, 1)
	c.calls <- done
	return <-done
}

// close ends the connection. No call may be in progress.
func (c *bareClient) close() error {
	close(c.calls)
	return c.conn.Close()
}

func (c *bareClient) write(call []byte) {
	defer close(c.waiting)
	var frames []byte
	for done := range c.calls {
		frames = append(frames[:0], call...)
		c.waiting <- done
		for range len(c.calls) {
			c.waiting <- <-c.calls
			frames = append(frames, call...)
		}
		c.conn.Write(frames) // read reports any error
	}
}

func (c *bareClient) read() {
	r := bufio.NewReaderSize(c.conn, 64<<10)
	for {
		frame, err := wire.Read(r, maxFrame)
		if err == nil && len(frame) == 0 { // a tick
			continue
		}
		done, ok := <-c.waiting
		if !ok {
			return
		}
		done <- err
	}
}

// goClients are callers that share one connection of package client. A call gets one id, or a lease.
var goClients = []struct {
	callers, ids int
	target       target
}{
	{1, 1, target{}}, {64, 1, atLeast(1.5)}, {1000, 1, atLeast(1.2)}, {4, 65536, atLeast(0.99)},
}

// goClientRates compares package client with goroutines that call the echo with a bareClient, and
// leases with the format's ceiling.
func goClientRates(w *world, p plan) (rows []row, err error) {
	servers, err := w.all()
	if err != nil {
		return nil, err
	}
	s := servers[ours]
	node := client.NewNode(s.node, client.Dialer{Cookie: cookie, Addr: s.addr})
	defer node.Close()
	ids := client.NewIDs[flake.ID](node, "flake")
	bare, err := dialBare(servers[floor])
	if err != nil {
		return nil, err
	}
	defer bare.close()
	rates, err := inTurn(p.rounds, len(goClients), 2, func(i, side int) (float64, error) {
		c := goClients[i]
		call := func() error { _, err := ids.Next(w.ctx); return err }
		switch {
		case side == theirs && c.ids > 1:
			return ceiling, nil
		case side == theirs:
			call = bare.call
		case c.ids > 1:
			call = func() error { _, err := ids.Lease(w.ctx, c.ids); return err }
		}
		var calls atomic.Int64
		begin := time.Now()
		err := together(c.callers, func() bool { return time.Since(begin) < p.client },
			func() error { calls.Add(1); return call() })
		return float64(int(calls.Load())*c.ids) / time.Since(begin).Seconds(), err
	})
	if err != nil {
		return nil, err
	}
	for i, c := range goClients {
		what, than := fmt.Sprintf("Next, %d callers", c.callers), "a bare echo"
		if c.ids > 1 {
			what, than = fmt.Sprintf("Lease of %d, %d callers", c.ids, c.callers), "the format's ceiling"
		}
		rows = append(rows, compare("client in Go, one connection", what, "ids/s", than,
			rates[i][theirs], rates[i][ours]).aim(c.target))
	}
	return rows, nil
}

// together makes callers call as long as more returns true.
func together(callers int, more func() bool, call func() error) error {
	errs := make([]error, callers)
	var running sync.WaitGroup
	for i := range callers {
		running.Go(func() {
			for errs[i] == nil && more() {
				errs[i] = call()
			}
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// startup holds the measurements of a server that was just started.
type startup struct {
	first  time.Duration // from spawning to the first id
	memory float64       // after the calls
}

// begin measures how fast both servers start, and how much memory they use.
func begin(w *world, p plan) ([]row, error) {
	idle, err := inTurn(p.starts, 1, 2, func(_, side int) (startup, error) { return w.startup(side, p, 0) })
	if err != nil {
		return nil, err
	}
	used, err := inTurn(1, 1, 2, func(_, side int) (startup, error) { return w.startup(side, p, p.calls) })
	if err != nil {
		return nil, err
	}
	const section = "start and memory"
	memory := func(s startup) float64 { return s.memory / 1e6 }
	return []row{
		idle[0].row(section, "spawned to first id", "ms",
			atMost(0.1), func(s startup) float64 { return s.first.Seconds() * 1e3 }),
		idle[0].row(section, "resident, idle", "MB", atMost(0.5), memory),
		used[0].row(section, "resident, after "+short(float64(p.calls))+" calls", "MB", atMost(0.5), memory),
	}, nil
}

// startup starts a server, lets it idle, calls it and stops it.
func (w *world) startup(side int, p plan, calls int) (b startup, err error) {
	w = w.scope()
	defer w.close()
	s := w.otp()
	if side == ours {
		s = w.flake()
	}
	if b.first, err = w.start(s); err != nil {
		return b, err
	}
	time.Sleep(p.idle)
	if calls > 0 {
		c, err := dialBare(s)
		if err != nil {
			return b, err
		}
		defer c.close()
		var made atomic.Int64
		if err := together(64, func() bool { return made.Add(1) <= int64(calls) }, c.call); err != nil {
			return b, err
		}
	}
	b.memory, err = resident(s.pid())
	return b, err
}
