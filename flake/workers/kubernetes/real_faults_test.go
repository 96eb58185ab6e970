//go:build kubernetes

package kubernetes

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/storetest"
)

var rounds = flag.Int("faults.rounds", 1, "how many times to cause each fault of Kubernetes")

// hold is short, so that faults are longer.
const hold = 3 * time.Second

// Both programs are killed and started, a right is withdrawn, the token is replaced, the ConfigMap is deleted, and
// etcd is restored, while nodes make ids. No id repeats, and all nodes go on.
func TestRealFaults(t *testing.T) {
	k, c := start(t)
	await(t, func() error { return cluster(open(t, c)) })
	f := storetest.NewFleet(t, hold)
	for range 4 {
		f.Start(open(t, c))
	}
	goOn := func(what string) {
		t.Helper()
		f.GoOn(what)
		f.Written(what)
	}
	goOn("at the start")
	for range *rounds {
		k.Kill()
		k.Start()
		goOn("the API server is killed")
		k.Kill()
		f.Beyond()
		k.Start()
		goOn("the API server is killed, for longer than hold")
		k.KillEtcd()
		f.Beyond()
		k.StartEtcd()
		k.Ready()
		goOn("etcd is killed, for longer than hold")
		k.Rules(namespace, "flake", "[]")
		f.Beyond()
		k.Rules(namespace, "flake", rules)
		goOn("the rights are withdrawn, for longer than hold")
		if err := os.WriteFile(c.TokenFile, []byte("expired"), 0o600); err != nil {
			t.Fatal(err)
		}
		f.Beyond()
		if err := os.WriteFile(c.TokenFile, []byte(k.Token(namespace, "flake")), 0o600); err != nil {
			t.Fatal(err)
		}
		goOn("the token is not valid, for longer than hold")
		k.Must(http.MethodDelete, mapPath, "")
		f.Start(open(t, c)) // it knows nothing
		goOn("the ConfigMap is deleted, and a new node starts")
		f.StopLast()
	}
	if err := f.End(); err != nil {
		t.Log(err)
	}
}

// etcd is restored from a copy of its data while nodes run. All that the nodes know tells them so, or
// they claim numbers that nobody has.
func TestRealRestored(t *testing.T) {
	k, c := start(t)
	saved := filepath.Join(t.TempDir(), "saved")
	await(t, func() error { return cluster(open(t, c)) })
	early := node(t, open(t, c), "early", nil)
	step(t, early)
	k.Copy(saved)
	first := step(t, early)
	late := node(t, open(t, c), "late", nil)
	second := step(t, late)
	k.Restore(saved)
	// A node that knows nothing could get the number of the late one, if the others did not notice first.
	again, now := step(t, late), step(t, early)
	fresh := step(t, node(t, open(t, c), "fresh", nil))
	for name, claim := range map[string]*workers.Claim{"early": now, "late": again} {
		t.Logf("%s: number %d", name, claim.Number())
		if claim.Number() == fresh.Number() {
			t.Errorf("%s and fresh have number %d", name, claim.Number())
		}
	}
	if mark := max(first.Milli(), second.Milli()); fresh.After() < mark-uint64(time.Minute/time.Millisecond) {
		t.Errorf("new ids begin at %d; the marks were up to %d", fresh.After(), mark)
	}
	floor, err := workers.ReadFloor(t.Context(), open(t, c), "flake")
	if err != nil || floor.Mark == 0 {
		t.Errorf("floor %v, %v", floor, err)
	}
}

func TestRealDeleted(t *testing.T) {
	k, c := start(t)
	await(t, func() error { return cluster(open(t, c)) })
	testDeleted(t, func() *Store { return open(t, c) }, func() { k.Must(http.MethodDelete, mapPath, "") })
}

