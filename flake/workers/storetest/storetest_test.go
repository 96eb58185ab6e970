package storetest

import (
	"context"
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

// memory is a store that keeps its promises, except for its flaw.
type memory struct {
	mu    sync.Mutex
	data  map[string]string
	saved map[string]string // what it answers to stale reads

	flaw     string
	restored bool
	end      chan struct{} // closed at the end of the test
}

func (m *memory) List(ctx context.Context, prefix string) (map[string]string, error) {
	return m.list(ctx, nil, prefix)
}

func (m *memory) list(ctx context.Context, p *path, prefix string) (map[string]string, error) {
	if err := p.pass(ctx, m, false); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	has := strings.HasPrefix
	switch m.flaw {
	case "lists ignore case":
		has = func(key, prefix string) bool { return strings.HasPrefix(strings.ToLower(key), strings.ToLower(prefix)) }
	case "lists have a wildcard":
		has = func(key, prefix string) bool {
			i := strings.Index(prefix, "_")
			return i >= 0 && len(key) >= len(prefix) && key[:i] == prefix[:i] && key[i+1:len(prefix)] == prefix[i+1:] ||
				strings.HasPrefix(key, prefix)
		}
	case "lists ignore slashes":
		has = func(key, prefix string) bool { return strings.HasPrefix(key, strings.TrimRight(prefix, "/")) }
	}
	all := map[string]string{}
	for key, text := range m.data {
		if has(key, prefix) && (m.flaw != "lists end" || len(all) < 500) {
			all[key] = text
		}
	}
	return all, m.sign()
}

// sign returns an error while the restore is not known.
func (m *memory) sign() error {
	if m.restored && m.flaw != "the sign is late" {
		return errors.New("restored")
	}
	return nil
}

func (m *memory) Get(ctx context.Context, keys ...string) ([]string, error) {
	return m.get(ctx, nil, keys...)
}

func (m *memory) get(ctx context.Context, p *path, keys ...string) (texts []string, err error) {
	if err := p.pass(ctx, m, false); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	from := m.data
	if m.flaw == "reads are stale" {
		from, m.saved = m.saved, maps.Clone(m.data)
	}
	for i, key := range keys {
		if i > 0 && m.flaw == "reads are torn" {
			m.mu.Unlock()
			runtime.Gosched()
			m.mu.Lock()
		}
		texts = append(texts, from[key])
	}
	return texts, m.sign()
}

func (m *memory) Swap(ctx context.Context, have, write map[string]string) (bool, error) {
	return m.swap(ctx, nil, have, write)
}

func (m *memory) swap(ctx context.Context, p *path, have, write map[string]string) (bool, error) {
	if err := p.pass(ctx, m, true); err != nil && !errors.Is(err, errLate) && !errors.Is(err, errNoAnswer) {
		return false, err
	} else if errors.Is(err, errLate) {
		p.wg.Go(func() {
			<-ctx.Done()
			time.Sleep(short / 2) // how late it is does not matter
			m.swap(context.Background(), nil, have, write)
		})
		<-ctx.Done()
		return false, ctx.Err()
	} else if errors.Is(err, errNoAnswer) {
		_, err := m.swap(context.Background(), nil, have, write)
		<-ctx.Done()
		if m.flaw == "a lost answer is a failure" {
			return false, nil
		}
		return false, errors.Join(err, ctx.Err())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.sign(); err != nil {
		return false, err
	}
	for key, text := range have {
		if m.flaw == "swaps compare one key" && strings.Contains(key, "/n/000000000002") {
			continue
		}
		if m.flaw == "swaps ignore missing keys" && text == "" {
			continue
		}
		if m.data[key] != text {
			if m.flaw == "swaps write in part" {
				for key, text := range write {
					m.data[key] = text
					break
				}
			}
			return false, nil
		}
	}
	for key, text := range write {
		if m.flaw == "swaps are torn" {
			m.mu.Unlock()
			runtime.Gosched()
			m.mu.Lock()
		}
		if m.flaw == "values are short" {
			text = text[:min(len(text), 500)]
		}
		m.data[key] = text
	}
	return true, nil
}

func (m *memory) Cluster(ctx context.Context) (string, error) {
	if m.flaw == "the cluster changes" {
		return fmt.Sprint(time.Now().UnixNano()), ctx.Err()
	}
	return "memory", ctx.Err()
}

func (m *memory) Clocks(ctx context.Context, now func() uint64) []time.Duration {
	if ctx.Err() != nil {
		return nil
	}
	off := time.Until(time.UnixMilli(int64(now())))
	if m.flaw == "the clock is behind" {
		off = -off
	}
	return []time.Duration{off}
}

func (m *memory) Restored() (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.restored
	m.restored = was && m.flaw == "signs repeat"
	return "restored", was
}

var (
	errCut      = errors.New("no connection")
	errNoAnswer = errors.New("the answer is lost")
	errLate     = errors.New("the request is late")
)

// path is a client of a memory, and its Link.
type path struct {
	*memory
	wg    *sync.WaitGroup
	mu    sync.Mutex
	state string
}

func (p *path) List(ctx context.Context, prefix string) (map[string]string, error) {
	return p.memory.list(ctx, p, prefix)
}
func (p *path) Get(ctx context.Context, keys ...string) ([]string, error) {
	return p.memory.get(ctx, p, keys...)
}
func (p *path) Swap(ctx context.Context, have, write map[string]string) (bool, error) {
	return p.memory.swap(ctx, p, have, write)
}
func (p *path) Cluster(ctx context.Context) (string, error) {
	if err := p.pass(ctx, p.memory, false); err != nil {
		return "", err
	}
	return p.memory.Cluster(ctx)
}
func (p *path) Clocks(ctx context.Context, now func() uint64) []time.Duration {
	if p.pass(ctx, p.memory, false) != nil {
		return nil
	}
	return p.memory.Clocks(ctx, now)
}

// pass waits while nothing gets through.
func (p *path) pass(ctx context.Context, m *memory, write bool) error {
	if p == nil {
		if m.flaw == "calls ignore their context" {
			return nil
		}
		return ctx.Err()
	}
	p.mu.Lock()
	state := p.state
	p.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case state == "cut" && m.flaw == "a cut is a refusal":
		return workers.ErrRefused
	case state == "cut":
		<-ctx.Done() // as a client that tries again
		return errCut
	case state == "requests" && m.flaw == "calls leave goroutines":
		p.wg.Go(func() { <-m.end })
		fallthrough
	case state == "requests":
		<-ctx.Done()
		return ctx.Err()
	case state == "answers" && write:
		return errNoAnswer
	case state == "late" && write:
		return errLate
	}
	return nil
}

func (p *path) set(state string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = state
}

func (p *path) DropRequests() { p.set("requests") }
func (p *path) DropAnswers()  { p.set("answers") }
func (p *path) Cut()          { p.set("cut") }
func (p *path) Join()         { p.set("") }
func (p *path) Delay()        { p.set("late") }

// config returns the configuration for a store in memory.
func (m *memory) config(wg *sync.WaitGroup) Config {
	return Config{
		Open: func() workers.Store { return m },
		Link: func() (workers.Store, Link) {
			p := &path{memory: m, wg: wg}
			return p, p
		},
		Refused: map[string]func(context.Context) error{"always": func(context.Context) error {
			if m.flaw == "a refusal is not one" {
				return errCut
			}
			return workers.ErrRefused
		}},
		Kill: func() {
			if m.flaw == "writes are not durable" {
				m.mu.Lock()
				defer m.mu.Unlock()
				clear(m.data)
			}
		},
		Restore: func(change func()) {
			m.mu.Lock()
			saved := maps.Clone(m.data)
			m.mu.Unlock()
			change()
			m.mu.Lock()
			defer m.mu.Unlock()
			m.data, m.restored = saved, m.flaw != "no sign"
		},
	}
}

func newMemory(flaw string) *memory {
	return &memory{data: map[string]string{}, saved: map[string]string{}, flaw: flaw, end: make(chan struct{})}
}

func TestMemory(t *testing.T) {
	var wg sync.WaitGroup
	Test(t, newMemory("").config(&wg))
	wg.Wait()
}

// failures counts the failures of a check.
type failures struct {
	testing.TB
	mu  sync.Mutex
	all []string
}

func (f *failures) Helper()             {}
func (f *failures) Logf(string, ...any) {}
func (f *failures) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, fmt.Sprintf(format, args...))
}
func (f *failures) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	runtime.Goexit()
}

