package distribution

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
	"github.com/flake-go/flake/node/wire"
)

// An account takes bytes beyond its allowance from the pool, in steps, if there is room.
func TestAccount(t *testing.T) {
	for name, spare := range map[string]bool{"needed": false, "spare": true} {
		t.Run(name, func(t *testing.T) {
			bound, of := MaxShared, func(p *pool) int { return int(p.held.Load()) }
			if spare {
				bound, of = MaxSpare, func(p *pool) int { return int(p.spare.Load()) }
			}
			const step = accountStep
			var p pool
			a, b := account{memory: newMemory(&p), own: step, spare: spare}, account{memory: newMemory(&p),
				own: step, spare: spare}
			for i, s := range []struct {
				account *account
				hold    int
				ok      bool
				held    int
			}{
				{&a, step, true, 0},
				{&a, step + 1, true, step},
				{&a, step, true, step}, // a step that may soon be needed again
				{&a, step / 2, true, 0},
				{&a, 3 * step, true, 2 * step},
				{&a, step, true, 0},
				{&a, step + bound, true, bound},
				{&b, step, true, bound},
				{&b, step + bound, false, bound},
				{&a, step + bound + 1, false, bound},
				{&a, step / 2, true, 0},
				{&b, 3 * step, true, 2 * step},
				{&b, 0, true, 0},
			} {
				if ok := s.account.resize(s.hold); ok != s.ok || of(&p) != s.held {
					t.Errorf("%d: resize(%d): %t, %d bytes of the pool are held; want %t, %d", i, s.hold, ok, of(&p), s.ok, s.held)
				}
			}
			a.resize(3 * step)
			p.spare.Add(int64(bound) + 1) // as other accounts do just before they are refused
			if !a.resize(0) || a.taken != 0 {
				t.Errorf("without room, %d bytes stay taken", a.taken)
			}
			p.spare.Add(-int64(bound) - 1)
			p.nothing(t)
		})
	}
}

// MaxSmall is reserved for connections that hold little memory. Without room, a connection can
// still take zero bytes.
func TestMaxSmall(t *testing.T) {
	var p pool
	large, small := newMemory(&p), newMemory(&p)
	large.take(smallMemory + 1)
	p.take(MaxShared - smallMemory - 1)
	if large.take(1) {
		t.Error("a large connection takes room from MaxSmall")
	}
	if !small.take(smallMemory) || small.take(1) {
		t.Error("want room for a small connection, within MaxSmall")
	}
	if !large.take(0) {
		t.Error("zero bytes are refused")
	}
}

// When the pool is full, the connection that has long held the most is ended to make room for a
// connection that needs less.
func TestMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pool
		ended := ""
		holders := make(map[string]*memory)
		hold := func(name string, n int) bool {
			if holders[name] == nil {
				holders[name] = &memory{pool: &p, end: func() { ended += name }}
			}
			return holders[name].take(n)
		}
		const mega = 1 << 20
		hold("a", 10*mega)
		hold("b", 12*mega)
		hold("c", 7*mega)
		holders["c"].pin(mega)
		holders["c"].unpin(mega)
		holders["b"].pin(2 * mega)
		if time.Sleep(longHeld - 1); hold("d", 6*mega) || ended != "" {
			t.Errorf("before longHeld has passed, %q are ended", ended)
		}
		time.Sleep(time.Second)
		if hold("d", 12*mega) || hold("c", 6*mega) || ended != "" {
			t.Errorf("for a connection that needs no less, %q are ended", ended)
		}
		if !hold("d", 6*mega) || ended != "b" {
			t.Errorf("%q are ended, want b", ended)
		}
		holders["b"].give(12 * mega) // as the ended connection does
		if holders["b"].take(1) || holders["b"].pin(1) {
			t.Error("an ended connection takes more")
		}
		if held := p.held.Load(); held != 24*mega {
			t.Errorf("%d bytes are held, including pinned ones, want 24 MiB", held)
		}
		if hold("f", 11*mega) {
			t.Error("pinned bytes are released to make room")
		}
		holders["b"].unpin(2 * mega)
		if held := p.held.Load(); held != 22*mega {
			t.Errorf("%d bytes are held, want 22 MiB", held)
		}
		holders["a"].give(6 * mega) // most of its bytes
		hold("a", 4*mega)
		hold("c", 6*mega)
		holders["b"].freed()
		if hold("e", 7*mega) || ended != "b" {
			t.Errorf("%q are ended, although none has long held more", ended)
		}
		time.Sleep(2 * longHeld)
		if !hold("e", 7*mega) || ended != "bc" {
			t.Errorf("%q are ended, want c", ended)
		}
		if held := p.held.Load(); held != 21*mega {
			t.Errorf("%d bytes are held by a, d and e, want 21 MiB", held)
		}
	})
}

