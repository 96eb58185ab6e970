package iderl

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/genserver"
	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/node/etf"
)

// caller records answers. Functions passed to Later wait for run.
type caller struct {
	ctx     context.Context
	caps    etf.Caps
	full    bool // Later has no room
	crowded bool // Grow has no room
	answers []string
	given   int
	waiting []func()
	sizes   []int // of Grow
}

func (c *caller) Caps() etf.Caps           { return c.caps }
func (c *caller) Context() context.Context { return c.ctx }
func (c *caller) Buffer() []byte           { return nil }
func (c *caller) Count(n int)              { c.given += n }

func (c *caller) Send(_, _, message []byte) { c.answers = append(c.answers, string(message)) }

func (c *caller) Grow(size int) bool {
	if c.full || c.crowded {
		return false
	}
	c.sizes = append(c.sizes, size)
	return true
}

func (c *caller) Later(f func(genserver.Caller)) {
	if c.full {
		f(c)
		return
	}
	c.waiting = append(c.waiting, func() { f(c) })
}

// run calls the waiting functions.
func (c *caller) run() {
	for _, f := range c.waiting {
		f()
	}
	c.waiting = nil
}

// from identifies the caller, whose answers all begin with before.
var from = genserver.From{To: []byte(pid), Tag: []byte("a\x09")}

const (
	pid    = "Xw\x03a@b\x00\x00\x00\x09\x00\x00\x00\x00\x00\x00\x00\x01"
	before = "h\x02a\x09"
)

// ask makes the caller ask for an external term.
func (c *caller) ask(h *Handler, request []byte) {
	h.HandleCall(genserver.Call{Caller: c, From: from, Request: request})
}

// reply returns the reply to an external term.
func reply(h *Handler, request []byte, caps etf.Caps) []byte {
	c := &caller{ctx: context.Background(), caps: caps}
	c.ask(h, request)
	c.run()
	return []byte(strings.TrimPrefix(c.answers[0], before))
}

// A request for more than MaxInline ids delays no other request: later requests are answered first.
func TestLargeRequests(t *testing.T) {
	for request, large := range map[string]bool{
		"{get_many,256}": false, "{get_many,256,2}": false, "{get_binary,256}": false, "{lease,256}": false,
		"{get_many,257}": true, "{get_many,257,2}": true, "{get_binary,257}": true, "{lease,257}": true,
		"{get_many,65536,2}": true, "{get_many,65536,canonical}": true, "{get_many,65536}": true,
		"{get_binary,65536}": true, "{lease,1048576}": true,
	} {
		h := handlerOf(&stock{perTick: 1024, left: 1 << 11}) // so that a lease has many runs
		c := &caller{ctx: t.Context(), caps: etf.AllCaps}
		message := func(request string) []byte {
			b := append(etf.MustAppendAtom([]byte("h\x03"), "$gen_call", etf.AllCaps), "h\x02"+pid+string(from.Tag)...)
			return append(b, external(t, request, etf.AllCaps)...)
		}
		g := &genserver.Server{Handler: h}
		for _, r := range []string{request, "hello"} {
			m := message(r)
			if err := g.Receive(m, c); err != nil {
				t.Fatal(err)
			}
			clear(m) // the connection reuses it
		}
		c.run()
		if len(c.answers) != 2 || len(c.sizes) != 1 {
			t.Fatalf("%s: %d answers, of %d bytes", request, len(c.answers), c.sizes)
		}
		if n := strings.FieldsFunc(request, func(c rune) bool { return c < '0' || c > '9' })[0]; fmt.Sprint(c.given) != n {
			t.Errorf("%s: %d ids are counted", request, c.given)
		}
		order := []int{0, 1}
		if large {
			order = []int{1, 0}
		}
		if got, size := len(c.answers[order[0]]), c.sizes[0]; got > size {
			t.Errorf("%s: the answer has %d bytes, but room was requested for %d", request, got, size)
		}
		if got, want := c.answers[order[1]], before+"w\x02ok"; got != want {
			t.Errorf("%s: then %q, want %q", request, got, want)
		}
		if got, want := c.answers[order[0]], before+"h\x02w\x02ok"; !strings.HasPrefix(got, want) {
			t.Errorf("%s: %.40q, want %q", request, got, want)
		}
	}
}

