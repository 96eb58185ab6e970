package client

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/snowflake"
	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/wire"
)

// played is a node that the test plays, over a connection that writes nothing until the test reads.
type played struct {
	t       *testing.T
	node    *Node // of the caller
	conn    *Conn // of the caller
	peer    net.Conn
	frames  *bufio.Reader
	monitor etf.Ref // the latest
}

func play(t *testing.T) *played {
	c, peer := piped(t, 0)
	p := &played{t: t, node: NewNode(name, Dialer{}), conn: c, peer: peer, frames: bufio.NewReader(peer)}
	p.node.latest = &dialing{done: make(chan struct{}), conn: c}
	close(p.node.latest.done)
	return p
}

// got is what a call of Next returned.
type got struct {
	id  snowflake.ID
	err error
}

// next calls Next in a goroutine.
func (p *played) next(ctx context.Context, generator string) chan got {
	result := make(chan got, 1)
	go func() {
		id, err := NewIDs[snowflake.ID](p.node, generator).Next(ctx)
		result <- got{id, err}
	}()
	synctest.Wait()
	return result
}

// waiting returns callers that call while the frame of the first is being written. The node has not read
// any, and will read {x,get} first.
func (p *played) waiting(n int) (first chan got, others []chan got) {
	first = p.next(p.t.Context(), "x")
	for range n {
		others = append(others, p.next(p.t.Context(), "x"))
	}
	return first, others
}

// expect reads the next calls, and returns their tags.
func (p *played) expect(want ...string) (tags []uint64) {
	p.t.Helper()
	for len(tags) < len(want) {
		frame, err := wire.Read(p.frames, maxAnswer)
		if err != nil {
			p.t.Fatal(err)
		}
		var m wire.Message
		if len(frame) == 0 {
			continue
		}
		if err := m.Decode(frame[1:]); err != nil {
			p.t.Fatal(err)
		}
		if m.Op == wire.OpMonitorP {
			p.monitor = etf.Ref(slices.Clone(m.Args[2]))
			continue
		}
		r := etf.NewReader(m.Payload)
		r.Tuple()
		r.Atom()
		r.Tuple()
		r.Raw()
		tag := r.Uint64()
		if call := "{" + string(etf.FormatRaw(nil, m.Args[2], 99)) + "," + string(etf.FormatRaw(nil, r.Raw(), 99)) +
			"}"; call != want[len(tags)] {
			p.t.Fatalf("the call %s, want %s", call, want[len(tags)])
		}
		tags = append(tags, tag)
	}
	return tags
}

func (p *played) send(control etf.Tuple, payload ...etf.Term) {
	b, err := wire.Append(nil, caps, control, payload...)
	if err != nil {
		p.t.Fatal(err)
	}
	p.peer.Write(b)
	synctest.Wait()
}

func (p *played) reply(tag uint64, answer etf.Term) {
	p.send(etf.Tuple{int64(wire.OpSend), etf.Atom(""), p.conn.self}, etf.Tuple{int64(tag), answer})
}

// replyIDs replies with the ids from first to last.
func (p *played) replyIDs(tag uint64, first, last snowflake.ID) {
	var ids []byte
	for id := first; id <= last; id++ {
		ids = binary.BigEndian.AppendUint64(ids, uint64(id))
	}
	p.reply(tag, etf.Tuple{etf.Atom("ok"), ids})
}

// check checks that callers have got the ids from first on.
func (p *played) check(first snowflake.ID, callers ...chan got) {
	p.t.Helper()
	for i, caller := range callers {
		if g := <-caller; g.err != nil || g.id != first+snowflake.ID(i) {
			p.t.Errorf("caller %d got %d, %v, want %d", i, g.id, g.err, first+snowflake.ID(i))
		}
	}
}

// Callers that wait to be written share a call, and get its ids in order. All others make their own.
func TestShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := play(t)
		first, others := p.waiting(3)
		y := []chan got{p.next(t.Context(), "y"), p.next(t.Context(), "y")}
		z := p.next(t.Context(), "z")
		reply := make(chan etf.Term)
		go func() {
			term, _ := p.node.Call(t.Context(), "x", etf.Atom(askOne))
			reply <- term
		}()
		synctest.Wait()
		tags := p.expect("{x,get}", "{x,get}", "{x,{get_binary,3}}", "{y,{get_binary,2}}", "{z,get}")
		p.replyIDs(tags[2], 5, 7)
		p.replyIDs(tags[0], 1, 1)
		p.replyIDs(tags[3], 1, 2)
		p.replyIDs(tags[4], 9, 9)
		p.reply(tags[1], etf.Atom("all of it"))
		p.check(1, first)
		p.check(5, others...)
		p.check(1, y...)
		p.check(9, z)
		if term := <-reply; term != etf.Atom("all of it") {
			t.Errorf("the other call got %v", term)
		}
		alone := p.next(t.Context(), "x")
		p.replyIDs(p.expect("{x,get}")[0], 8, 8)
		p.check(8, alone)
	})
}