// While an ended connection still holds much memory, no other connection is ended.
func TestMakeRoomOnceFreed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pool
		ended := 0
		first, second := &memory{pool: &p, end: func() { ended++ }}, &memory{pool: &p, end: func() { ended++ }}
		first.take(MaxShared - 2*maxUnfreed)
		second.take(2 * maxUnfreed)
		time.Sleep(2 * longHeld)
		if asks := newMemory(&p); !asks.take(maxUnfreed) || ended != 1 {
			t.Fatalf("%d connections are ended to make room", ended)
		}
		p.take(maxUnfreed)
		if asks := newMemory(&p); asks.take(maxUnfreed) || ended != 1 {
			t.Errorf("%d connections are ended before the first has freed its memory", ended)
		}
		first.freed()
		second.freed()
		asks := newMemory(&p)
		if !asks.take(maxUnfreed) || ended != 2 {
			t.Errorf("%d connections are ended to make room", ended)
		}
		if first.take(1) || asks.ended {
			t.Error("an ended connection takes room, or ends another for it")
		}
	})
}

// A connection whose pinned bytes remain is ended only once.
func TestMakeRoomOfPinned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pool
		ended := 0
		s := &memory{pool: &p, end: func() {
			if ended++; ended > 1 {
				t.Fatal("the connection is ended again")
			}
		}}
		s.take(MaxShared)
		s.pin(MaxShared)
		time.Sleep(2 * longHeld)
		asks := newMemory(&p)
		if asks.take(maxUnfreed) || ended != 1 {
			t.Errorf("the connection is ended %d times, want once; or there is room before its bytes are released",
				ended)
		}
		s.freed()
		s.unpin(MaxShared)
		if !asks.take(maxUnfreed) {
			t.Error("there is no room after the bytes are released")
		}
	})
}

// Among many connections that have long held about the same amount, one that sometimes holds
// more is neither refused nor ended.
func TestMakeRoomAmongMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pool
		ended := 0
		newHolder := func() *memory { return &memory{pool: &p, end: func() { ended++ }} }
		const many, few = 48 << 10, 4 << 10
		caller := &memory{pool: &p, end: func() { t.Error("the caller is ended") }}
		for range everything / many {
			newHolder().take(many)
		}
		time.Sleep(longHeld)
		for range 10 {
			time.Sleep(longHeld / 2)
			for range 14 {
				if !caller.take(few) {
					t.Fatal("the caller is refused")
				}
			}
			for range 100 {
				newHolder().take(few)
			}
			caller.give(12 * few)
			time.Sleep(longHeld / 4)
			caller.give(2 * few)
		}
		if ended == 0 {
			t.Error("no connection is ended, so there was room")
		}
	})
}

// If a connection needs at most smallMemory, one that holds more is ended immediately to make room,
// even if it has not held its memory for long.
func TestMakeRoomForLittle(t *testing.T) {
	for held, want := range map[int]bool{smallMemory + 1: true, smallMemory: false} {
		p := pool{unfreed: maxUnfreed} // other connections may still be ended
		large, ended := &memory{pool: &p}, false
		large.end = func() { ended = true }
		large.take(held)
		p.take(MaxShared + MaxSmall - held)
		if little := (&memory{pool: &p}); little.take(smallMemory) != want || ended != want {
			t.Errorf("with %d bytes held, the connection is ended: %v", held, ended)
		}
	}
}

