package dist

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/flake-go/flake/node/etf"
)

// An account takes of the pool what it holds beyond its own, and no more than
// there is.
func TestAccount(t *testing.T) {
	var p pool
	a, b := account{pool: &p, own: 100}, account{pool: &p, own: 100}
	for _, step := range []struct {
		account *account
		hold    int
		ok      bool
		held    int64
	}{
		{&a, 100, true, 0},
		{&a, 101, true, 1},
		{&a, 100 + MaxShared, true, MaxShared},
		{&b, 100, true, MaxShared},
		{&b, 101, false, MaxShared},
		{&a, 100 + MaxShared + 1, false, MaxShared},
		{&a, 50, true, 0},
		{&b, 300, true, 200},
		{&b, 0, true, 0},
	} {
		if ok := step.account.hold(step.hold); ok != step.ok || p.held.Load() != step.held {
			t.Errorf("hold(%d): %t, %d held of the pool; want %t, %d", step.hold, ok, p.held.Load(), step.ok, step.held)
		}
	}
}

// Nothing is always there, though what others take in vain be too much for a moment.
func TestTakeNothing(t *testing.T) {
	var p pool
	p.held.Store(MaxShared + 1)
	if !p.take(0) {
		t.Error("refused")
	}
}

// A message weighs no less than the terms that may be made of it: every two octets
// may be one of 40.
func TestWeight(t *testing.T) {
	if got := weight(make([]byte, 10_000), 0); got < 10_000/2*40 {
		t.Errorf("10000 octets weigh %d", got)
	}
}

// While nothing is left of the pool, what needs it is refused and all else goes
// on; when connections have ended, the pool has all again.
func TestShared(t *testing.T) {
	large := make([]byte, 1<<20)
	request := etf.Tuple{
		number(opSpawnRequest), ref5, theirs, theirs,
		etf.Tuple{etf.Atom("m"), etf.Atom("f"), int64(1)}, etf.List{etf.Atom("monitor")},
	}
	bubble(t, flags, func(t *testing.T, r *rig) {
		shared := &r.proto.shared
		to := func(name etf.Atom) etf.Tuple { return etf.Tuple{number(opRegSend), theirs, etf.Atom(""), name} }
		arrives := func(octets int, want bool) {
			t.Helper()
			message := external(large[:octets])
			r.send(frame(to("flake"), message), frame(to("box"), message), frame(etf.Tuple{number(opAliasSend), theirs, ref3}, message))
			if flake, others := r.local.flake.take() != "", strings.Count(r.router.take(), "send"); flake != want || (others == 2) != want || others == 1 {
				t.Errorf("%d octets arrive at flake: %t, and at %d of 2 others; want %t", len(message), flake, others, want)
			}
		}
		const head = 5 // of a binary
		shared.take(MaxShared)
		arrives(ownMessage-head, true)
		arrives(ownMessage-head+1, false)
		r.send(frame(request, external(etf.List{large[:ownInput/2]})))
		r.want(frame(etf.Tuple{number(opSpawnReply), ref5, theirs, int64(0), etf.Atom("system_limit")}))
		r.send(monitorP(etf.Atom("nobody"), ref5))
		r.want(down(etf.Atom("nobody"), ref5, "noproc"))
		shared.give(MaxShared)
		arrives(ownInput/2, true)
		if held := shared.held.Load(); held != 0 {
			t.Errorf("%d octets are still held", held)
		}
	})
}

// Arguments up to the bound reach the function, larger ones are refused unread.
func TestMaxArguments(t *testing.T) {
	request := etf.Tuple{
		number(opSpawnRequest), ref5, theirs, theirs,
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
		r.send(frame(request, arguments(MaxArguments)))
		if n := len(r.received()); n != 2 || got != MaxArguments {
			t.Errorf("%d signals, the function got %d octets", n, got)
		}
		r.send(frame(request, arguments(MaxArguments+1)))
		r.want(frame(etf.Tuple{number(opSpawnReply), ref5, theirs, int64(0), etf.Atom("system_limit")}))
		r.logged("want at most 1048576")
	})
}

// A frame that the pool has no room for ends its connection, before it is there.
func TestSharedFrames(t *testing.T) {
	var p pool
	stream := append(binary.BigEndian.AppendUint32(nil, MaxFrame), make([]byte, MaxFrame)...)
	arrive := func() (*frames, error) {
		f := newFrames(bytes.NewReader(stream), &p)
		for {
			if _, ok, err := f.next(); ok || err != nil {
				return &f, err
			}
			if err := f.fill(); err != nil {
				return &f, err
			}
		}
	}
	var arrived []*frames
	for range MaxShared / MaxFrame {
		f, err := arrive()
		if err != nil {
			t.Fatal(err)
		}
		arrived = append(arrived, f)
	}
	f, err := arrive()
	if !errors.Is(err, errShared) || len(f.buf) >= MaxFrame {
		t.Errorf("%v, with a buffer of %d octets", err, len(f.buf))
	}
	for _, f := range append(arrived, f) {
		f.close()
	}
	if held := p.held.Load(); held != 0 {
		t.Errorf("%d octets are still held", held)
	}
}

// Monitors and links are of the pool but for the first ones, and given back.
func TestSharedWatches(t *testing.T) {
	var p pool
	var w watches
	w.init(&p)
	p.take(MaxShared)
	n := 0
	for w.addMonitor(1, []byte(refOf(n)), []byte("flake"), []byte(theirs)) {
		n++
	}
	const ordinary = 500
	if n < ordinary {
		t.Errorf("%d monitors without the pool, want at least %d", n, ordinary)
	}
	if w.addLink(link{1, string(ours), string(theirs)}) {
		t.Error("a link though there is no room")
	}
	p.give(MaxShared)
	if !w.addMonitor(1, []byte(refOf(n)), []byte("flake"), []byte(theirs)) || !w.addLink(link{1, string(ours), string(theirs)}) {
		t.Error("refused though there is room")
	}
	w.addLink(link{1, string(ours), string(theirs)})       // the same
	w.forgetLink(link{1, string(ours), string(theirsToo)}) // was not there
	long := link{1, strings.Repeat("x", 1000), strings.Repeat("x", 1000)}
	held := w.held
	if w.addLink(long); w.held-held < len(long.ours)+len(long.theirs) {
		t.Errorf("%d octets are held for a link of 2000", w.held-held)
	}
	w.forgetLink(long)
	for i := range n + 1 {
		w.forgetMonitor([]byte(refOf(i)))
	}
	w.forgetLink(link{1, string(ours), string(theirs)})
	if w.held != 0 || p.held.Load() != 0 {
		t.Errorf("%d octets held, %d of the pool", w.held, p.held.Load())
	}
}