// Each flaw of a store fails the parts of the test that are named.
func TestFlaws(t *testing.T) {
	for flaw, name := range map[string]string{
		"lists ignore case":          "Prefixes",
		"lists have a wildcard":      "Prefixes",
		"lists ignore slashes":       "Prefixes",
		"lists end":                  "Thousand",
		"values are short":           "Longest",
		"reads are stale":            "Together",
		"reads are torn":             "Together",
		"swaps are torn":             "Together",
		"swaps compare one key":      "Swap",
		"swaps ignore missing keys":  "Swap",
		"swaps write in part":        "Swap",
		"the cluster changes":        "Cluster",
		"the clock is behind":        "Clocks",
		"calls ignore their context": "Cancel",
		"a cut is a refusal":         "CancelInFlight",
		"calls leave goroutines":     "CancelInFlight",
		"a lost answer is a failure": "Disturbed",
		"a refusal is not one":       "Refused",
		"writes are not durable":     "Kill",
		"no sign":                    "Restore",
		"signs repeat":               "Restore",
		"the sign is late":           "Restore",
	} {
		t.Run(flaw, func(t *testing.T) {
			var wg sync.WaitGroup
			f, m := &failures{TB: t}, newMemory(flaw)
			c := newCheck(f, m.config(&wg), name)
			c.patience = time.Second
			i := slices.IndexFunc(parts, func(p part) bool { return p.name == name })
			done := make(chan struct{})
			go func() {
				defer close(done)
				parts[i].check(c)
			}()
			<-done
			close(m.end)
			wg.Wait()
			if len(f.all) == 0 {
				t.Errorf("%s passes", name)
			} else {
				t.Logf("%.300s", f.all[0])
			}
		})
	}
}