// A request is refused immediately if there is no room for it.
func TestNoRoom(t *testing.T) {
	for name, c := range map[string]*caller{"too many run": {ctx: t.Context(), full: true},
		"too much is held": {ctx: t.Context(), crowded: true}} {
		h := handlerOf(&stock{perTick: 1 << 16, left: 100})
		c.caps = etf.AllCaps
		c.ask(h, external(t, "{lease,257}", etf.AllCaps))
		c.run()
		if want := before + "h\x02w\x05errorw\x0csystem_limit"; len(c.answers) != 1 || c.answers[0] != want {
			t.Errorf("%s: %q, want %q", name, c.answers, want)
		}
		if got := h.Server.Stats(); got.IDs != 0 || got.Refusals != 1 {
			t.Errorf("%s: %+v", name, got)
		}
		c.answers = nil
		c.ask(h, external(t, "{lease,256}", etf.AllCaps))
		c.run()
		if got := h.Server.Stats(); len(c.answers) != 1 || got.IDs != 256 || got.Refusals != 1 {
			t.Errorf("%s: a small request is answered %q, %+v", name, c.answers, got)
		}
	}
}

// An invalid request is refused as invalid, even if there is no room.
func TestNoRoomForInvalid(t *testing.T) {
	c := &caller{ctx: t.Context(), caps: etf.AllCaps, full: true}
	h := handlerOf(&stock{perTick: 1, left: 100})
	c.ask(h, external(t, "{lease,1048576}", etf.AllCaps)) // more than the format's ticks hold
	c.run()
	if want := before + "h\x02w\x05errorw\x06badarg"; len(c.answers) != 1 || c.answers[0] != want {
		t.Errorf("%q, want %q", c.answers, want)
	}
}

// alone is a source that accepts one large request at a time.
type alone struct {
	formats.Source
	t    *testing.T
	busy atomic.Bool
}

func (a *alone) Reserve(ctx context.Context, n int, meta uint8) (formats.Run, error) {
	if a.busy.Swap(true) {
		a.t.Errorf("%d ids are taken during another Reserve", n)
	}
	runtime.Gosched()
	defer a.busy.Store(false)
	return a.Source.Reserve(ctx, n, meta)
}

// Large requests take turns, whether they come from calls, functions or callers that are not nodes.
func TestLargeAlone(t *testing.T) {
	const each, n = 8, 10 << 10
	h := handlerOf(&stock{perTick: 1 << 12, left: 100})
	s := h.Server
	s.IDs = &alone{Source: s.IDs, t: t}
	var all sync.WaitGroup
	for range each {
		c := &caller{ctx: t.Context(), caps: etf.AllCaps}
		c.ask(h, external(t, fmt.Sprintf("{get_many,%d}", n), etf.AllCaps))
		all.Go(c.waiting[0])
		all.Go(func() {
			turn := s.TurnOfOther(n)
			defer turn.End()
			s.Take(t.Context(), idserver.KindLease, n, idserver.Meta{}, turn)
		})
		all.Go(func() { apply(t, s, fmt.Sprintf("flake_harness:generate[%d]", n), nil, nil) })
	}
	all.Wait()
	if got := s.Stats().IDs; got != 3*each*n {
		t.Errorf("%d ids, want %d", got, 3*each*n)
	}
}

// dry is a source without ids.
type dry struct{ formats.Source }

func (dry) Reserve(ctx context.Context, _ int, _ uint8) (formats.Run, error) {
	<-ctx.Done()
	return formats.Run{}, ctx.Err()
}

// A request ends with its connection, even if it waits for ids.
func TestRequestEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := &caller{ctx: ctx, caps: etf.AllCaps}
	h := handlerOf(dry{&stock{perTick: 1 << 16}})
	c.ask(h, external(t, "{lease,1048576}", etf.AllCaps))
	cancel()
	c.run()
	c.ask(h, external(t, "get", etf.AllCaps))
	if want := before + "h\x02w\x05errorw\x0csystem_limit"; len(c.answers) != 2 || c.answers[0] != want ||
		c.answers[1] != want {
		t.Errorf("%q, want %q twice", c.answers, want)
	}
}
