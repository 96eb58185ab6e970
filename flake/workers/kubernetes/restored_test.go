package kubernetes

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/internal/answers"
)

const mapPath = "/api/v1/namespaces/ids/configmaps/" + DefaultName
const leasePath = "/apis/coordination.k8s.io/v1/namespaces/ids/leases/" + DefaultName

// set changes the metadata of the ConfigMap.
func (f *fake) set(uid, version string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.objects[mapPath].Metadata
	m["uid"], m["resourceVersion"] = uid, version
}

func TestRestored(t *testing.T) {
	type step struct {
		call         func(*Store) error
		uid, version string // of the ConfigMap; with uid "" it is deleted
		want         string // the sign
	}
	for name, steps := range map[string][]step{
		"no restore":   {{list, "a", "5", ""}, {get, "a", "5", ""}, {swap, "a", "6", ""}, {cluster, "a", "200", ""}},
		"the version":  {{list, "a", "5", ""}, {list, "a", "4", "is 4, but was 5"}, {list, "a", "3", ""}},
		"two restores": {{list, "a", "5", ""}, {list, "a", "4", "is 4"}, {list, "a", "4", ""}, {get, "a", "3", "was 4"}},
		"a longer version": {{list, "a", "99999999999999999999", ""}, {list, "a", "100000000000000000000", ""},
			{list, "a", "5", "is 5"}},
		"not a version":    {{list, "a", "x5", ""}, {list, "a", "x4", ""}, {list, "a", "", ""}},
		"the uid, read":    {{list, "a", "5", ""}, {list, "b", "6", "its uid was a, but is b"}, {list, "b", "6", ""}},
		"the uid, swap":    {{list, "a", "5", ""}, {swap, "b", "6", "its uid was a, but is b"}, {swap, "b", "6", ""}},
		"the uid, cluster": {{list, "a", "5", ""}, {cluster, "b", "6", "its uid was a, but is b"}, {cluster, "b", "6", ""}},
		"deleted, read":    {{list, "a", "5", ""}, {list, "", "", "was deleted"}, {list, "", "", ""}},
		"deleted, swap":    {{list, "a", "5", ""}, {swap, "", "", "was deleted"}},
		"deleted, cluster": {{list, "a", "5", ""}, {cluster, "", "", "was deleted"}},
	} {
		s, f := overFake(t)
		if err := swap(open(t, Config{URL: s.server})); err != nil {
			t.Fatal(err)
		}
		for i, step := range steps {
			if step.uid == "" {
				delete(f.objects, mapPath)
			} else {
				f.set(step.uid, step.version)
			}
			err := step.call(s)
			if errors.Is(err, answers.ErrRestored) != (step.want != "") || (err == nil) != (step.want == "") {
				t.Errorf("%s: step %d: %v", name, i, err)
			}
			if step.want != "" {
				asked := false
				f.before = func(*http.Request) http.HandlerFunc { asked = true; return nil }
				for _, call := range []func(*Store) error{list, get, swap, cluster} {
					if err := call(s); !errors.Is(err, answers.ErrRestored) || asked {
						t.Errorf("%s: step %d: before Restored returned the sign: %v", name, i, err)
					}
				}
				f.before = nil
			}
			wantSign(t, s, step.want)
			wantSign(t, s, "")
		}
	}
}

