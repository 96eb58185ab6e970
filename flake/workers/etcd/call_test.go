package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestNew(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Error("New accepts a store without endpoints")
	}
	mine := []string{"127.0.0.1:2379"}
	s := open(t, Config{Endpoints: mine})
	if mine[0] != "127.0.0.1:2379" || s.endpoints[0] != "http://127.0.0.1:2379" {
		t.Errorf("%q, %q", mine, s.endpoints)
	}
	if err := list(open(t, Config{Endpoints: []string{"http://a b"}})); err == nil {
		t.Error("an invalid URL is accepted")
	}
}

// Only a different user or password discards the user's token.
func TestLogin(t *testing.T) {
	var name, password string
	var fault error
	s := open(t, Config{Endpoints: []string{"a"}, Login: func() (string, string, error) { return name, password, fault }})
	was, _ := s.authenticated()
	for _, next := range [][2]string{{"u", "p"}, {"v", "p"}, {"v", "q"}} {
		name, password = next[0], next[1]
		now, err := s.authenticated()
		again, _ := s.authenticated()
		if err != nil || now == was || again != now || now.name != name || now.password != password {
			t.Errorf("%q: %+v, %v", next, now, err)
		}
		was = now
	}
	fault = errors.New("no file")
	if err := list(s); !errors.Is(err, fault) {
		t.Error(err)
	}
}

// as returns a Login for one user.
func as(user, password string) func() (string, string, error) {
	return func() (string, string, error) { return user, password, nil }
}

// The store does not use HTTP/2, in which requests share a connection and some are repeated.
func TestHTTP1(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 1 {
			t.Error(r.Proto)
		}
		answer(200, `{"header":{"revision":"1"}}`)(w, r)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	trusted := &tls.Config{RootCAs: server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	if err := list(open(t, Config{Endpoints: []string{server.URL}, TLS: trusted})); err != nil {
		t.Error(err)
	}
}

// Each endpoint gets half of the remaining time, except the last one, which gets all of it.
func TestTimeOfEndpoints(t *testing.T) {
	var until []time.Time
	s := open(t, Config{Endpoints: []string{"a", "b"}})
	ctx, cancel := context.WithTimeout(t.Context(), longest/2)
	defer cancel()
	s.transport.Proxy = func(r *http.Request) (*url.URL, error) {
		deadline, _ := r.Context().Deadline()
		until = append(until, deadline)
		return nil, errors.New("no way")
	}
	all, _ := ctx.Deadline()
	if _, err := s.List(ctx, "p/"); err == nil || len(until) != 2 || !until[0].Before(all) || !until[1].Equal(all) {
		t.Errorf("%v; the deadlines are %v, the caller's is %v", err, until, all)
	}
	s.transport.Proxy = func(*http.Request) (*url.URL, error) {
		cancel()
		return nil, errors.New("no way")
	}
	if _, err := s.List(ctx, "p/"); err == nil || strings.Contains(err.Error(), "http://b") {
		t.Errorf("the next endpoint was asked although the context was done: %v", err)
	}
}

func TestNoConnectionInTime(t *testing.T) {
	s := open(t, Config{Endpoints: []string{"a"}})
	s.transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	_, err := s.List(limited(t, time.Millisecond), "p/")
	if err == nil || !strings.Contains(err.Error(), "no connection") {
		t.Error(err)
	}
}

// If a token is never valid, it is requested twice.
func TestBadToken(t *testing.T) {
	asked := 0
	s := open(t, Config{Login: as("u", ""), Endpoints: []string{serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "authenticate") {
			asked++
			io.WriteString(w, `{"header":{"revision":"1"},"token":"t"}`)
			return
		}
		answer(401, `{"message":"etcdserver: invalid auth token"}`)(w, r)
	})}})
	if err := list(s); !errors.Is(err, errToken) || asked != 2 {
		t.Errorf("%v, asked %d times", err, asked)
	}
}

// Answers that Get must refuse.
func TestBadAnswer(t *testing.T) {
	for text, status := range map[string]int{
		`{"header":{"revision":"1"},"responses":[{}]}`:                  503,
		`{"header":{"revision":"1"},"succeeded":"no","responses":[{}]}`: 200,
		`{"header":{"revision":"0"},"responses":[{}]}`:                  200,
		`{"header":{"revision":"1"}}`:                                   200,
		`{"header":{"revision":"1"},"responses":[{}]`:                   200,
		`{"header":{"revision":"1"},"responses":[{},{}]}`:               200,
		`{"header":{"revision":"one"},"responses":[{}]}`:                200,
		`{"message":"etcdserver: no leader","header":{"revision":"1"}}`: 500,
		`{"message":"no object"} 1`:                                     500,
	} {
		texts, err := open(t, Config{Endpoints: []string{serve(t, answer(status, text))}}).Get(t.Context(), "a")
		if err == nil || strings.Contains(text, "leader") != strings.Contains(err.Error(), "no leader") {
			t.Errorf("%s: %q, %v", text, texts, err)
		} else if status > 200 && !strings.Contains(text, "leader") && !strings.Contains(err.Error(), fmt.Sprint(status)) {
			t.Errorf("%s: the error does not contain the status: %v", text, err)
		}
	}
}
