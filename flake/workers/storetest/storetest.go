// Package storetest checks that a [workers.Store] keeps the promises that its documentation lists,
// as package testing/fstest checks file systems. A [Proxy] loses and delays requests to a store.
package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/workers"
)

// Config says how to reach the store under test, and how to disturb it. Only Open is required.
type Config struct {
	// Open returns a new client. All clients share the store, which may contain other keys.
	Open func() workers.Store

	// Link returns a new client, and its path to the store.
	Link func() (workers.Store, Link)

	// Refused has calls that the store must refuse, by reason.
	Refused map[string]func(context.Context) error

	// Kill kills the store's processes and starts them again.
	Kill func()

	// Restore saves the store, calls change, and restores what it saved.
	Restore func(change func())

	// Contend is how long clients write the same keys; 0 means 1 second.
	Contend time.Duration

	// MaxPrefix is the size of the longest prefix that the store supports; 0 means 512 bytes.
	MaxPrefix int
}

// Link is the path of one client to the store. Each method replaces the effect of the previous one.
type Link interface {
	DropRequests() // nothing reaches the store
	DropAnswers()  // writes reach the store, but their answers do not arrive
	Delay()        // writes reach the store later, even if the client has given up by then
	Cut()          // connections are closed, and new ones fail
	Join()         // the path works
}

// Test checks a store. Each part of the test is a subtest.
func Test(t *testing.T, config Config) {
	for _, p := range parts {
		if p.needs != nil && !p.needs(config) {
			continue
		}
		t.Run(p.name, func(t *testing.T) { p.check(newCheck(t, config, p.name)) })
	}
}

type part struct {
	name  string
	check func(*check)
	needs func(Config) bool // nil means nothing
}

func hasLink(c Config) bool { return c.Link != nil }

var parts = []part{
	{"Swap", swaps, nil},
	{"Prefixes", prefixes, nil},
	{"Longest", longest, nil},
	{"Thousand", thousand, nil},
	{"Cluster", cluster, nil},
	{"Clocks", clocks, nil},
	{"Cancel", cancels, nil},
	{"Together", together, nil},
	{"CancelInFlight", cancelsInFlight, hasLink},
	{"LostAnswer", lostAnswer, hasLink},
	{"LateWrite", lateWrite, hasLink},
	{"Disturbed", disturbed, hasLink},
	{"Refused", refused, nil},
	{"Kill", kill, func(c Config) bool { return c.Kill != nil }},
	{"Restore", restore, func(c Config) bool { return c.Restore != nil }},
}

// tester is the part of *testing.T that checks use, so that tests of this package can replace it.
type tester interface {
	Context() context.Context
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

const (
	patience = 2 * time.Minute        // how long a store may fail to answer, for example while it elects a leader
	soon     = 20 * time.Second       // how long a call may continue after its context is done
	short    = 300 * time.Millisecond // the time limit of calls that need not be answered
)

// check is one part of a test. Its keys begin with its own prefix.
type check struct {
	tester
	Config
	prefix   string
	patience time.Duration
}

func newCheck(t tester, c Config, name string) *check {
	return &check{t, c, "storetest " + rand.Text() + "/" + name, patience}
}

// key returns the key of a number under the check's prefix.
func (c *check) key(n int) string { return number(c.prefix, n) }

// number and others return keys like those of package workers.
func number(prefix string, n int) string { return fmt.Sprintf("%s/n/%012x", prefix, n) }
func used(prefix string, n int) string   { return fmt.Sprintf("%s/used/%012x", prefix, n) }
func floor(prefix string) string         { return prefix + "/floor" }

// await calls try until it returns nil or the time is up. Its context is the test's, with a limit
// for each try.
func (c *check) await(what string, try func(ctx context.Context) error) {
	c.Helper()
	for start := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(c.Context(), 10*time.Second)
		err := try(ctx)
		cancel()
		if err == nil {
			return
		}
		if time.Since(start) > c.patience || c.Context().Err() != nil {
			c.Fatalf("%s: %v", what, err)
		}
	}
}

// get returns values, once the store answers.
func (c *check) get(s workers.Store, keys ...string) (texts []string) {
	c.Helper()
	c.await("Get", func(ctx context.Context) (err error) {
		texts, err = s.Get(ctx, keys...)
		return err
	})
	if len(texts) != len(keys) {
		c.Fatalf("Get of %d keys returned %d values", len(keys), len(texts))
	}
	return texts
}