// An answer is compared with the answers that had arrived when its request was sent.
func TestRestoredInFlight(t *testing.T) {
	for name, tt := range map[string]struct {
		version string // in another answer, which arrives during the request
		heard   bool   // the other answer is a sign, which Restored returns
		want    bool   // the answer is accepted
	}{
		"a higher version":                {"9", false, true},
		"a sign":                          {"3", false, false},
		"a sign, which Restored returned": {"3", true, false},
	} {
		s, f := overFake(t)
		if err := swap(s); err != nil {
			t.Fatal(err)
		}
		f.set("a", "5")
		s.history = history{}
		if err := list(s); err != nil {
			t.Error(err)
		}
		busy, end := make(chan bool), make(chan bool)
		f.before = func(*http.Request) http.HandlerFunc {
			f.before = nil
			return func(w http.ResponseWriter, r *http.Request) {
				busy <- true
				<-end
				answer(200, strings.Replace(object1, `"u"`, `"a"`, 1)+"}")(w, r)
			}
		}
		done := make(chan error)
		go func() { done <- list(s) }()
		<-busy
		f.set("a", tt.version)
		if err := list(s); (err != nil) != (tt.version == "3") {
			t.Errorf("%s: %v", name, err)
		}
		if tt.heard {
			wantSign(t, s, "is 3, but was 5")
		}
		close(end)
		if err := <-done; (err == nil) != tt.want || err != nil && !errors.Is(err, answers.ErrRestored) {
			t.Errorf("%s: the answer to the earlier request: %v", name, err)
		}
		if f.set("a", "8"); tt.want && !errors.Is(list(s), answers.ErrRestored) {
			t.Errorf("%s: after the answer to the earlier request, a lower version is no sign", name)
		}
	}
	s := &Store{}
	before := seen{Facts: facts{uid: "a"}, Restores: 1} // another restore was noticed since
	if err := s.noteMissing(before); !errors.Is(err, answers.ErrRestored) {
		t.Error(err)
	}
	wantSign(t, s, "")
}

// The first node also makes the Lease. A later ConfigMap without keys is not that of a new fleet.
func TestWitness(t *testing.T) {
	s, f := overFake(t)
	again := func() *Store { return open(t, Config{URL: s.server}) } // a node that knows nothing
	if err := swap(s); err != nil || f.objects[leasePath] == nil {
		t.Fatal(err, f.objects)
	}
	if err := cluster(again()); err != nil {
		t.Error(err)
	}
	delete(f.objects, mapPath)
	for range 2 { // the first of them makes the ConfigMap
		s = again()
		if err := swap(s); !errors.Is(err, answers.ErrRestored) {
			t.Error(err)
		}
		wantSign(t, s, "the Lease flake-numbers names the uid of another")
		if err := cluster(s); err != nil {
			t.Error(err)
		}
	}
	if err := swap(s); err != nil { // the floor
		t.Error(err)
	}
	s = again()
	if err := swap(s); err != nil {
		t.Error(err)
	}
	delete(f.objects, leasePath)
	if err := cluster(again()); err != nil || f.objects[leasePath] == nil {
		t.Error(err, f.objects)
	}
	f.objects[mapPath].Data, f.objects[leasePath].Spec = nil, nil
	if err := cluster(again()); !errors.Is(err, answers.ErrRestored) {
		t.Error(err)
	}
}

// Nodes that start at the same time make one ConfigMap and one Lease.
func TestMadeTogether(t *testing.T) {
	for _, path := range []string{mapPath, leasePath} {
		s, f := overFake(t)
		f.before = func(r *http.Request) http.HandlerFunc {
			if r.Method == http.MethodGet && r.URL.Path == path {
				f.before = nil
				return func(w http.ResponseWriter, r *http.Request) { // then another node makes it
					f.answerTo(t, http.MethodGet, path, w)
					if err := cluster(open(t, Config{URL: s.server})); err != nil {
						t.Error(err)
					}
				}
			}
			return nil
		}
		id, err := s.Cluster(t.Context())
		if err != nil || id != f.objects[mapPath].Metadata["uid"] || f.uids != 2 {
			t.Errorf("%s: %q, %v; %d objects were made", path, id, err, f.uids)
		}
		wantSign(t, s, "")
	}
}

