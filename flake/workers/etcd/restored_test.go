package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/etcd/etcdtest"
	"github.com/flake-go/flake/flake/workers/internal/answers"
)

// fake is an endpoint whose answers have this header.
type fake struct {
	cluster, revision, term uint64
	asked                   int
	busy                    chan chan struct{} // unless nil, receives a channel that ends the request
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.asked++
	const text = `{"header":{"cluster_id":"%d","revision":"%d","raft_term":"%d"},"succeeded":true}`
	header := fmt.Sprintf(text, f.cluster, f.revision, f.term)
	if f.busy != nil {
		end := make(chan struct{})
		f.busy <- end
		<-end
	}
	io.WriteString(w, header)
}

func fakes(t *testing.T, all ...*fake) *Store {
	var c Config
	for _, f := range all {
		c.Endpoints = append(c.Endpoints, serve(t, f.ServeHTTP))
	}
	return open(t, c)
}

func list(s *Store) error { _, err := s.List(context.Background(), "p/"); return err }
func swap(s *Store) error {
	_, err := s.Swap(context.Background(), nil, map[string]string{"p/a": "1"})
	return err
}
func cluster(s *Store) error {
	_, err := s.Cluster(context.Background())
	return err
}

func wantSign(t *testing.T, s *Store, want string) {
	t.Helper()
	if sign, ok := s.Restored(); !strings.Contains(sign, want) || ok != (want != "") || sign == "" && ok {
		t.Errorf("sign %q, %v; want %q", sign, ok, want)
	}
}

func TestRestored(t *testing.T) {
	type step struct {
		call                    func(*Store) error
		cluster, revision, term uint64
		want                    string // the sign
	}
	for name, steps := range map[string][]step{
		"no restore":          {{list, 1, 5, 5, ""}, {swap, 1, 6, 5, ""}, {swap, 1, 6, 6, ""}, {list, 1, 6, 6, ""}},
		"the revision, read":  {{list, 1, 5, 5, ""}, {list, 1, 4, 5, "the revision at"}, {list, 1, 3, 5, ""}},
		"two restores":        {{list, 1, 5, 5, ""}, {list, 1, 4, 5, "is 4"}, {list, 1, 4, 5, ""}, {list, 1, 3, 5, "was 4"}},
		"the revision, write": {{list, 1, 5, 5, ""}, {swap, 1, 4, 5, "is 4, but was 5"}},
		"after a higher one":  {{list, 1, 5, 5, ""}, {list, 1, 7, 5, ""}, {list, 1, 6, 5, "is 6, but was 7"}},
		"the term, twice in a row": {
			{list, 1, 5, 5, ""}, {swap, 1, 6, 3, ""}, {list, 1, 6, 3, ""},
			{swap, 1, 6, 4, "the raft term at"},
		},
		"the term, never twice in a row": {{swap, 1, 5, 5, ""}, {swap, 1, 6, 3, ""}, {swap, 1, 7, 5, ""},
			{swap, 1, 8, 4, ""}},
		"a member received a snapshot": {
			{swap, 1, 5, 5, ""}, {list, 1, 6, 0, ""}, {list, 1, 6, 3, ""},
			{swap, 1, 6, 3, ""}, {swap, 1, 6, 5, ""},
		},
		"the status of one member": {
			{list, 1, 5, 5, ""}, {cluster, 1, 3, 3, ""}, {cluster, 1, 9, 9, ""},
			{swap, 1, 5, 5, ""}, {swap, 1, 5, 5, ""},
		},
		"another cluster": {
			{cluster, 1, 5, 5, ""}, {list, 255, 6, 6, "was in cluster 1, but is now in ff"}, {list, 255, 3, 3, ""},
			{cluster, 1, 3, 3, "was in cluster ff, but is now in 1"},
		},
	} {
		f := &fake{}
		s := fakes(t, f)
		for i, step := range steps {
			f.cluster, f.revision, f.term = step.cluster, step.revision, step.term
			err := step.call(s)
			if errors.Is(err, answers.ErrRestored) != (step.want != "") || errors.Is(err, workers.ErrRefused) {
				t.Errorf("%s: step %d: %v", name, i, err)
			}
			if asked := f.asked; step.want != "" {
				if err := swap(s); !errors.Is(err, answers.ErrRestored) || f.asked != asked {
					t.Errorf("%s: step %d: before Restored returned the sign: %v", name, i, err)
				}
			}
			wantSign(t, s, step.want)
			wantSign(t, s, "")
		}
	}
}