// Many nodes claim numbers at the same time, and then write at the same time.
func TestRealTogether(t *testing.T) {
	_, c := start(t)
	await(t, func() error { return cluster(open(t, c)) })
	const count = 50
	owners := make([]*workers.Owner, count)
	took := make([]time.Duration, count)
	var wg sync.WaitGroup
	began := time.Now()
	for i := range owners {
		owners[i] = crowded(t, open(t, c), fmt.Sprint("node", i), count)
		wg.Go(func() {
			for owners[i].Step(t.Context()) != nil {
			}
			took[i] = time.Since(began)
		})
	}
	wg.Wait()
	numbers := map[uint64]bool{}
	for _, o := range owners {
		claim, _ := o.Claim()
		numbers[claim.Number()] = true
	}
	slices.Sort(took)
	t.Logf("%d claims of %d numbers: median %v, last %v", count, count, took[count/2], took[count-1])
	if len(numbers) != count {
		t.Errorf("%d numbers", len(numbers))
	}
	// Each store writes its own key.
	var writes, falses, fails atomic.Int64
	began = time.Now()
	for i := range count {
		wg.Go(func() {
			s, key, was := open(t, c), fmt.Sprintf("own/n/%012x", i), ""
			for n := range 10 {
				text := fmt.Sprint(n, strings.Repeat("v", 190))
				ok, err := s.Swap(t.Context(), map[string]string{key: was}, map[string]string{key: text})
				switch {
				case err != nil:
					fails.Add(1)
					t.Log(err)
					return
				case !ok:
					falses.Add(1)
				default:
					writes.Add(1)
				}
				was = text
			}
		})
	}
	wg.Wait()
	t.Logf("%d writes to own keys in %v; %d failed comparisons, %d errors", writes.Load(), time.Since(began),
		falses.Load(), fails.Load())
	if falses.Load() > 0 {
		t.Error("a write to an own key was said to conflict")
	}
	// All write the same key.
	writes.Store(0)
	falses.Store(0)
	fails.Store(0)
	began = time.Now()
	for range count {
		wg.Go(func() {
			s := open(t, c)
			for done := false; !done; {
				texts, err := s.Get(t.Context(), "same")
				if err == nil {
					n := 0
					fmt.Sscan(texts[0], &n)
					done, err = s.Swap(t.Context(), map[string]string{"same": texts[0]}, map[string]string{"same": fmt.Sprint(n + 1)})
				}
				switch {
				case err != nil:
					fails.Add(1)
				case !done:
					falses.Add(1)
				default:
					writes.Add(1)
				}
			}
		})
	}
	wg.Wait()
	texts, err := open(t, c).Get(t.Context(), "same")
	t.Logf("%d writes to one key in %v; %d failed comparisons, %d errors", writes.Load(), time.Since(began),
		falses.Load(), fails.Load())
	if err != nil || fails.Load() == 0 && texts[0] != fmt.Sprint(count) {
		t.Errorf("%q, %v", texts, err)
	}
}