// Bytes are steady once they have been held for longHeld.
func TestSteady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMemory(new(pool))
		want := func(when string, want int) {
			t.Helper()
			if got := s.steady(time.Now()); got != want {
				t.Errorf("%s: %d bytes are steady, want %d", when, got, want)
			}
		}
		s.take(1)
		time.Sleep(longHeld - 1)
		want("too early", 0)
		time.Sleep(time.Nanosecond)
		want("after longHeld", 1)
		time.Sleep(2 * longHeld)
		s.take(10)
		want("10 bytes more", 1)
		time.Sleep(2 * longHeld)
		want("all held long", 11)
	})
}

// A message weighs at least as much as its terms, of which each may need 60 bytes, and little more.
func TestWeight(t *testing.T) {
	ints, text := make(etf.List, 5_000), strings.Repeat("x", 5_000)
	for i := range ints {
		ints[i] = int64(7)
	}
	for name, test := range map[string]struct {
		term  etf.Term
		terms int
	}{
		"binary":   {etf.List{make([]byte, 200<<10)}, 3},
		"list":     {ints, 5_002},
		"string":   {etf.String(text), 5_000},
		"nested":   {etf.Tuple{ints, etf.Tuple{ints, etf.Map{{Key: etf.Atom("a"), Value: ints}}}}, 15_000},
		"too many": {etf.Tuple{make(etf.Tuple, etf.MaxElements)}, etf.MaxElements},
	} {
		if tuple, ok := test.term.(etf.Tuple); ok && len(tuple) == 1 {
			for i := range tuple[0].(etf.Tuple) {
				tuple[0].(etf.Tuple)[i] = etf.List{}
			}
		}
		message := external(test.term)
		got, least := weight(message, 0)-len(message), 60*test.terms
		if got < least || got > least+60*10 {
			t.Errorf("%s: its terms weigh %d, want %d", name, got, least)
		}
	}
	for _, malformed := range [][]byte{make([]byte, 10_000), external(ints)[:5_000]} {
		if got := weight(malformed, 0); got < 60*len(malformed) {
			t.Errorf("%d malformed bytes weigh %d", len(malformed), got)
		}
	}
	if got := weight(external(ints), len(external(ints))); got != 0 {
		t.Errorf("a short message weighs %d", got)
	}
}

// While the pool is full, only messages that need room in it are refused. When all connections
// have ended, no bytes are held.
func TestShared(t *testing.T) {
	large := make([]byte, 1<<20)
	request := etf.Tuple{
		number(wire.OpSpawnRequest), ref5, theirs, theirs,
		etf.Tuple{etf.Atom("m"), etf.Atom("f"), int64(1)}, etf.List{etf.Atom("monitor")},
	}
	bubble(t, flags, func(t *testing.T, r *rig) {
		pool := &r.proto.pool
		arrives := func(octets int, want bool) {
			t.Helper()
			message := external(large[:octets])
			r.send(frame(etf.Tuple{number(wire.OpRegSend), theirs, etf.Atom(""), etf.Atom("flake")}, message))
			if got := r.local.flake.take() != ""; got != want {
				t.Errorf("a message of %d bytes arrives: %t, want %t", len(message), got, want)
			}
		}
		const head = 5 // bytes before the data of a binary
		pool.take(everything)
		arrives(ownMessage-head, true)
		arrives(ownMessage-head+1, false)
		r.send(frame(request, external(etf.List{large[:ownInput/2]})))
		r.want(frame(etf.Tuple{number(wire.OpSpawnReply), ref5, theirs, int64(0), etf.Atom("system_limit")}))
		r.send(monitorP(etf.Atom("nobody"), ref5))
		r.want(down(etf.Atom("nobody"), ref5, "noproc"))
		pool.give(everything)
		arrives(ownInput/2, true)
		if held := pool.held.Load(); held != 0 {
			t.Errorf("%d bytes are still held", held)
		}
	})
}