func (c *check) list(s workers.Store, prefix string) (all map[string]string) {
	c.Helper()
	c.await("List", func(ctx context.Context) (err error) {
		all, err = s.List(ctx, prefix)
		return err
	})
	return all
}

// swap checks the result of a Swap that no other client disturbs, and what it wrote.
func (c *check) swap(s workers.Store, have, write map[string]string, want bool) {
	c.Helper()
	keys := slices.Sorted(maps.Keys(write))
	before := c.get(s, keys...)
	var ok bool
	c.await("Swap", func(ctx context.Context) (err error) {
		if ok, err = s.Swap(ctx, have, write); err == nil {
			return nil
		}
		// The write may have happened.
		texts := c.get(s, keys...)
		if wrote := !slices.Equal(texts, before); wrote {
			ok, err = true, nil
		}
		return err
	})
	if ok != want {
		c.Errorf("Swap(%.200q, %.200q) returned %v", have, write, ok)
	}
	for i, text := range c.get(s, keys...) {
		if wanted := write[keys[i]]; ok && text != wanted {
			c.Errorf("after Swap(%.200q, %.200q), %.100s is %.200q", have, write, keys[i], text)
		} else if !ok && text != before[i] {
			c.Errorf("Swap(%.200q, %.200q) returned false but wrote %.100s", have, write, keys[i])
		}
	}
}

type texts = map[string]string