func crowded(t *testing.T, s *Store, name string, numbers int) *workers.Owner {
	o, err := workers.New(workers.Config{Store: s, Prefix: "flake", First: 1, Last: uint64(numbers),
		Hold: 10 * time.Minute, Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// An API server that admits one write at a time answers 429 to others, with Retry-After.
func TestRealTooMany(t *testing.T) {
	_, c := start(t, "--max-mutating-requests-inflight=1", "--max-requests-inflight=1",
		"--enable-priority-and-fairness=false")
	await(t, func() error { return cluster(open(t, c)) })
	var refused atomic.Int64
	front := watched(t, c, func(r *http.Response) {
		if r.StatusCode == http.StatusTooManyRequests {
			refused.Add(1)
			if r.Header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
		}
	})
	var wg sync.WaitGroup
	var writes, fails atomic.Int64
	began := time.Now()
	for i := range 50 {
		wg.Go(func() {
			s := open(t, Config{URL: front})
			for n := range 4 {
				ok, err := s.Swap(t.Context(), nil, map[string]string{fmt.Sprintf("many/n/%012x", i): fmt.Sprint(n)})
				if err != nil {
					fails.Add(1)
				} else if ok {
					writes.Add(1)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d writes in %v, %d errors; %d answers were 429", writes.Load(), time.Since(began), fails.Load(),
		refused.Load())
	if writes.Load() < 100 || refused.Load() == 0 {
		t.Errorf("%d writes, %d answers were 429", writes.Load(), refused.Load())
	}
}

// watched returns a proxy that shows the answers of the API server.
func watched(t *testing.T, c Config, show func(*http.Response)) string {
	via := open(t, c).transport
	token, err := os.ReadFile(c.TokenFile)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		out, err := http.NewRequestWithContext(r.Context(), r.Method, c.URL+r.URL.Path, bytes.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		out.Header = r.Header.Clone()
		out.Header.Set("Authorization", "Bearer "+string(token))
		answer, err := via.RoundTrip(out)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer answer.Body.Close()
		show(answer)
		for name, values := range answer.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.StatusCode)
		io.Copy(w, answer.Body)
	})
}

// A proxy answers reads with what it read before. Nothing repeats: a write compares what it depends on, and
// an older answer than one before is not used.
func TestRealCache(t *testing.T) {
	_, c := start(t)
	await(t, func() error { return cluster(open(t, c)) })
	direct := node(t, open(t, c), "direct", nil)
	step(t, direct)
	kept := map[string]*httptest.ResponseRecorder{}
	var mu sync.Mutex
	var old atomic.Int64
	target, err := url.Parse(c.URL)
	if err != nil {
		t.Fatal(err)
	}
	server := httputil.NewSingleHostReverseProxy(target)
	server.Transport = open(t, c).transport
	stale := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		answer := kept[r.URL.Path]
		if r.Method != http.MethodGet || answer == nil {
			answer = httptest.NewRecorder()
			server.ServeHTTP(answer, r)
			if r.Method == http.MethodGet {
				kept[r.URL.Path] = answer
			}
		} else {
			old.Add(1)
		}
		w.WriteHeader(answer.Code)
		w.Write(answer.Body.Bytes())
	})
	cached := c
	cached.URL, cached.CAFile = stale, ""
	behind := node(t, open(t, cached), "behind", nil)
	behind.Step(t.Context())
	for range 6 {
		step(t, direct)
		step(t, node(t, open(t, c), "another", nil))
		behind.Step(t.Context())
	}
	numbers := map[uint64]int{}
	for _, o := range []*workers.Owner{direct, behind} {
		if claim, _ := o.Claim(); claim != nil && !claim.IsLost() {
			numbers[claim.Number()]++
		}
	}
	t.Logf("%d answers were old; numbers %v", old.Load(), numbers)
	for n, times := range numbers {
		if times > 1 {
			t.Errorf("number %d twice", n)
		}
	}
	if old.Load() == 0 {
		t.Error("no answer was old")
	}
}

// TestRealSizes checks and logs what a fleet costs etcd, and logs how long calls take.
func TestRealSizes(t *testing.T) {
	for _, count := range []int{1, 10, 100, 1000} {
		k, c := start(t)
		await(t, func() error { return cluster(open(t, c)) })
		s := open(t, c)
		o := crowded(t, s, "flake@10.0.0.1", 2*count+40)
		for o.Step(t.Context()) != nil {
		}
		claim, _ := o.Claim()
		all, err := s.List(t.Context(), "flake/")
		if err != nil {
			t.Fatal(err)
		}
		text, used := all[fmt.Sprintf("flake/n/%012x", claim.Number())], all[fmt.Sprintf("flake/used/%012x", claim.Number())]
		text += strings.Repeat("n", len("flake@flake-0.flake.ids.svc.cluster.local")-len("flake@10.0.0.1"))
		patch := []string{}
		for n := 1; n < count; n++ { // others, none of which is free
			name := uint64(n)
			if name >= claim.Number() {
				name++
			}
			const add = `{"op":"add","path":"/data/%s%012x","value":%q}`
			patch = append(patch, fmt.Sprintf(add, encode("flake/n/"), name, text),
				fmt.Sprintf(add, encode("flake/used/"), name, used))
		}
		code, said := k.Call(http.MethodPatch, mapPath, "", "application/json-patch+json", "["+strings.Join(patch, ",")+"]")
		if code != http.StatusOK {
			t.Fatal(code, said)
		}
		const writes = 60
		logged, stored := k.EtcdBytes()
		var extended, claimed []time.Duration
		for range writes {
			began := time.Now()
			if err := o.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
			extended = append(extended, time.Since(began))
		}
		logged2, stored2 := k.EtcdBytes()
		for range 20 {
			other := crowded(t, open(t, c), "another", 2*count+40)
			began := time.Now()
			if err := other.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
			claimed = append(claimed, time.Since(began))
		}
		slices.Sort(extended)
		slices.Sort(claimed)
		rate := float64(count) * 3 / 600
		each := (stored2 - stored) / writes
		if most := int64(300*count + 2000); each > most {
			t.Errorf("%d numbers: a write adds %d bytes to the database, more than %d", count, each, most)
		}
		t.Logf("%d numbers, hold 600 s: %.2f writes a second; a write adds %d bytes to the database and %d to the log, "+
			"so %.0f and %.0f a second, and %.1f MB of history in 5 minutes; a write takes %v, a claim %v (medians)",
			count, rate, each, (logged2-logged)/writes, rate*float64(each), rate*float64((logged2-logged)/writes),
			rate*float64(each)*300/1e6, extended[writes/2], claimed[10])
		k.Kill()
		k.KillEtcd()
	}
}
