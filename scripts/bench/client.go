package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
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
	patience = 10 * time.Second     // how long to wait for a silent server
	again    = 2 * time.Millisecond // the pause between two calls that first makes
	maxFrame = 64 << 10
	maxBare  = 1024 // goroutines that call on one connection
)

// A bareClient is a connection on which goroutines call for ids concurrently, with as little work
// as Go needs: one goroutine writes encoded calls, all pending calls at a time, and another passes
// each reply, undecoded, to the first waiting caller.
type bareClient struct {
	conn    net.Conn
	calls   chan chan error // from callers
	waiting chan chan error // from callers whose call has been written
}

var bareClients atomic.Uint32

// dialBare connects to the node named peer at addr. Each call is the frame that a C node sends for
// gen_server:call(flake, get):
//
//	{6, Pid, '', flake}    {'$gen_call', {Pid, Ref}, get}
func dialBare(addr, peer string) (*bareClient, error) {
	conn, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return nil, err
	}
	conn.SetDeadline(time.Now().Add(patience))
	node := fmt.Sprintf("bare%d@127.0.0.1", bareClients.Add(1))
	self, ref := etf.NewPid(etf.Atom(node), 1, 0, 1), etf.NewRef(etf.Atom(node), 1, 1, 2, 3)
	call, err := wire.Append(nil, etf.AllCaps,
		etf.Tuple{int64(wire.OpRegSend), self, etf.Atom(""), etf.Atom("flake")},
		etf.Tuple{etf.Atom("$gen_call"), etf.Tuple{self, ref}, etf.Atom("get")})
	if err == nil {
		_, err = handshake.Start(conn, peer, handshake.Options{Node: node, Creation: 1, Cookie: cookie})
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("%s: %w", peer, err)
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

// first connects to a node and calls for an id until one arrives, because a starting node accepts
// connections before its gen_servers answer.
func first(ctx context.Context, addr, peer string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := client.DialAddr(ctx, addr, peer, cookie)
	if err != nil {
		return err
	}
	defer conn.Close()
	for {
		one, cancel := context.WithTimeout(ctx, again)
		reply, err := conn.Call(one, "flake", etf.Atom("get"))
		cancel()
		switch answer, ok := reply.(etf.Tuple); {
		case err == nil && (!ok || answer[0] != etf.Atom("ok")):
			return fmt.Errorf("not an id: %s", etf.Format(nil, reply))
		case !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil:
			return err
		}
	}
}

// A goClient is a way to get ids from package client.
type goClient struct {
	what    string
	callers int
	echo    bool // whether the way is compared with the echo
	target  target
	// take returns a caller's function, which returns how many ids it took.
	take func(*client.IDs[flake.ID], *client.Leased[flake.ID]) func(context.Context) (int, error)
}

var goClients = []goClient{
	{"Next", 1, true, target{}, one},
	{"Next, 64 callers", 64, true, atLeast(0.85), one},
	{"Next, 1000 callers", 1000, true, target{}, one},
	{"Lease of 65,536, 4 callers", 4, false, oursAtLeast(0.99 * ceiling), lease(1 << 16)},
	{"Leased.Next", 1, false, target{}, next},
	{"Leased.Next, 8 callers", 8, false, target{}, next},
}

func one(ids *client.IDs[flake.ID], _ *client.Leased[flake.ID]) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) {
		_, err := ids.Next(ctx)
		return 1, err
	}
}

func lease(n int) func(*client.IDs[flake.ID], *client.Leased[flake.ID]) func(context.Context) (int, error) {
	return func(ids *client.IDs[flake.ID], _ *client.Leased[flake.ID]) func(context.Context) (int, error) {
		return func(ctx context.Context) (int, error) {
			_, err := ids.Lease(ctx, n)
			return n, err
		}
	}
}

func next(_ *client.IDs[flake.ID], leased *client.Leased[flake.ID]) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) {
		const many = 1000 // so that the cost of counting does not matter
		for range many {
			if _, err := leased.Next(ctx); err != nil {
				return 0, err
			}
		}
		return many, nil
	}
}