// An answer is compared with the answers that had arrived when its request was sent.
func TestRestoredInFlight(t *testing.T) {
	for name, tt := range map[string]struct {
		revision uint64 // in another answer, which arrives during the request
		heard    bool   // the other answer is a sign, which Restored returns
		want     bool   // the answer is accepted
	}{
		"a higher revision":               {9, false, true},
		"a sign":                          {3, false, false},
		"a sign, which Restored returned": {3, true, false},
	} {
		f := &fake{cluster: 1, revision: 5, term: 5}
		s := fakes(t, f)
		if err := list(s); err != nil {
			t.Error(err)
		}
		busy := make(chan chan struct{})
		f.busy = busy
		done := make(chan error)
		go func() { done <- list(s) }()
		end := <-busy
		f.busy, f.revision = nil, tt.revision
		if err := list(s); (err != nil) != (tt.revision == 3) {
			t.Errorf("%s: %v", name, err)
		}
		if tt.heard {
			wantSign(t, s, "is 3, but was 5")
		}
		close(end)
		if err := <-done; (err == nil) != tt.want || err != nil && !errors.Is(err, answers.ErrRestored) {
			t.Errorf("%s: the answer to the earlier request: %v", name, err)
		}
		if !tt.heard && !tt.want {
			wantSign(t, s, "is 3, but was 5")
		}
		wantSign(t, s, "")
		f.revision = 4 // an answer from before the restore is not in the history
		if tt.heard {
			if err := list(s); err != nil {
				t.Error(err)
			}
		}
	}
}

// An endpoint of another cluster is refused, and reads go to the next.
func TestOtherCluster(t *testing.T) {
	one, other := &fake{cluster: 0xcdf818194e3a8c32, revision: 5, term: 5}, &fake{cluster: 2, revision: 3, term: 3}
	s := fakes(t, one, other)
	if id, err := s.Cluster(t.Context()); id != "cdf818194e3a8c32" || err != nil {
		t.Errorf("%q, %v", id, err)
	}
	text := s.endpoints[1] + ": the store refuses: it belongs to cluster 2, and the others to cdf818194e3a8c32: set"
	s.first.Store(1)
	if err := list(s); err != nil || other.asked != 1 || one.asked != 2 || s.first.Load() != 0 {
		t.Errorf("%v, asked %d and %d times; endpoint %d is next", err, one.asked, other.asked, s.first.Load())
	}
	s.first.Store(1)
	if err := swap(s); !errors.Is(err, workers.ErrRefused) || !strings.Contains(err.Error(), text) || one.asked != 2 {
		t.Errorf("%v, asked %d times", err, one.asked)
	}
	one.revision = 0 // an answer that is not etcd's
	s.first.Store(0)
	id, err := s.Cluster(t.Context())
	if id != "" || !errors.Is(err, workers.ErrRefused) || !strings.Contains(err.Error(), text) {
		t.Errorf("%q, %v", id, err)
	}
	wantSign(t, s, "")
}

// etcd is restored from a copy of its directory. The term is still lower than before, since there
// were more elections between the copy and the restore than after it.
func TestRestoredEtcd(t *testing.T) {
	c := etcdtest.Start(t, 1)
	m := c.Members[0]
	s := open(t, Config{Endpoints: c.Endpoints()})
	if err := swap(s); err != nil {
		t.Fatal(err)
	}
	saved := filepath.Join(t.TempDir(), "saved")
	m.Copy(saved)
	c.Leader()
	for range 2 {
		m.Kill()
		m.Start()
		c.Leader()
	}
	put := func() {
		if err := m.Call("kv/put", `{"key": "YQ=="}`, new(any)); err != nil {
			t.Fatal(err)
		}
	}
	put()
	for _, call := range []func(*Store) error{swap, list} {
		if err := call(s); err != nil {
			t.Error(err)
		}
	}
	wantSign(t, s, "")
	late := open(t, Config{Endpoints: c.Endpoints()})
	if err := list(late); err != nil {
		t.Error(err)
	}
	m.Restore(saved)
	c.Leader()
	if err := list(s); !errors.Is(err, answers.ErrRestored) {
		t.Error(err)
	}
	wantSign(t, s, "the revision at")
	for range 10 { // until its revision is higher
		put()
	}
	for _, call := range []func(*Store) error{list, swap, list} {
		if err := errors.Join(call(s), call(late)); err != nil {
			t.Error(err)
		}
	}
	wantSign(t, late, "")
	if err := swap(late); !errors.Is(err, answers.ErrRestored) {
		t.Error(err)
	}
	wantSign(t, late, "the raft term at")
	wantSign(t, s, "")
}
