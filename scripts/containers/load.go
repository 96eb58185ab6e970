package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/node/dist"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
	"github.com/flake-go/flake/node/wire"
)

const (
	nodeName = "flake@127.0.0.1"
	cookie   = "flake"

	bound = 10 * time.Second // the time limit of a call
	every = 100 * time.Millisecond
)

// crowd is a set of callers. Each is a node that calls regularly.
type crowd struct {
	ctx                            context.Context
	n                              *node
	callers                        sync.WaitGroup
	connected, refused, lost, done atomic.Int64
	slowest                        atomic.Int64
}

// add connects a caller, which calls until ctx is done.
func (c *crowd) add() {
	ctx, cancel := context.WithTimeout(c.ctx, bound)
	defer cancel()
	conn, err := client.DialAddr(ctx, c.n.addr, nodeName, cookie)
	if err == nil {
		_, err = conn.Call(ctx, "flake", etf.Atom("get"))
	}
	if err != nil {
		c.refused.Add(1)
		return
	}
	c.connected.Add(1)
	c.callers.Go(func() {
		defer conn.Close()
		for c.ctx.Err() == nil {
			start := time.Now()
			ctx, cancel := context.WithTimeout(c.ctx, bound)
			_, err := conn.Call(ctx, "flake", etf.Atom("get"))
			cancel()
			if c.ctx.Err() != nil {
				return
			}
			if err != nil {
				c.lost.Add(1)
				return
			}
			c.done.Add(1)
			if took := int64(time.Since(start)); took > c.slowest.Load() {
				c.slowest.Store(took)
			}
			time.Sleep(every)
		}
	})
}

func (c *crowd) String() string {
	return fmt.Sprintf("%d callers, %d refused, %d lost, %d calls, the slowest %v",
		c.connected.Load(), c.refused.Load(),
		c.lost.Load(), c.done.Load(), time.Duration(c.slowest.Load()).Round(time.Millisecond))
}

// callers connects more and more callers, until some are refused.
func callers(n *node) string {
	ctx, cancel := context.WithCancel(context.Background())
	c := &crowd{ctx: ctx, n: n}
	const step = 50
	for c.connected.Load() < int64(*most) && c.refused.Load()+c.lost.Load() < step && n.lives() {
		var adding sync.WaitGroup
		for range step {
			adding.Go(c.add)
		}
		adding.Wait()
	}
	select { // let all callers call for a while
	case <-time.After(5 * time.Second):
	case <-n.ended:
	}
	said := c.String()
	cancel()
	c.callers.Wait()
	return said
}

// attacked runs a few callers at the same time as attackers that take memory.
func attacked(n *node) string {
	const honest = 32
	ctx, cancel := context.WithCancel(context.Background())
	c := &crowd{ctx: ctx, n: n}
	for range honest {
		c.add()
	}
	hostile, end := context.WithTimeout(ctx, *attack)
	var running sync.WaitGroup
	var names atomic.Int64
	for _, a := range []struct {
		conns int
		run   func(h *attacker)
	}{
		{500, func(h *attacker) { h.unfinished(64<<10-4, 60<<10) }},
		{500, (*attacker).monitors},
		{20, func(h *attacker) { h.unfinished(dist.MaxFrame, dist.MaxFrame-1) }},
		{20, (*attacker).unread},
		{500, func(*attacker) {}},
	} {
		for range a.conns {
			running.Go(func() {
				for ; hostile.Err() == nil; pause(hostile, time.Second) {
					if h := newAttacker(hostile, n, fmt.Sprintf("hostile%d@127.0.0.1", names.Add(1))); h != nil {
						a.run(h)
						io.Copy(io.Discard, h)
						h.Close()
					}
				}
			})
		}
	}
	running.Wait()
	end()
	said := c.String()
	cancel()
	c.callers.Wait()
	return said
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// attacker is a hostile node.
type attacker struct {
	net.Conn
	self etf.Pid
	ctx  context.Context
}

func newAttacker(ctx context.Context, n *node, name string) *attacker {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", n.addr)
	if err != nil {
		return nil
	}
	c.SetDeadline(time.Now().Add(bound))
	if _, err := handshake.Start(c, nodeName, handshake.Options{Node: name, Creation: 1, Cookie: cookie}); err != nil {
		c.Close()
		return nil
	}
	c.SetDeadline(time.Time{})
	context.AfterFunc(ctx, func() { c.Close() })
	return &attacker{c, etf.NewPid(etf.Atom(name), 1, 0, 1), ctx}
}

func (h *attacker) unfinished(announced, sent int) {
	h.Write(binary.BigEndian.AppendUint32(nil, uint32(announced)))
	h.Write(make([]byte, sent))
}

func (h *attacker) monitors() {
	for i := range uint32(1000) {
		h.send(etf.Tuple{int64(wire.OpMonitorP), h.self, etf.Atom("flake"), etf.NewRef(h.self.Node(), 1, i, 2, 3)})
	}
}

// unread asks for large answers and does not read them.
func (h *attacker) unread() {
	for i := int64(0); h.ctx.Err() == nil; i++ {
		h.SetWriteDeadline(time.Now().Add(time.Second))
		request := etf.Tuple{etf.Atom("get_many"), int64(1 << 16), int64(2)}
		err := h.send(etf.Tuple{int64(wire.OpRegSend), h.self, etf.Atom(""), etf.Atom("flake")},
			etf.Tuple{etf.Atom("$gen_call"), etf.Tuple{h.self, i}, request})
		if err != nil {
			return
		}
		pause(h.ctx, time.Millisecond)
	}
}

func (h *attacker) send(control etf.Term, payload ...etf.Term) error {
	b, err := wire.Append(nil, etf.AllCaps, control, payload...)
	if err == nil {
		_, err = h.Write(b)
	}
	return err
}