// goClientRates measures package client over one connection and, for comparison, goroutines that
// call the echo with a bareClient.
func goClientRates(w *world, p plan) ([]row, error) {
	servers, err := w.all()
	if err != nil {
		return nil, err
	}
	s, echo := servers[ours], servers[floor]
	node := client.NewNode(s.node, client.Dialer{Cookie: cookie, Addr: s.addr})
	defer node.Close()
	ids := client.NewIDs[flake.ID](node, "flake")
	leased, err := ids.Leased(client.LeaseOptions{Size: 100_000})
	if err != nil {
		return nil, err
	}
	defer leased.Close()

	shared, err := dialBare(echo.addr, echo.node)
	if err != nil {
		return nil, err
	}
	defer shared.close()
	bare := func(context.Context) (int, error) { return 1, shared.call() }
	rates := newVersus[float64](len(goClients), 2)
	for round := range p.rounds {
		for i, c := range goClients {
			err := rates[i].add(round, func(side int) (float64, error) {
				switch {
				case side == ours:
					return c.run(w.ctx, c.take(ids, leased), p.client)
				case c.echo:
					return c.run(w.ctx, bare, p.client)
				}
				return 0, nil
			})
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.what, err)
			}
		}
	}
	var rows []row
	for i, c := range goClients {
		const section, unit = "client in Go, one connection", "ids/s"
		r := compare(section, c.what, unit, "a bare echo", rates[i][theirs], rates[i][ours])
		if !c.echo {
			r = row{
				Section: section, What: c.what, Unit: unit,
				Ours: r.Ours, Low: slices.Min(rates[i][ours]), High: slices.Max(rates[i][ours]),
			}
		}
		rows = append(rows, r.aim(c.target))
	}
	return rows, nil
}

// run returns the callers' ids per second.
func (c goClient) run(ctx context.Context, take func(context.Context) (int, error), d time.Duration) (float64, error) {
	var (
		stop    atomic.Bool
		total   atomic.Int64
		errs    = make([]error, c.callers)
		callers sync.WaitGroup
	)
	start := time.Now()
	time.AfterFunc(d, func() { stop.Store(true) })
	for i := range c.callers {
		callers.Go(func() {
			for !stop.Load() && errs[i] == nil {
				n, err := take(ctx)
				total.Add(int64(n))
				errs[i] = err
			}
		})
	}
	callers.Wait()
	return float64(total.Load()) / time.Since(start).Seconds(), errors.Join(errs...)
}

// birth holds the measurements of a server that was just started.
type birth struct {
	first time.Duration // from spawning to the first id
	idle  float64       // memory before any calls
	used  float64       // memory after many calls
}

// begin measures how fast both servers start, and how much memory they use.
func begin(w *world, p plan) ([]row, error) {
	births := make(versus[birth], 2)
	for round := range p.starts {
		err := births.add(round, func(side int) (birth, error) {
			calls := 0
			if round == p.starts-1 {
				calls = p.calls
			}
			return w.birth(side, p, calls)
		})
		if err != nil {
			return nil, err
		}
	}
	last := versus[birth]{births[theirs][p.starts-1:], births[ours][p.starts-1:]}
	return []row{
		births.row("start and memory", "spawned to first id", "ms",
			atMost(0.1), func(b birth) float64 { return b.first.Seconds() * 1e3 }),
		births.row("start and memory", "resident, idle", "MB",
			atMost(0.5), func(b birth) float64 { return b.idle / 1e6 }),
		last.row("start and memory", "resident, after "+short(float64(p.calls))+" calls", "MB",
			atMost(0.5), func(b birth) float64 { return b.used / 1e6 }),
	}, nil
}

// birth starts a server, lets it idle, calls it and stops it.
func (w *world) birth(side int, p plan, calls int) (b birth, err error) {
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
	if b.idle, err = resident(s.pid()); err != nil || calls == 0 {
		return b, err
	}
	c, err := dialBare(s.addr, s.node)
	if err != nil {
		return b, err
	}
	defer c.close()
	const callers = 64
	errs := make([]error, callers)
	var running sync.WaitGroup
	for i := range callers {
		running.Go(func() {
			for n := i; n < calls && errs[i] == nil; n += callers {
				errs[i] = c.call()
			}
		})
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		return b, err
	}
	b.used, err = resident(s.pid())
	return b, err
}