// A call is for at most maxShared ids.
func TestSharedByMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := play(t)
		first, others := p.waiting(maxShared + 2)
		tags := p.expect("{x,get}", "{x,{get_binary,256}}", "{x,{get_binary,2}}")
		p.replyIDs(tags[0], 1, 1)
		p.replyIDs(tags[1], 2, 1+maxShared)
		p.replyIDs(tags[2], 2+maxShared, 3+maxShared)
		p.check(1, append([]chan got{first}, others...)...)
	})
}

// Whatever ends a shared call, each of its callers learns of it, and the next call is made.
func TestSharedFailure(t *testing.T) {
	ids := func(n int) etf.Term { return etf.Tuple{etf.Atom("ok"), make([]byte, n)} }
	for what, tt := range map[string]struct {
		end  func(p *played, tag uint64)
		want error // or nil for any
		with string
	}{
		"refused": {func(p *played, tag uint64) {
			p.reply(tag, etf.Tuple{etf.Atom("error"), etf.Atom("clock_running_backwards")})
		}, flake.ErrClockBackwards, "node n@127.0.0.1: call x: "},
		"one id too few":   {func(p *played, tag uint64) { p.reply(tag, ids(2*8)) }, nil, ""},
		"one id too many":  {func(p *played, tag uint64) { p.reply(tag, ids(4*8)) }, nil, ""},
		"no ids":           {func(p *played, tag uint64) { p.reply(tag, ids(0)) }, nil, ""},
		"part of an id":    {func(p *played, tag uint64) { p.reply(tag, ids(3*8+1)) }, nil, "requested 3 ids"},
		"ids of 16 bytes":  {func(p *played, tag uint64) { p.reply(tag, ids(3*16)) }, nil, "16 bytes"},
		"another answer":   {func(p *played, tag uint64) { p.reply(tag, etf.Atom("no")) }, nil, "no"},
		"the process ends": {func(p *played, _ uint64) { p.down() }, ErrLost, "killed"},
		"cut":              {func(p *played, _ uint64) { p.peer.Close() }, ErrLost, ""},
		"closed":           {func(p *played, _ uint64) { p.node.Close() }, ErrLost, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := play(t)
			first, others := p.waiting(3)
			tags := p.expect("{x,get}", "{x,{get_binary,3}}")
			p.replyIDs(tags[0], 1, 1)
			p.check(1, first)
			tt.end(p, tags[1])
			for i, other := range others {
				if g := <-other; g.err == nil || tt.want != nil && !errors.Is(g.err, tt.want) ||
					!strings.Contains(g.err.Error(), tt.with) {
					t.Errorf("%s: caller %d got %d, %v", what, i, g.id, g.err)
				}
			}
			if len(p.conn.calls) > 0 {
				t.Errorf("%s: %d calls are left", what, len(p.conn.calls))
			}
			if p.conn.ctx.Err() == nil {
				later := p.next(t.Context(), "x")
				p.replyIDs(p.expect("{x,get}")[0], 9, 9)
				p.check(9, later)
			}
		})
	}
}

// down reports the end of the process that was monitored last.
func (p *played) down() {
	p.send(etf.Tuple{int64(wire.OpMonitorPExit), etf.Atom(""), etf.Atom(""), p.monitor, etf.Atom("killed")})
}

// Calls that have not been written when the connection ends fail too, and no caller joins them.
func TestSharedUnsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := play(t)
		first, others := p.waiting(2)
		p.node.Close()
		for _, caller := range append(others, first) {
			if g := <-caller; !errors.Is(g.err, ErrLost) {
				t.Error(g.err)
			}
		}
		if _, err := p.conn.call(t.Context(), "x", nextID{}); !errors.Is(err, errEnded) {
			t.Errorf("a later call: %v", err)
		}
	})
}