func swaps(c *check) {
	s := c.Open()
	a, b, d := c.key(1), c.key(2), floor(c.prefix)
	c.swap(s, texts{a: "1"}, texts{a: "2"}, false) // it is missing
	c.swap(s, texts{a: ""}, texts{a: "1"}, true)
	c.swap(s, texts{a: ""}, texts{a: "2"}, false) // it is not missing
	c.swap(s, texts{a: "2"}, texts{a: "3"}, false)
	c.swap(s, texts{a: "1 "}, texts{a: "3"}, false)
	c.swap(s, texts{a: "1"}, texts{a: "1"}, true) // a write that changes nothing
	c.swap(s, texts{a: "1", b: "1"}, texts{b: "2"}, false)
	c.swap(s, texts{a: "1", b: ""}, texts{b: "2"}, true)
	c.swap(s, texts{a: "1", b: ""}, texts{a: "3"}, false)
	c.swap(s, texts{b: "2"}, texts{a: "4"}, true) // compares a key that it does not write
	c.swap(s, texts{a: "4", b: "2", d: ""}, texts{a: "5", b: "3", d: "1"}, true)
	c.swap(s, texts{a: "5", b: "3", d: ""}, texts{a: "6", b: "4", d: "2"}, false)
	c.swap(s, texts{a: "5", b: "2", d: "1"}, texts{a: "6", b: "4", d: "2"}, false)
	c.swap(s, texts{a: "4", b: "3", d: "1"}, texts{a: "6", b: "4", d: "2"}, false)
	c.swap(s, texts{}, texts{b: "5"}, true) // compares nothing
	for _, text := range []string{"A", "a", "a ", " a", `\x41`, `'"%_\`, "ü", "u\u0308", "日本 🙂"} {
		c.swap(s, texts{d: c.get(s, d)[0]}, texts{d: text}, true)
		c.swap(s, texts{d: strings.ToUpper(text) + "?"}, texts{d: "wrong"}, false)
	}
	other := c.Open()
	if got := c.get(other, b, c.key(3), a, d); !slices.Equal(got, []string{"5", "", "5", "日本 🙂"}) {
		c.Errorf("another client reads %q", got)
	}
}

// prefixes checks that lists contain the keys that begin with a prefix, byte by byte, and no others.
func prefixes(c *check) {
	s := c.Open()
	p := c.prefix + "/aB_%"
	all := texts{}
	for i, prefix := range []string{
		p, p + "2", p + "/", p + "/n", p + " ", p + "\\", p + "*", p + "ü", p + "\U0010ffff", strings.ToLower(p),
		strings.ToUpper(p), c.prefix + "/aBx%", c.prefix + "/aB_xx", c.prefix + "/aB", c.prefix + `/aB\_\%`,
	} {
		for j, key := range []string{number(prefix, 1), used(prefix, 1), floor(prefix)} {
			all[key] = fmt.Sprint(i, " ", j)
			c.swap(s, texts{key: ""}, texts{key: all[key]}, true)
		}
	}
	for key, text := range all {
		if got := c.get(s, key)[0]; got != text {
			c.Errorf("%q is %q, not %q", key, got, text)
		}
		prefix := key[:strings.LastIndexByte(key, '/')+1]
		want := maps.Clone(all)
		maps.DeleteFunc(want, func(key, _ string) bool { return !strings.HasPrefix(key, prefix) })
		if got := c.list(s, prefix); !maps.Equal(got, want) {
			c.Errorf("List(%q) returned %q, not %q", prefix, got, want)
		}
	}
	if got := c.list(s, p+"/none/"); len(got) > 0 {
		c.Errorf("List of a prefix without keys returned %q", got)
	}
}

func longest(c *check) {
	s := c.Open()
	size := c.MaxPrefix
	if size == 0 {
		size = 512
	}
	prefix := c.prefix + "/" + strings.Repeat("p", max(size-len(c.prefix)-1, 0))
	value := strings.Repeat("v", 1<<10)
	key, place := number(prefix, 0xffff), strings.Repeat("c", 64)+":"+prefix
	places := strings.Repeat(place+" ", 16)
	c.swap(s, texts{key: "", floor(prefix): ""},
		texts{key: value, used(prefix, 0xffff): "1 600000", floor(prefix): places}, true)
	c.swap(s, texts{key: value[1:] + "w", floor(prefix): places}, texts{key: "1"}, false)
	c.swap(s, texts{key: value, floor(prefix): places[1:]}, texts{key: "1"}, false)
	if got := c.list(s, prefix+"/n/"); !maps.Equal(got, texts{key: value}) {
		c.Errorf("List returned %.200q", got)
	}
	c.swap(s, texts{key: value, floor(prefix): places}, texts{key: value[1:], floor(prefix): places + "x"}, true)
}

func thousand(c *check) {
	s := c.Open()
	const count = 1000
	want := texts{}
	for n := range count {
		key := c.key(n)
		want[key] = fmt.Sprint(n, " ", strings.Repeat("v", 180))
	}
	for chunk := range slices.Chunk(slices.Sorted(maps.Keys(want)), 3) {
		have, write := texts{}, texts{}
		for _, key := range chunk {
			have[key], write[key] = "", want[key]
		}
		c.await("Swap", func(ctx context.Context) error {
			if ok, err := s.Swap(ctx, have, write); ok || err != nil {
				return err
			}
			if got := c.get(s, chunk[0])[0]; got != want[chunk[0]] { // after an error it may have been written
				c.Fatalf("Swap of missing keys returned false")
			}
			return nil
		})
	}
	if got := c.list(s, c.prefix+"/n/"); !maps.Equal(got, want) {
		c.Errorf("List returned %d keys, and not those that were written", len(got))
	}
}

func cluster(c *check) {
	var ids []string
	for range 2 {
		s, ok := c.Open().(workers.Clustered)
		if !ok {
			return
		}
		for range 2 {
			c.await("Cluster", func(ctx context.Context) error {
				id, err := s.Cluster(ctx)
				ids = append(ids, id)
				return err
			})
			c.get(s.(workers.Store), c.key(1))
		}
	}
	if ids = slices.Compact(ids); len(ids) != 1 || ids[0] == "" {
		c.Errorf("the ids of the cluster are %q", ids)
	}
}

func clocks(c *check) {
	s, ok := c.Open().(workers.Dated)
	if !ok {
		return
	}
	for _, ahead := range []time.Duration{0, time.Hour, -time.Hour} {
		now := func() uint64 { return uint64(time.Now().Add(ahead).UnixMilli()) }
		var offsets []time.Duration
		c.await("Clocks", func(ctx context.Context) error {
			if offsets = s.Clocks(ctx, now); len(offsets) == 0 {
				return errors.New("no clock")
			}
			return nil
		})
		for _, off := range offsets {
			if (off - ahead).Abs() > time.Minute {
				c.Errorf("a clock that is %v ahead is said to be %v ahead", ahead, off)
			}
		}
	}
}

// calls returns one call of each kind. Each fails or, if it cannot, returns an error of its own.
func (c *check) calls(s workers.Store) map[string]func(context.Context) error {
	all := map[string]func(context.Context) error{
		"List": func(ctx context.Context) error { _, err := s.List(ctx, c.prefix+"/n/"); return err },
		"Get":  func(ctx context.Context) error { _, err := s.Get(ctx, c.key(1), c.key(2)); return err },
		"Swap": func(ctx context.Context) error {
			_, err := s.Swap(ctx, texts{c.key(1): ""}, texts{c.key(2): "1"})
			return err
		},
	}
	if s, ok := s.(workers.Clustered); ok {
		all["Cluster"] = func(ctx context.Context) error { _, err := s.Cluster(ctx); return err }
	}
	if s, ok := s.(workers.Dated); ok {
		all["Clocks"] = func(ctx context.Context) error {
			if len(s.Clocks(ctx, func() uint64 { return 0 })) == 0 {
				return errors.New("no clock")
			}
			return nil
		}
	}
	return all
}

// fails checks that a call returns soon, with an error that is not a refusal.
func (c *check) fails(what string, ctx context.Context, call func(context.Context) error) {
	c.Helper()
	done := make(chan error, 1)
	go func() { done <- call(ctx) }()
	<-ctx.Done()
	select {
	case err := <-done:
		if err == nil || errors.Is(err, workers.ErrRefused) {
			c.Errorf("%s returned the error %v", what, err)
		}
	case <-time.After(soon):
		c.Fatalf("%s has not returned %v after its context was done", what, soon)
	}
}

func cancels(c *check) {
	ctx, cancel := context.WithCancel(c.Context())
	cancel()
	s := c.Open()
	for name, call := range c.calls(s) {
		c.fails(name+" with a context that is done", ctx, call)
	}
	if got := c.get(s, c.key(2))[0]; got != "" { // nothing was sent, so nothing may be written
		c.Errorf("a Swap whose context was done wrote %q", got)
	}
}

func cancelsInFlight(c *check) {
	s, link := c.Link()
	calls := c.calls(s)
	for name, call := range calls {
		c.await(name, call)
	}
	before := runtime.NumGoroutine()
	const times = 5
	for name, disturb := range map[string]func(){"DropRequests": link.DropRequests, "Cut": link.Cut} {
		disturb()
		for call := range calls {
			for range times {
				ctx, cancel := context.WithTimeout(c.Context(), 20*time.Millisecond)
				c.fails(call+" during "+name, ctx, calls[call])
				cancel()
			}
		}
		link.Join()
		for name, call := range calls {
			c.await(name, call)
		}
	}
	c.await("goroutines", func(context.Context) error {
		if n := runtime.NumGoroutine(); n > before+times { // a few may be those of others
			return fmt.Errorf("%d, %d before", n, before)
		}
		return nil
	})
}

// lostAnswer checks that a write without an answer is not said to have failed for good, and that
// the next read says whether it happened.
func lostAnswer(c *check) {
	s, link := c.Link()
	other := c.Open()
	happened := 0
	const times = 5
	for n := range times {
		key := c.key(n)
		c.swap(s, texts{key: ""}, texts{key: "1"}, true)
		link.DropAnswers()
		ctx, cancel := context.WithTimeout(c.Context(), short)
		c.fails("Swap without an answer", ctx, func(ctx context.Context) error {
			_, err := s.Swap(ctx, texts{key: "1"}, texts{key: "2"})
			return err
		})
		cancel()
		link.Join()
		// Once another write has succeeded, the answer is final.
		var now string
		c.await("Swap", func(ctx context.Context) error {
			now = c.get(s, key)[0]
			ok, err := other.Swap(ctx, texts{key: now}, texts{key: now + "+"})
			if err == nil && !ok {
				err = errors.New("the value changes")
			}
			return err
		})
		switch now = strings.TrimRight(now, "+"); {
		case now == "2":
			happened++
		case now != "1":
			c.Errorf("a write of 2 over 1 left %q", now)
		}
		if got := strings.TrimRight(c.get(s, key)[0], "+"); got != now {
			c.Errorf("the value was %q and is now %q", now, got)
		}
	}
	c.Logf("%d of %d writes without an answer happened", happened, times)
}

// lateWrite checks that a write that arrives late compares the values that the store has by then.
func lateWrite(c *check) {
	s, link := c.Link()
	other := c.Open()
	key, last := c.key(1), c.key(2)
	c.swap(s, texts{key: ""}, texts{key: "1"}, true)
	c.get(s, key, last)
	link.Delay()
	for _, w := range []struct{ have, write texts }{
		{texts{key: "1"}, texts{key: "late"}}, {texts{last: ""}, texts{last: "later"}},
	} {
		ctx, cancel := context.WithTimeout(c.Context(), short)
		c.fails("Swap that is delayed", ctx, func(ctx context.Context) error {
			_, err := s.Swap(ctx, w.have, w.write)
			return err
		})
		cancel()
	}
	c.await("Swap", func(ctx context.Context) error {
		_, err := other.Swap(ctx, texts{key: "1"}, texts{key: "2"})
		return err
	})
	now := c.get(other, key)[0]
	late := false
	for start := time.Now(); !late && time.Since(start) < 5*time.Second; time.Sleep(5 * time.Millisecond) {
		late = c.get(other, last)[0] == "later"
	}
	link.Join()
	if got := c.get(other, key)[0]; got != now || now != "2" && now != "late" {
		c.Errorf("the value was %q and is now %q", now, got)
	}
	c.Logf("a write that was late happened: %v", late)
}

func refused(c *check) {
	for reason, call := range c.Refused {
		ctx, cancel := context.WithTimeout(c.Context(), patience)
		if err := call(ctx); !errors.Is(err, workers.ErrRefused) {
			c.Errorf("%s: the error does not wrap workers.ErrRefused: %v", reason, err)
		} else {
			c.Logf("%s: %v", reason, err)
		}
		cancel()
	}
}

func together(c *check) {
	d := c.Contend
	if d == 0 {
		d = time.Second
	}
	r := startRace(c, c.patience, c.Open(), c.Open())
	defer r.halt()
	for start := time.Now(); time.Since(start) < d; { // in steps, so that a store that stops is noticed
		r.progress(0, 1)
	}
	r.end()
}

func disturbed(c *check) {
	s, link := c.Link()
	r := startRace(c, 2*short, s, c.Open())
	defer r.halt()
	for range 2 {
		for _, disturb := range []func(){link.DropAnswers, link.Delay, link.DropRequests, link.Cut} {
			disturb()
			r.progress(1)
			r.failure(0)
			link.Join()
			r.progress(0, 1)
		}
	}
	r.end()
}

func kill(c *check) {
	r := startRace(c, 2*time.Second, c.Open(), c.Open())
	defer r.halt()
	for range 3 {
		r.progress(0, 1)
		c.Kill()
	}
	r.progress(0, 1)
	r.end()
}

// restore checks what a client reads after a restore, and that the first read of a store that
// notices restores comes after the sign.
func restore(c *check) {
	s, key := c.Open(), c.key(1)
	c.swap(s, texts{key: ""}, texts{key: "before"}, true)
	const writes = 10
	c.Restore(func() {
		for n := range writes {
			c.swap(s, texts{key: c.get(s, key)[0]}, texts{key: fmt.Sprint("after ", n)}, true)
		}
	})
	r, notices := s.(workers.Restorable)
	var signs []string
	var text string
	c.await("Get", func(ctx context.Context) error {
		got, err := s.Get(ctx, key)
		if notices {
			if sign, ok := r.Restored(); ok {
				signs = append(signs, sign)
				if err == nil {
					c.Errorf("a call succeeded although Restored had not yet returned the sign %q", sign)
				}
			}
		}
		if err == nil {
			text = got[0]
		}
		return err
	})
	if text != "before" {
		c.Errorf("after the restore the value is %q", text)
	}
	if notices && (len(signs) != 1 || signs[0] == "") {
		c.Errorf("the signs of one restore are %q", signs)
	}
	c.Logf("the sign is %q", signs)
	c.swap(s, texts{key: "before"}, texts{key: "again"}, true)
	if notices {
		if sign, ok := r.Restored(); ok {
			c.Errorf("another sign of the same restore: %q", sign)
		}
	}
}

// race is a number of clients that write two keys at the same time. Both always have the same value,
// which begins with a count that increases by one with each write.
type race struct {
	*check
	a, b    string
	limit   time.Duration
	clients []workers.Store
	stop    context.CancelFunc
	wg      sync.WaitGroup

	mu     sync.Mutex
	known  int // the highest count that any client has read or written
	writes map[string]write
	did    []int // by client, how many writes it made
	failed []int // by client, how many of its calls failed
	last   error
}

// write is an attempt to replace have.
type write struct {
	have string
	ok   bool
	err  error
}

// startRace starts the clients. Each call has a time limit.
func startRace(c *check, limit time.Duration, clients ...workers.Store) *race {
	ctx, stop := context.WithCancel(c.Context())
	r := &race{check: c, limit: limit, a: c.key(1), b: c.key(2), clients: clients, stop: stop, writes: map[string]write{},
		did: make([]int, len(clients)), failed: make([]int, len(clients))}
	for i, s := range clients {
		r.wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if err := r.step(ctx, s, i, n); err != nil {
					r.mu.Lock()
					r.failed[i], r.last = r.failed[i]+1, err
					r.mu.Unlock()
					select {
					case <-ctx.Done():
					case <-time.After(5 * time.Millisecond):
					}
				}
			}
		})
	}
	return r
}

// step reads the keys and writes the next value.
func (r *race) step(ctx context.Context, s workers.Store, client, n int) error {
	ctx, cancel := context.WithTimeout(ctx, r.limit)
	defer cancel()
	r.mu.Lock()
	known := r.known
	r.mu.Unlock()
	var now string
	if n%4 == 3 {
		all, err := s.List(ctx, r.prefix+"/n/")
		if err != nil {
			return err
		}
		if now = all[r.a]; now != all[r.b] {
			r.Errorf("List returned %q", all)
		}
	} else {
		both, err := s.Get(ctx, r.a, r.b)
		if err != nil {
			return err
		}
		if now = both[0]; now != both[1] {
			r.Errorf("Get returned %q", both)
		}
	}
	count := 0
	fmt.Sscan(now, &count)
	if count < known {
		r.Errorf("a read returned %q after %d had been read or written", now, known)
	}
	text := fmt.Sprintf("%d by %d.%d", count+1, client, n)
	ok, err := s.Swap(ctx, texts{r.a: now, r.b: now}, texts{r.a: text, r.b: text})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes[text] = write{now, ok, err}
	r.known = max(r.known, count)
	if err == nil && ok {
		r.known = max(r.known, count+1)
		r.did[client]++
	}
	return err
}

// progress waits until each of the clients has written again.
func (r *race) progress(clients ...int) {
	r.Helper()
	r.more("writes", r.did, clients...)
}

// failure waits until another call of a client has failed.
func (r *race) failure(client int) {
	r.Helper()
	r.more("calls that fail", r.failed, client)
}

// more waits until the count of each of the clients has increased.
func (r *race) more(what string, counts []int, clients ...int) {
	r.Helper()
	r.mu.Lock()
	before := slices.Clone(counts)
	r.mu.Unlock()
	r.await(what, func(context.Context) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, i := range clients {
			if counts[i] == before[i] {
				return fmt.Errorf("client %d has no more; the last error is %w", i, r.last)
			}
		}
		return nil
	})
}

// halt stops the clients.
func (r *race) halt() {
	r.stop()
	r.wg.Wait()
}

// end stops the clients. Then the writes that led to the last value are exactly those that
// succeeded, and some of those that ended with an error.
func (r *race) end() {
	r.Helper()
	r.halt()
	now := r.get(r.clients[len(r.clients)-1], r.a)[0]
	made, unknown := 0, 0
	for text := now; text != ""; {
		w, found := r.writes[text]
		switch {
		case !found:
			r.Fatalf("the value %q was never written", text)
		case w.err != nil:
			unknown++
		case !w.ok:
			r.Errorf("the write of %q happened, but Swap returned false", text)
		default:
			made++
		}
		text = w.have
	}
	all := 0
	for _, w := range r.writes {
		if w.ok && w.err == nil {
			all++
		}
	}
	if made != all {
		r.Errorf("%d writes succeeded, but only %d of them led to the last value, %q", all, made, now)
	}
	for _, s := range r.clients {
		if s, ok := s.(workers.Restorable); ok {
			if sign, ok := s.Restored(); ok {
				r.Errorf("nothing was restored, but there is a sign: %q", sign)
			}
		}
	}
	r.Logf("%d writes, %v by client, and %d that ended with an error; %v calls failed", made, r.did, unknown, r.failed)
}
