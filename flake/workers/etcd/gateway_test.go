package etcd

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/etcd/etcdtest"
)

func serve(t *testing.T, h http.HandlerFunc) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func answer(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		io.WriteString(w, text)
	}
}

// If an endpoint fails, a read is sent to the next one. So is a write, if the failed endpoint
// certainly did not receive it; otherwise only the next call begins at the next endpoint.
func TestNextEndpoint(t *testing.T) {
	asked := 0
	good := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked++
		answer(200, `{"header":{"revision":"1"},"succeeded":true}`)(w, r)
	})
	hangs, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer hangs.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	secure := httptest.NewUnstartedServer(nil)
	secure.Config.ErrorLog = quiet
	secure.StartTLS()
	defer secure.Close()
	for _, tt := range []struct{ endpoint, want string }{ // want is part of the error of a write
		{gone.URL, ""},
		{strings.Replace(good, "http", "https", 1), ""},
		{secure.URL, ""},
		{hangs.Addr().String(), "no answer in time"},
		{serve(t, answer(200, `{"header":{"revision":"1"},"succeeded":true`)), "200 OK"},
		{serve(t, answer(200, "<html>hello</html>")), `an answer that is not etcd's: 200 OK: "<html>hello</html>"`},
		{serve(t, answer(200, "{}")), `an answer that is not etcd's: 200 OK: "{}"`},
		{serve(t, answer(503, `{"code":14,"message":"etcdserver: no leader"}`)), ": etcdserver: no leader"},
		{serve(t, answer(307, "")), "307 Temporary Redirect"},
		{"http://" + secure.Listener.Addr().String(), "Client sent an HTTP request to an HTTPS server."},
		{serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), "it closed the connection: EOF"},
		{serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000")
			answer(200, `{"header":{"revision":"1"},`)(w, r)
		}), "its answer is cut off: unexpected EOF"},
		{serve(t, func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h\r\n\r\n")
			io.Copy(io.Discard, conn) // until the client closes it; net/http gives it no deadline
		}), "101 Switching Protocols"},
	} {
		s := open(t, Config{Endpoints: []string{tt.endpoint, good}})
		patience := time.Minute
		if tt.endpoint == hangs.Addr().String() {
			patience = 6 * time.Second // the first endpoint takes half of it
		}
		asked = 0
		if _, err := s.List(limited(t, patience), "p/"); err != nil || asked != 1 || s.first.Load() != 1 {
			t.Errorf("%s: list: %v; the next was asked %d times; endpoint %d is next", tt.endpoint, err, asked, s.first.Load())
		}
		s.first.Store(0)
		ok, err := s.Swap(limited(t, patience), nil, map[string]string{"a": "1"})
		sent := tt.want != ""
		if ok == sent || (err != nil) != sent || asked == 2 == sent || errors.Is(err, workers.ErrRefused) ||
			s.first.Load() != 1 {
			t.Errorf("%s: swap: %v, %v; both calls asked the next %d times; endpoint %d is next",
				tt.endpoint, ok, err, asked, s.first.Load())
		} else if sent && (!strings.Contains(err.Error(), tt.endpoint+": ") || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("got %v\nwant %s", err, tt.want)
		}
	}
}

// If the answer to a write is lost, the write has happened once. A new token is requested, since
// an invalid token may be why there was no answer.
func TestLostAnswer(t *testing.T) {
	target, err := url.Parse("http://" + etcdtest.Start(t, 1).Endpoints()[0])
	if err != nil {
		t.Fatal(err)
	}
	var lose atomic.Bool
	var writes atomic.Int64
	behind := httputil.NewSingleHostReverseProxy(target)
	front := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		r.Header.Del("Authorization")
		if bytes.Contains(body, []byte("request_put")) {
			writes.Add(1)
		}
		if lose.Load() {
			w = httptest.NewRecorder()
		}
		behind.ServeHTTP(w, r)
		if lose.Load() {
			panic(http.ErrAbortHandler)
		}
	})
	s := open(t, Config{Endpoints: []string{front, front}})
	token := "known"
	s.user.Load().token.Store(&token)
	for i, want := range []string{"", "1", "2"} {
		lose.Store(i == 1)
		ok, err := s.Swap(limited(t, time.Minute), map[string]string{"a": want}, map[string]string{"a": fmt.Sprint(i + 1)})
		if ok == lose.Load() || (err != nil) != lose.Load() || int(writes.Load()) != i+1 ||
			(s.user.Load().token.Load() == nil) != (i > 0) {
			t.Errorf("swap %d: %v, %v; %d were sent; token %v", i, ok, err, writes.Load(), s.user.Load().token.Load())
		}
		lose.Store(false)
		if texts, err := s.Get(limited(t, time.Minute), "a"); err != nil || texts[0] != fmt.Sprint(i+1) {
			t.Errorf("get: %q, %v", texts, err)
		}
	}
}