// A caller that gives up leaves the others alone. A call that nobody waits for is not sent.
func TestSharedContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := play(t)
		ctx, cancel := context.WithCancel(t.Context())
		first := p.next(t.Context(), "x")
		before, gone := p.next(t.Context(), "x"), p.next(ctx, "x")
		after, late := p.next(t.Context(), "x"), p.next(t.Context(), "y")
		lost := []chan got{gone, p.next(ctx, "z"), p.next(ctx, "z")}
		cancel()
		synctest.Wait()
		again := p.next(t.Context(), "z")
		for _, caller := range lost {
			if g := <-caller; !errors.Is(g.err, context.Canceled) || errors.Is(g.err, ErrLost) {
				t.Error(g.err)
			}
		}
		tags := p.expect("{x,get}", "{x,{get_binary,3}}", "{y,get}", "{z,get}")
		for i, ids := range [][2]snowflake.ID{{1, 1}, {2, 4}, {5, 5}, {6, 6}} {
			p.replyIDs(tags[i], ids[0], ids[1])
		}
		p.check(1, first, before)
		p.check(4, after, late, again)

		ctx, cancel = context.WithCancel(t.Context())
		for range 2 {
			p.next(ctx, "x")
		}
		cancel()
		synctest.Wait()
		if len(p.conn.calls) > 0 {
			t.Errorf("%d calls are left", len(p.conn.calls))
		}
	})
}

// A process that only knows get, as the original does, is asked for one id at a time, until it is
// replaced by another.
func TestSharedUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := play(t)
		first, others := p.waiting(2)
		tags := p.expect("{x,get}", "{x,{get_binary,2}}")
		p.replyIDs(tags[0], 1, 1)
		p.check(1, first)
		p.reply(tags[1], etf.Atom("ok"))
		for i, tag := range p.expect("{x,get}", "{x,get}") {
			p.replyIDs(tag, snowflake.ID(2+i), snowflake.ID(2+i))
		}
		if a, b := <-others[0], <-others[1]; a.err != nil || b.err != nil || a.id+b.id != 2+3 {
			t.Error(a, b)
		}
		first, others = p.waiting(2)
		for i, tag := range p.expect("{x,get}", "{x,get}", "{x,get}") {
			p.replyIDs(tag, snowflake.ID(4+i), snowflake.ID(4+i))
		}
		p.check(4, append([]chan got{first}, others...)...)
		p.down()
		first, others = p.waiting(2)
		tags = p.expect("{x,get}", "{x,{get_binary,2}}")
		p.replyIDs(tags[0], 7, 7)
		p.replyIDs(tags[1], 8, 9)
		p.check(7, append([]chan got{first}, others...)...)
	})
}

// A node cannot answer a call before it is written.
func TestSharedEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := play(t)
		first, others := p.waiting(2)
		p.replyIDs(2, 8, 9)
		others = append(others, p.next(t.Context(), "x"))
		tags := p.expect("{x,get}", "{x,{get_binary,3}}")
		p.replyIDs(tags[0], 1, 1)
		p.replyIDs(tags[1], 2, 4)
		p.check(1, append([]chan got{first}, others...)...)
	})
}

// With real nodes, each goroutine's ids ascend and none repeats, while nodes fail.
func TestSharedLive(t *testing.T) {
	noLeak(t)
	const callers, calls = 100, 100
	a, b := startFlakes(t), startWorker(t, worker+1)
	one := a.doors(t)["distribution"]
	several := NewFailover(b.doors(t)["distribution"], one)
	for _, tt := range []struct {
		what string
		door Door
		stop func()
	}{{"one", one, func() {}}, {"several", several, b.Stop}} {
		var mu sync.Mutex
		seen := make(map[flake.ID]bool)
		ids := NewIDs[flake.ID](tt.door, "flake")
		var running sync.WaitGroup
		for range callers {
			running.Go(func() {
				var last flake.ID
				for range calls {
					id, err := ids.Next(t.Context())
					mu.Lock()
					if err != nil || seen[id] || id.Compare(last) <= 0 {
						t.Errorf("%s: %v after %v, seen before: %t, %v", tt.what, id, last, seen[id], err)
					}
					seen[id], last = true, id
					if len(seen) == callers*calls/2 {
						go tt.stop()
					}
					mu.Unlock()
				}
			})
		}
		running.Wait()
	}
	for i, f := range []*flakes{a, b} {
		if !slices.ContainsFunc(f.server.Stats().Calls, func(c idserver.CallCount) bool { return c.Kind == "get_binary" }) {
			t.Errorf("no calls to node %d are shared", i)
		}
	}
}
