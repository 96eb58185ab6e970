package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/etcd/etcdtest"
)

func open(t *testing.T, c Config) *Store {
	t.Helper()
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func limited(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// patience is how long members may take to elect a leader on a busy machine.
const patience = 5 * time.Minute

// A member without a majority answers neither reads nor writes, and does not claim that a
// write failed for good.
func TestStoreWithoutMajority(t *testing.T) {
	c := etcdtest.Start(t, 3)
	leader := c.Leader()
	s := open(t, Config{Endpoints: []string{leader.Endpoint}})
	for ctx, written := limited(t, patience), false; !written; {
		_, err := s.Swap(ctx, map[string]string{"a": ""}, map[string]string{"a": "1"})
		// After an error there may be a new leader, and the write may have happened or not.
		if written = err == nil; ctx.Err() != nil {
			t.Fatal(err)
		}
	}
	for _, m := range c.Members {
		if m != leader {
			m.Pause()
			defer m.Resume()
		}
	}
	ctx := limited(t, time.Second)
	_, err := s.Swap(ctx, map[string]string{"a": "1"}, map[string]string{"a": "2"})
	if err == nil || errors.Is(err, workers.ErrRefused) {
		t.Errorf("swap: %v", err)
	}
	if all, err := s.List(limited(t, time.Second), "a"); err == nil {
		t.Errorf("list: %v", all)
	}
	for _, m := range c.Members {
		m.Resume()
	}
	ctx = limited(t, patience)
	for {
		texts, err := s.Get(ctx, "a")
		switch {
		case err != nil && ctx.Err() == nil: // there is no leader yet
		case err != nil || texts[0] != "1" && texts[0] != "2":
			t.Fatalf("get: %q, %v", texts, err)
		default:
			return
		}
	}
}

func wantRefused(t *testing.T, s *Store, patience time.Duration, text string) {
	t.Helper()
	all, err := s.List(limited(t, patience), "p/")
	if !errors.Is(err, workers.ErrRefused) || !strings.Contains(err.Error(), text) {
		t.Errorf("%v, %v; want %s", all, err, text)
	}
}

var quiet = log.New(io.Discard, "", 0)

func TestWrongCA(t *testing.T) {
	server := httptest.NewUnstartedServer(nil)
	server.Config.ErrorLog = quiet
	server.StartTLS()
	defer server.Close()
	s := open(t, Config{Endpoints: []string{server.Listener.Addr().String()},
		TLS: &tls.Config{RootCAs: x509.NewCertPool()}})
	wantRefused(t, s, time.Minute, "certificate signed by unknown authority")
}

func TestUsers(t *testing.T) {
	c := etcdtest.Start(t, 1, "--bcrypt-cost", "4")
	endpoints := c.Endpoints()
	ctx := limited(t, time.Minute)
	root := Config{Endpoints: endpoints, Login: as("root", "secret")}
	if _, err := open(t, root).List(ctx, "p/"); err != nil { // there are no users yet
		t.Error(err)
	}
	for _, change := range [][2]string{
		{"user/add", `{"name": "root", "password": "secret"}`}, {"role/add", `{"name": "root"}`},
		{"user/grant", `{"user": "root", "role": "root"}`},
		{"user/add", `{"name": "flake", "password": "secret"}`}, {"user/add", `{"name": "reader", "password": "secret"}`},
		{"role/add", `{"name": "reads"}`},
		{"role/grant", `{"name": "reads", "perm": {"permType": "READ", "key": "cC8=", "range_end": "cDA="}}`}, // p/ to p0
		{"user/grant", `{"user": "reader", "role": "reads"}`}, {"enable", "{}"},
	} {
		if err := c.Members[0].Call("auth/"+change[0], change[1], new(any)); err != nil {
			t.Fatal(change, err)
		}
	}
	wantRefused(t, open(t, Config{Endpoints: endpoints}), time.Minute, "user name is empty")
	wantRefused(t, open(t, Config{Endpoints: endpoints, Login: as("root", "wrong")}), time.Minute,
		"invalid user ID or password")
	wantRefused(t, open(t, Config{Endpoints: endpoints, Login: as("flake", "secret")}), time.Minute,
		"permission denied")
	reader := open(t, Config{Endpoints: endpoints, Login: as("reader", "secret")})
	if err := errors.Join(list(reader), cluster(reader)); err != nil {
		t.Error(err)
	}
	err := swap(reader)
	if !errors.Is(err, workers.ErrRefused) || !strings.Contains(err.Error(), "etcdserver: permission denied") {
		t.Error(err)
	}
	nobody := open(t, Config{Endpoints: endpoints}) // has no permission
	if ahead := nobody.Clocks(ctx, func() uint64 { return 0 }); len(ahead) != 1 {
		t.Error(ahead)
	}
	s := open(t, root)
	if _, err := s.List(ctx, "p/"); err != nil {
		t.Error(err)
	}
	expired := "expired.1"
	s.user.Load().token.Store(&expired)
	if ok, err := s.Swap(ctx, map[string]string{"p/a": ""}, map[string]string{"p/a": "1"}); !ok || err != nil ||
		*s.user.Load().token.Load() == expired {
		t.Error(ok, err)
	}
	s.login = as("root", "wrong")
	wantRefused(t, s, time.Minute, "invalid user ID or password")
	s.login = as("root", "secret")
	if _, err := s.List(ctx, "p/"); err != nil {
		t.Error(err)
	}
}

// When etcd has no space left, it answers reads, and its errors for writes say why.
func TestNoSpace(t *testing.T) {
	s := open(t, Config{Endpoints: etcdtest.Start(t, 1, "--quota-backend-bytes", "100000").Endpoints()})
	ctx := limited(t, time.Minute)
	big := strings.Repeat("b", 100_000)
	ok, err := s.Swap(ctx, nil, map[string]string{"p/a": big})
	if ok || err == nil || errors.Is(err, workers.ErrRefused) ||
		!strings.Contains(err.Error(), "etcdserver: mvcc: database space exceeded") {
		t.Error(ok, err)
	}
	if texts, err := s.Get(ctx, "p/a"); err != nil || texts[0] != "" {
		t.Errorf("%.9q, %v", texts, err)
	}
}