// Errors after which no other endpoint is asked.
func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		status     int
		text, want string
	}{
		{404, "404 page not found", "it has no JSON gateway; start it with --enable-grpc-gateway"},
		{400, "CommonName of client sending a request against gateway will be ignored", "CommonName of client"},
		{421, "\netcd received your request, but the Host header was unrecognized.\n\nTo fix",
			"the Host header was unrecognized."},
		{401, `{"code":16,"message":"etcdserver: permission denied"}`, "permission denied"},
	} {
		asked := 0
		front := serve(t, func(w http.ResponseWriter, r *http.Request) {
			asked++
			answer(tt.status, tt.text)(w, r)
		})
		wantRefused(t, open(t, Config{Endpoints: []string{front, front}}), time.Minute, tt.want)
		if asked != 1 {
			t.Errorf("%s: asked %d times", tt.text, asked)
		}
	}
}

// listed returns a list of n keys, with values of the same length.
func listed(n int) string {
	value := workers.Value{Mark: 1 << 41, Generation: 1 << 30, Token: 1 << 63, Name: strings.Repeat("n", 100)}.String()
	var list strings.Builder
	list.WriteString(`{"header":{"cluster_id":"1","member_id":"2","revision":"3","raft_term":"4"},"kvs":[`)
	for i := range n {
		if i > 0 {
			list.WriteString(",")
		}
		fmt.Fprintf(&list,
			`{"key":%q,"create_revision":"1000000000","mod_revision":"1000000000","version":"1000000000","value":%q}`,
			base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "some/prefix/n/%012d", i)),
			base64.StdEncoding.EncodeToString([]byte(value)))
	}
	list.WriteString(`],"more":false,"count":"1"}`)
	return list.String()
}

// A list of all numbers is short enough; endless answers fail. Time stands still while the server waits
// for connections, so no call takes too long.
func TestLongAnswer(t *testing.T) { synctest.Test(t, testLongAnswer) }

func testLongAnswer(t *testing.T) {
	var answer, header string
	s := open(t, Config{Endpoints: []string{serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X", header)
		io.WriteString(w, answer)
	})}})
	answer = listed(1 << 16)
	if all, err := s.List(limited(t, time.Minute), "some/"); err != nil || len(all) != 1<<16 ||
		len(all["some/prefix/n/000000065535"]) < 100 {
		t.Errorf("%d pairs, %v", len(all), err)
	}
	pair := func(key, value int) string {
		return fmt.Sprintf(`{"kvs":[{"key":%q,"value":%q}],"header":{"cluster_id":"1","revision":"3","raft_term":"4"}}`,
			base64.StdEncoding.EncodeToString(make([]byte, key)), base64.StdEncoding.EncodeToString(make([]byte, value)))
	}
	if answer = pair(maxText, maxText); list(s) != nil {
		t.Errorf("the longest key and value: %v", list(s))
	}
	get := func(s *Store) error { _, err := s.Get(t.Context(), "a"); return err }
	for _, tt := range []struct {
		answer string
		call   func(*Store) error
		want   string
	}{
		{listed(maxPairs + 1), list, "more than 66560 keys"},
		{`{"kvs":[` + strings.Repeat(" ", maxAnswer), list, "more than 65536 bytes"},
		{`{"kvs":[{}` + strings.Repeat(`,{"a":"`+strings.Repeat("a", 1<<15)+`"}`, maxList>>15) + "]}", list,
			"a list of more than 33554432 bytes"},
		{pair(maxText+1, 0), list, "a key or a value of more than 1024 bytes"},
		{pair(0, maxText+1), list, "a key or a value of more than 1024 bytes"},
		{listed(1) + strings.Repeat(" ", 2*maxAnswer), list, "more than 65536 bytes"},
		{`{"` + strings.Repeat("a", maxAnswer), list, "more than 65536 bytes"},
		{listed(1000), get, "more than 65536 bytes"},
	} {
		answer = tt.answer
		if err := tt.call(s); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.20s: %v, want %s", answer, err, tt.want)
		}
	}
	answer, header = listed(1), strings.Repeat("a", maxAnswer)
	if err := list(s); err == nil || !strings.Contains(err.Error(), "headers exceeded 65536 bytes") {
		t.Errorf("a long header: %v", err)
	}
}