// Arguments up to the bound reach the function; larger ones are refused without decoding.
func TestMaxArguments(t *testing.T) {
	request := etf.Tuple{
		number(wire.OpSpawnRequest), ref5, theirs, theirs,
		etf.Tuple{etf.Atom("m"), etf.Atom("f"), int64(1)}, etf.List{etf.Atom("monitor")},
	}
	arguments := func(octets int) []byte {
		args := external(etf.List{make([]byte, octets)})
		return external(etf.List{make([]byte, 2*octets-len(args))})
	}
	bubble(t, flags, func(t *testing.T, r *rig) {
		var got int
		r.proto.Spawn = func(_, _ etf.Atom, args []etf.Term) etf.Term {
			got = len(external(etf.List(args)))
			return etf.Atom("normal")
		}
		r.send(frame(request, arguments(maxArguments)))
		if n := len(r.received()); n != 2 || got != maxArguments {
			t.Errorf("%d signals, the function got %d bytes", n, got)
		}
		r.send(frame(request, arguments(maxArguments+1)))
		r.want(frame(etf.Tuple{number(wire.OpSpawnReply), ref5, theirs, int64(0), etf.Atom("system_limit")}))
		r.logged("at most 1048576 allowed")
	})
}

// A connection ends when the pool has no room for a part of a frame, before all of it has arrived.
func TestSharedFrames(t *testing.T) {
	var p pool
	stream := append(binary.BigEndian.AppendUint32(nil, MaxFrame), make([]byte, MaxFrame)...)
	arrive := func() (*frames, error) {
		f := newFrames(bytes.NewReader(stream), newMemory(&p))
		for {
			if _, ok, err := f.next(); ok || err != nil {
				return &f, err
			}
			if err := f.fill(); err != nil {
				return &f, err
			}
		}
	}
	p.take(MaxShared - MaxFrame)
	whole, err := arrive()
	if err != nil {
		t.Fatal(err)
	}
	p.take(MaxSmall) // leaves only room for small connections
	f, err := arrive()
	if !errors.Is(err, errShared) || !whole.account.memory.ended {
		t.Errorf("%v; the larger connection has ended: %v", err, whole.account.memory.ended)
	}
	f.close()
	whole.close()
	whole.account.memory.freed()
	p.give(everything - MaxFrame)
	p.nothing(t)
}

// A frame that has partly arrived holds at most about twice the bytes that have arrived.
func TestHalfFrame(t *testing.T) {
	var p pool
	stream := binary.BigEndian.AppendUint32(nil, MaxFrame)
	f := newFrames(bytes.NewReader(append(stream, make([]byte, 1<<20)...)), newMemory(&p))
	for f.fill() == nil {
		f.next()
	}
	if held := p.held.Load(); held > 2<<20+accountStep {
		t.Errorf("%d bytes are held after %d were read", held, 1<<20)
	}
	f.close()
	p.nothing(t)
}

// Without spare room, the read buffer stays small, but calls are still read.
func TestGather(t *testing.T) {
	call := append(binary.BigEndian.AppendUint32(nil, 100), make([]byte, 100)...)
	for spare, want := range map[int64]int{0: fullBuffer, MaxSpare: firstBuffer} {
		var p pool
		p.spare.Store(spare)
		f := newFrames(bytes.NewReader(bytes.Repeat(call, 5000)), newMemory(&p))
		calls := 0
		for f.fill() == nil {
			for ok := true; ok; {
				if _, ok, _ = f.next(); ok {
					calls++
				}
			}
		}
		if calls != 5000 || len(f.buf) != want || p.held.Load() != 0 {
			t.Errorf("%d calls, a buffer of %d bytes, want %d", calls, len(f.buf), want)
		}
		f.close()
		p.spare.Add(-spare)
		p.nothing(t)
	}
}

// A connection that was ended to make room for others handles no more frames.
func TestEndedReadsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stream, peer := net.Pipe()
		defer peer.Close()
		p := newProto(newLocals(), slog.DiscardHandler)
		c := p.New(t.Context(), stream, handshake.Peer{Name: there, Flags: flags})
		go peer.Write(monitorP(etf.Atom("flake"), ref3))
		if err := c.in.fill(); err != nil {
			t.Fatal(err)
		}
		c.memory.end()
		if err := c.handleAll(); err != errShared || len(c.watches.monitors.all) != 0 {
			t.Errorf("%v, %d monitors", err, len(c.watches.monitors.all))
		}
	})
}

