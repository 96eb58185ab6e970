package flakeserver

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/flake-go/flake/genserver"
	"github.com/flake-go/flake/node/etf"
)

// caller is the way back to a caller. Functions wait until it runs them.
type caller struct {
	ctx     context.Context
	serial  int
	full    bool // no function is taken
	crowded bool // no large answer is
	answers []string
	waiting []func()
	turns   []int
	done    int
}

func (c *caller) Caps() etf.Caps { return etf.AllCaps }
func (c *caller) Serial() int    { return c.serial }
func (c *caller) Buffer() []byte { return nil }

func (c *caller) Context() context.Context { return c.ctx }

func (c *caller) Go(f func()) bool {
	if !c.full {
		c.waiting = append(c.waiting, f)
	}
	return !c.full
}

func (c *caller) GoInOrder(f func()) bool { return c.Go(f) }

func (c *caller) Turn(size int) (func(), bool) {
	if c.crowded {
		return nil, false
	}
	c.turns = append(c.turns, size)
	return func() { c.done++ }, true
}

func (c *caller) Post(pid, alias, message []byte) { c.Answer(pid, alias, message) }

func (c *caller) Answer(_, _, message []byte) { c.answers = append(c.answers, string(message)) }

// A request for more than MaxInline ids holds nobody up: what comes after it is
// answered before.
func TestLargeRequests(t *testing.T) {
	tag := "a\x09"
	for request, large := range map[string]bool{
		"{get_many,256}": false, "{get_many,256,2}": false, "{get_binary,256}": false, "{lease,256}": false,
		"{get_many,257}": true, "{get_many,257,2}": true, "{get_binary,257}": true, "{lease,257}": true,
		"{get_many,65536,2}": true, "{get_many,65536,canonical}": true, "{get_many,65536}": true,
		"{get_binary,65536}": true, "{lease,1048576}": true,
	} {
		s := serverOf(&stock{perTick: share, left: 2 * MaxTicks}) // so that a lease has many runs
		c := &caller{ctx: t.Context()}
		message := func(request string) []byte {
			b := append(etf.MustAppendAtom([]byte("h\x03"), "$gen_call", etf.AllCaps), "h\x02"+pid+tag...)
			return append(b, external(t, request, etf.AllCaps)...)
		}
		g := &genserver.Server{Handler: s}
		for _, r := range []string{request, "hello"} {
			m := message(r)
			if err := g.Receive(m, c); err != nil {
				t.Fatal(err)
			}
			clear(m) // it is the connection's
		}
		for _, f := range c.waiting {
			f()
		}
		if len(c.answers) != 2 || len(c.turns) != c.done || (len(c.turns) == 1) != large {
			t.Fatalf("%s: %d answers, turns %d, of which %d ended", request, len(c.answers), c.turns, c.done)
		}
		order := []int{0, 1}
		if large {
			order = []int{1, 0}
			if got, size := len(c.answers[1]), c.turns[0]+len("h\x02"+tag); got > size {
				t.Errorf("%s: an answer of %d octets, where %d were asked for", request, got, size)
			}
		}
		if got, want := c.answers[order[1]], "h\x02"+tag+"w\x02ok"; got != want {
			t.Errorf("%s: then %q, want %q", request, got, want)
		}
		if got, want := c.answers[order[0]], "h\x02"+tag+"h\x02w\x02ok"; !strings.HasPrefix(got, want) {
			t.Errorf("%s: %.40q, want %q", request, got, want)
		}
	}
}

const pid = "Xw\x03a@b\x00\x00\x00\x09\x00\x00\x00\x00\x00\x00\x00\x01"

// What there is no room for is refused at once.
func TestNoRoom(t *testing.T) {
	for name, c := range map[string]*caller{"too many run": {ctx: t.Context(), full: true}, "too much is held": {ctx: t.Context(), crowded: true}} {
		s := serverOf(&stock{perTick: 1 << 16, left: 100})
		s.HandleSlowCall(genserver.From{Tag: []byte("j")}, external(t, "{lease,257}", etf.AllCaps), c)
		for _, f := range c.waiting {
			f()
		}
		if want := "h\x02jh\x02w\x05errorw\x0csystem_limit"; len(c.answers) != 1 || c.answers[0] != want {
			t.Errorf("%s: %q, want %q", name, c.answers, want)
		}
		if got := s.Stats(); got.IDs != 0 || got.Refusals != 1 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// alone is a source that is asked for one large request at a time.
type alone struct {
	Source
	t    *testing.T
	busy atomic.Bool
}

func (a *alone) Reserve(ctx context.Context, n int, meta uint8) (Run, error) {
	if a.busy.Swap(true) {
		a.t.Errorf("%d ids are taken, and others are", n)
	}
	runtime.Gosched()
	defer a.busy.Store(false)
	return a.Source.Reserve(ctx, n, meta)
}

// Large requests have their turns one at a time, by whatever door they come.
func TestLargeAlone(t *testing.T) {
	const each, n = 8, 10 * share
	s := serverOf(&stock{perTick: 1 << 16, left: 100})
	s.IDs = &alone{Source: s.IDs, t: t}
	var all sync.WaitGroup
	for range each {
		c := &caller{ctx: t.Context()}
		s.HandleSlowCall(genserver.From{}, external(t, fmt.Sprintf("{get_many,%d}", n), etf.AllCaps), c)
		all.Go(c.waiting[0])
		all.Go(func() { s.Serve(t.Context(), Request{Op: OpLease, N: n}) })
		all.Go(func() { apply(t, s, fmt.Sprintf("flake_harness:generate[%d]", n), Surroundings{}) })
	}
	all.Wait()
	if got := s.Stats().IDs; got != 3*each*n {
		t.Errorf("%d ids, want %d", got, 3*each*n)
	}
}

// What is no call that is known is logged, and nothing else is.
func TestUnknownIsLogged(t *testing.T) {
	for request, want := range map[string]bool{"hello": true, "{get,1,2,3}": true, "get": false, "{get,1}": false} {
		var log strings.Builder
		s := serverOf(&stock{perTick: 3, left: 100})
		s.Log = slog.New(slog.NewTextHandler(&log, nil))
		s.HandleSlowCall(genserver.From{}, external(t, request, etf.AllCaps), &caller{ctx: t.Context()})
		call(t, s, request)
		lines := strings.Count(log.String(), "call not known")
		if got := lines == 2 && strings.Count(log.String(), request) == 2; got != want || lines > 0 != want {
			t.Errorf("%s: logged %q", request, log.String())
		}
	}
}

// dry is a source whose ids are used up.
type dry struct{ Source }

func (dry) Reserve(ctx context.Context, _ int, _ uint8) (Run, error) {
	<-ctx.Done()
	return Run{}, ctx.Err()
}

// A request does not outlive its connection, however long it would take.
func TestRequestEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := &caller{ctx: ctx}
	s := &Server{IDs: dry{source(nil)}}
	from := genserver.From{Pid: []byte(pid), Tag: []byte("a\x09")}
	s.HandleSlowCall(from, external(t, "{lease,1048576}", etf.AllCaps), c)
	cancel()
	for _, f := range c.waiting {
		f()
	}
	s.HandleSlowCall(from, external(t, "get", etf.AllCaps), c)
	if len(c.answers) != 2 || c.done != 1 {
		t.Errorf("%q, %d turns ended", c.answers, c.done)
	}
}