// Refusing a long answer of many short elements must not allocate more memory than its length.
func TestMemoryOfAnswer(t *testing.T) {
	const size = 16 << 20
	for _, begin := range []string{`{"kvs":[{}`, `{"responses":[{}`, `{"header":{"revision":"1"},"kvs":[{}`,
		`{"other":[{}`, `[{}`} {
		s := open(t, Config{Endpoints: []string{serve(t, func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, begin)
			for some, left := []byte(strings.Repeat(",{}", 1<<12)), size; left > 0; left -= len(some) {
				if _, err := w.Write(some); err != nil {
					return
				}
			}
			io.WriteString(w, "]}")
		})}})
		for name, call := range map[string]func(*Store) error{"list": list, "swap": swap, "cluster": cluster} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if err := call(s); err == nil {
				t.Errorf("%s of %s: no error", name, begin)
			}
			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; took > size {
				t.Fatalf("%s of %s: %d bytes", name, begin, took)
			}
		}
	}
}

// endless is an answer that ends its reader's context and continues.
type endless struct {
	end  func()
	read int
}

func (e *endless) Read(b []byte) (int, error) {
	if e.read += len(b); e.read > maxAnswer {
		e.end()
	}
	return copy(b, strings.Repeat(`{},`, 100)), nil
}

func TestContextEndsDecoding(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	e := &endless{end: cancel}
	r := reply{pairs: make(map[string]string)}
	err := r.decode(&text{ctx: ctx, body: io.MultiReader(strings.NewReader(`{"kvs":[`), e), left: maxAnswer})
	if !errors.Is(err, context.Canceled) || e.read > 2*maxAnswer {
		t.Errorf("%v, after %d bytes", err, e.read)
	}
}

// A message from etcd cannot forge a log line.
func TestMessageIsEscaped(t *testing.T) {
	for _, status := range []int{200, 500} {
		for _, text := range []string{`{"message":"no\nflake: forged \u001b[2J"}`, "no\nflake: forged \x1b[2J"} {
			err := list(open(t, Config{Endpoints: []string{serve(t, answer(status, text))}}))
			if err == nil || !strings.Contains(err.Error(), `no\nflake: forged \x1b[2J`) {
				t.Errorf("%v", err)
			}
		}
	}
}

// Each request has the header that makes a member without a leader refuse it.
func TestHasLeader(t *testing.T) {
	var asked []string
	s := open(t, Config{Login: as("u", ""), Endpoints: []string{serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Grpc-Metadata-hasleader") != "true" {
			t.Errorf("%s: %v", r.URL.Path, r.Header)
		}
		asked = append(asked, r.URL.Path)
		answer(200, `{"header":{"revision":"1"},"token":"t","responses":[{}]}`)(w, r)
	})}})
	_, err := s.Get(t.Context(), "a")
	if err := errors.Join(err, list(s), swap(s), cluster(s)); err != nil {
		t.Error(err)
	}
	s.Clocks(t.Context(), func() uint64 { return 0 })
	const status = "/v3/maintenance/status"
	want := []string{"/v3/auth/authenticate", "/v3/kv/txn", "/v3/kv/range", "/v3/kv/txn", status, status}
	if !slices.Equal(asked, want) {
		t.Errorf("asked %q", asked)
	}
}

// An error has a date too, in whole seconds.
func TestClocks(t *testing.T) {
	const date = 1_700_000_000_000
	dated := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", time.UnixMilli(date).UTC().Format(http.TimeFormat))
		answer(401, "{}")(w, r)
	})
	undated := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Date"] = nil
		answer(200, "{}")(w, r)
	})
	gone := httptest.NewServer(nil)
	gone.Close()
	for endpoint, want := range map[string][]time.Duration{undated: nil, gone.URL: nil, dated: {time.Minute}} {
		s := open(t, Config{Endpoints: []string{endpoint}})
		if got := s.Clocks(t.Context(), func() uint64 { return date + 61_000 }); !slices.Equal(got, want) {
			t.Errorf("%s: ahead by %v, want %v", endpoint, got, want)
		}
	}
}

// All endpoints are asked at the same time, for as long as the context allows.
func TestClocksOfAll(t *testing.T) {
	var together sync.WaitGroup
	together.Add(2)
	front := serve(t, func(w http.ResponseWriter, r *http.Request) {
		together.Done()
		together.Wait()
	})
	s := open(t, Config{Endpoints: []string{front, front, serve(t, answer(200, "{}"))}})
	hour := uint64(time.Hour / time.Millisecond)
	ahead := s.Clocks(t.Context(), func() uint64 { return uint64(time.Now().UnixMilli()) + hour })
	if len(ahead) != 3 || slices.Min(ahead) <= 0 || slices.Max(ahead) > time.Hour {
		t.Error(ahead)
	}
	ctx, cancel := context.WithCancel(t.Context())
	hangs := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // otherwise the server does not notice that the client is gone
		cancel()
		<-r.Context().Done()
	})
	if ahead := open(t, Config{Endpoints: []string{hangs}}).Clocks(ctx, func() uint64 { return 0 }); len(ahead) != 0 {
		t.Error(ahead)
	}
}