// Monitors and links beyond the first ones take room from the pool, and return it when they are
// removed.
func TestSharedWatches(t *testing.T) {
	var p pool
	var w watches
	w.init(newMemory(&p))
	p.take(everything)
	monitor := func(i int) bool {
		return w.add(&w.monitors, 1, []byte(refOf(i)), []byte("flake"), []byte(theirs), []byte(refOf(i)))
	}
	link := func(pids string) bool { return w.add(&w.links, 1, []byte(pids), []byte(pids), nil, nil) }
	both := string(ours) + string(theirs)
	n := 0
	for monitor(n) {
		n++
	}
	const ordinary = 10
	if n < ordinary || len(w.monitors.all) != n || len(w.spares) != 0 {
		t.Errorf("%d monitors without the pool, want at least %d; %d are kept, %d spares",
			n, ordinary, len(w.monitors.all), len(w.spares))
	}
	pids, refused := []byte(both), true
	if n := testing.AllocsPerRun(100, func() {
		refused = refused && !w.add(&w.links, 1, pids, pids, nil, nil)
	}); n != 0 || !refused {
		t.Errorf("adding a link without room: refused %t, %v allocations; want true, 0", refused, n)
	}
	p.give(everything)
	if !monitor(n) || !link(both) {
		t.Error("a monitor or a link is refused, although there is room")
	}
	held := w.held
	if !link(both) || w.held != held {
		t.Errorf("repeating a link holds %d more bytes", w.held-held)
	}
	if w.forget(&w.links, []byte(string(ours)+string(theirsToo))) {
		t.Error("an unknown link is removed")
	}
	long := strings.Repeat("x", 2000)
	if link(long); w.held-held < len(long) {
		t.Errorf("a link holds %d bytes, want at least %d", w.held-held, len(long))
	}
	w.forget(&w.links, []byte(long))
	const many = 100_000
	for i := range many {
		monitor(i)
		link(both + fmt.Sprint(i))
	}
	for i := range many {
		w.forget(&w.monitors, []byte(refOf(i)))
		w.forget(&w.links, []byte(both+fmt.Sprint(i)))
	}
	w.forget(&w.links, []byte(both))
	idle := w.held + w.monitors.idle() + w.links.idle()
	if held := int(p.held.Load()); len(w.spares) != maxSpares || held > idle+accountStep || held < idle-ownWatches {
		t.Errorf("%d spares; %d bytes taken from the pool for %d that are kept", len(w.spares), held, idle)
	}
	const each = 512 // upper bound on the bytes of a watch's terms
	if idle > 2*slimMin*slimEntry+maxSpares*(watchSize+each) {
		t.Errorf("%d bytes are kept for reuse", idle)
	}
	if w.shrink(); w.held+w.monitors.idle()+w.links.idle() != 0 {
		t.Error("bytes are kept after shrink")
	}
	p.nothing(t)
}

// Proto.Limit reduces every bound in proportion.
func TestLimit(t *testing.T) {
	const percent = 25
	var p Proto
	p.Limit(percent)
	s := &memory{pool: &p.pool, end: func() { t.Error("a connection is ended") }}
	small := &memory{pool: &p.pool, end: func() { t.Error("a connection is ended") }}
	spare := account{memory: s, spare: true}
	for _, take := range []struct {
		what string
		took bool
		want bool
	}{
		{"all", s.take(MaxShared * percent / 100), true},
		{"one more", s.take(1), false},
		{"a small one", small.take(1), true},
		{"all to spare", spare.resize(MaxSpare * percent / 100), true},
		{"more to spare", spare.resize(MaxSpare), false},
	} {
		if take.took != take.want {
			t.Errorf("%s: taken: %t", take.what, take.took)
		}
	}
}

// Removing entries keeps the others, and frees memory.
func TestSlimMap(t *testing.T) {
	var l slimMap[int, int]
	const n = 10 * slimMin
	for i := range n {
		l.set(i, -i)
	}
	for i := range n {
		l.remove(i)
		if i := i + 1; i < n && l.all[i] != -i || len(l.all) != n-i {
			t.Fatalf("%d left of %d", len(l.all), n-i)
		}
	}
	if l.peak > slimMin {
		t.Errorf("the map has room for %d entries", l.peak)
	}
	l.set(1, 1)
	l.shrink()
	if l.all[1] != 1 || l.idle() != 0 {
		t.Errorf("%v, %d bytes idle", l.all, l.idle())
	}
}