// node is an owner whose steps the test takes, with its own clock.
func node(t *testing.T, s *Store, name string, memory workers.Memory) *workers.Owner {
	t.Helper()
	o, err := workers.New(workers.Config{Store: s, Prefix: "flake", First: 1, Last: 8, Hold: time.Minute, Name: name,
		Memory: memory, Log: slog.New(slog.NewTextHandler(&bytes.Buffer{}, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func step(t *testing.T, o *workers.Owner) *workers.Claim {
	t.Helper()
	var err error
	for range 5 {
		if err = o.Step(context.Background()); err == nil {
			c, _ := o.Claim()
			return c
		}
	}
	t.Fatal(err)
	return nil
}

// The ConfigMap is deleted while a node runs. It, and a node that starts first and knows nothing, get
// numbers above all ids that were made.
func TestDeletedWhileRunning(t *testing.T) {
	s, f := overFake(t)
	testDeleted(t, func() *Store { return open(t, Config{URL: s.server}) }, func() { delete(f.objects, mapPath) })
}

func testDeleted(t *testing.T, openStore func() *Store, remove func()) {
	running := node(t, openStore(), "a", nil)
	was := step(t, running)
	mark := was.Milli()
	remove()
	fresh := step(t, node(t, openStore(), "b", nil))
	if fresh.After() < mark {
		t.Errorf("the ids of the new node begin at %d, but the mark of the other is %d", fresh.After(), mark)
	}
	now := step(t, running)
	if now == was && now.Number() == fresh.Number() {
		t.Errorf("both have number %d", now.Number())
	}
	if now != was && now.After() < mark {
		t.Errorf("new ids begin at %d, before %d", now.After(), mark)
	}
	another := step(t, node(t, openStore(), "c", nil))
	if another.Number() == fresh.Number() || another.Number() == now.Number() {
		t.Errorf("number %d twice", another.Number())
	}
}

// After the ConfigMap was deleted while no node ran, a node that has its disk refuses to start, and says
// what moves the fleet.
func TestDeletedWhileStopped(t *testing.T) {
	s, f := overFake(t)
	memory := &disk{}
	step(t, node(t, s, "a", memory))
	delete(f.objects, mapPath)
	o := node(t, open(t, Config{URL: s.server}), "a", memory)
	refuses := func() {
		t.Helper()
		var err error
		for range 3 {
			err = o.Step(t.Context())
		}
		if !errors.As(err, new(workers.ElsewhereError)) || !errors.Is(err, workers.ErrRefused) {
			t.Error(err)
		}
	}
	move := func() {
		t.Helper()
		was := workers.Place(memory.kept.Cluster, "flake")
		if _, err := workers.AfterRestore(t.Context(), open(t, Config{URL: s.server}), "flake", workers.Restored{
			Clock: func() uint64 { return uint64(time.Now().UnixMilli()) }, Hold: time.Minute, Nonce: 1, From: was, Last: was,
		}); err != nil {
			t.Error(err)
		}
	}
	refuses()
	move()
	step(t, o)
	delete(f.objects, mapPath)
	move() // before any node starts
	step(t, node(t, open(t, Config{URL: s.server}), "a", memory))
}

// A node that has its disk refuses to start after the ConfigMap was deleted, until a running node has noticed.
func TestDeletedBeforeStart(t *testing.T) {
	s, f := overFake(t)
	running, memory := node(t, s, "a", nil), &disk{}
	claim := step(t, running)
	stopped := node(t, open(t, Config{URL: s.server}), "b", memory)
	step(t, stopped)
	if err := stopped.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	delete(f.objects, mapPath)
	started := node(t, open(t, Config{URL: s.server}), "b", memory)
	err := errors.Join(started.Step(t.Context()), started.Step(t.Context()))
	if !errors.As(err, new(workers.ElsewhereError)) {
		t.Error(err)
	}
	if step(t, running) != claim {
		t.Error("the running node has lost its number")
	}
	if c := step(t, node(t, open(t, Config{URL: s.server}), "b", memory)); c.Number() == claim.Number() {
		t.Errorf("number %d twice", c.Number())
	}
}

// disk is a node's disk.
type disk struct{ kept *workers.Kept }

func (d *disk) Number() *workers.Kept          { return d.kept }
func (d *disk) Remember(k *workers.Kept) error { d.kept = k; return nil }
func (d *disk) Latest() uint64                 { return uint64(time.Now().UnixMilli()) }

// A write does not reach an object that only has the same name.
func TestSwapOfOther(t *testing.T) {
	s, f := overFake(t)
	if err := swap(s); err != nil {
		t.Fatal(err)
	}
	f.set("other", "200")
	ok, err := s.Swap(t.Context(), nil, map[string]string{"p/b": "1"})
	if wrote := f.objects[mapPath].Data["p.b"]; ok || !errors.Is(err, answers.ErrRestored) || wrote != "" {
		t.Errorf("%v, %v; wrote %q", ok, err, wrote)
	}
}
