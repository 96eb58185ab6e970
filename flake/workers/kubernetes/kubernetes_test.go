package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/internal/answers"
)

func open(t testing.TB, c Config) *Store {
	t.Helper()
	if c.Namespace == "" {
		c.Namespace = namespace
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// overFake returns a store on a fake API server.
func overFake(t testing.TB) (*Store, *fake) {
	f, server := startFake(t)
	return open(t, Config{URL: server.URL}), f
}

func limited(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func list(s *Store) error { _, err := s.List(context.Background(), "p/"); return err }
func get(s *Store) error  { _, err := s.Get(context.Background(), "p/a"); return err }
func cluster(s *Store) error {
	_, err := s.Cluster(context.Background())
	return err
}
func swap(s *Store) error {
	_, err := s.Swap(context.Background(), nil, map[string]string{"p/a": "1"})
	return err
}

func wantSign(t *testing.T, s *Store, want string) {
	t.Helper()
	if sign, ok := s.Restored(); !strings.Contains(sign, want) || ok != (want != "") || sign == "" && ok {
		t.Errorf("sign %q, %v; want %q", sign, ok, want)
	}
}

func wantRefused(t *testing.T, err error, text string) {
	t.Helper()
	if !errors.Is(err, workers.ErrRefused) || !strings.Contains(err.Error(), text) {
		t.Errorf("%v; want %s", err, text)
	}
}

// A store that only peeks makes no objects. Missing ones count as empty.
func TestPeek(t *testing.T) {
	f, server := startFake(t)
	s := open(t, Config{URL: server.URL, Peek: true})
	ctx := limited(t, time.Minute)
	all, err := s.List(ctx, "p/")
	id, idErr := s.Cluster(ctx)
	if err := errors.Join(err, idErr, get(s)); err != nil || len(all) > 0 || id != "" {
		t.Errorf("%q, %q, %v", all, id, err)
	}
	made, err := open(t, Config{URL: server.URL}).Cluster(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if id, err := s.Cluster(ctx); id != made || err != nil || len(f.objects) != 2 {
		t.Errorf("%q, want %q, %v; %d objects", id, made, err, len(f.objects))
	}
	delete(f.objects, leasePath)
	if id, err := s.Cluster(ctx); id != made || err != nil || len(f.objects) != 1 {
		t.Errorf("without the Lease: %q, want %q, %v; %d objects", id, made, err, len(f.objects))
	}
	f.before = func(*http.Request) http.HandlerFunc { return answer(500, "") }
	if id, err := s.Cluster(ctx); err == nil {
		t.Errorf("after an error: %q", id)
	}
}

// Requests say what they are. The objects that the store makes say what they are for.
func TestRequests(t *testing.T) {
	s, f := overFake(t)
	made := 0
	f.before = func(r *http.Request) http.HandlerFunc {
		h := r.Header
		want := map[string]string{"GET": "", "POST": "application/json", "PATCH": "application/json-patch+json"}[r.Method]
		accept := "application/json"
		switch r.Method {
		case http.MethodPost:
			made++
		case http.MethodPatch:
			accept = onlyMetadata
		}
		if h.Get("Content-Type") != want || (r.ContentLength == 0) != (want == "") || h.Get("Accept") != accept ||
			h.Get("Cache-Control") != "no-cache" || h.Get("User-Agent") != "flake" || h["Authorization"] != nil {
			t.Errorf("%s of %d bytes: %v", r.Method, r.ContentLength, h)
		}
		return nil
	}
	if err := errors.Join(swap(s), cluster(open(t, Config{URL: s.server}))); err != nil || made != 2 {
		t.Errorf("%v, made %d objects", err, made)
	}
	if all, err := s.List(t.Context(), ""); len(all) != 1 || err != nil {
		t.Errorf("a list of all keys, without the note: %q, %v", all, err)
	}
	for _, o := range f.objects {
		if note, labels := o.Data[note], o.Metadata["labels"]; labels == nil || (note != "") != (o.Kind == "ConfigMap") {
			t.Errorf("%s %v: %q", o.Kind, o.Metadata, note)
		}
	}
}

// A patch whose test failed is tried again, and then is not refused. Other invalid patches are refused, and an object
// that may not be read is not a missing one.
func TestInvalid(t *testing.T) {
	const mine = `{"name":"flake-numbers","kind":"configmaps"}`
	for _, tt := range []struct {
		method       string
		code         int
		reason, says string // says is the details
		call         func(*Store) error
		sent         int
		refused      bool
	}{
		{"PATCH", 422, "Invalid", "{}", swap, tries, false},
		{"PATCH", 422, "Invalid", mine, swap, 1, true},
		{"GET", 403, "Forbidden", mine, list, 1, false},
	} {
		s, f := overFake(t)
		if err := swap(s); err != nil {
			t.Fatal(err)
		}
		sent := 0
		f.before = func(r *http.Request) http.HandlerFunc {
			if r.Method != tt.method {
				return nil
			}
			sent++
			return func(w http.ResponseWriter, r *http.Request) { failed(w, tt.code, tt.reason, tt.says) }
		}
		err := tt.call(s)
		if err == nil || errors.Is(err, workers.ErrRefused) != tt.refused || errors.Is(err, answers.ErrRestored) || sent != tt.sent {
			t.Errorf("%s, %s: %v; sent %d times", tt.reason, tt.says, err, sent)
		}
		wantSign(t, s, "")
	}
	s, f := overFake(t)
	for i, failing := range []string{"", "PATCH", "PATCH GET"} { // a write after none, one, and one that is not explained
		patches := 0
		f.before = func(r *http.Request) http.HandlerFunc {
			if r.Method == http.MethodPatch {
				patches++
			}
			if patches != 1 || !strings.Contains(failing, r.Method) {
				return nil
			}
			return func(w http.ResponseWriter, r *http.Request) {
				failed(w, map[string]int{"PATCH": 422, "GET": 500}[r.Method], "Invalid", "{}")
			}
		}
		ok, err := s.Swap(t.Context(), map[string]string{"p/a": []string{"", "1", "1"}[i]}, map[string]string{"p/a": "1"})
		if ok != (i < 2) || (err == nil) != ok {
			t.Errorf("%q fails once: %t, %v", failing, ok, err)
		}
	}
}

func TestStore(t *testing.T) {
	s, _ := overFake(t)
	testStore(t, s)
}

func testStore(t *testing.T, s *Store) {
	ctx := limited(t, time.Minute)
	if texts, err := s.Get(ctx, "p/a"); err != nil || texts[0] != "" {
		t.Errorf("before there is an object: %q, %v", texts, err)
	}
	if all, err := s.List(ctx, ""); err != nil || len(all) != 0 {
		t.Errorf("before there is an object: %q, %v", all, err)
	}
	swap := func(have map[string]string, key, value string, want bool) {
		t.Helper()
		if ok, err := s.Swap(ctx, have, map[string]string{key: value}); ok != want || err != nil {
			t.Errorf("swap of %v for %s: %v, %v", have, value, ok, err)
		}
	}
	swap(map[string]string{"p/a": ""}, "p/a", "1", true)
	swap(map[string]string{"p/a": ""}, "p/a", "2", false)
	swap(map[string]string{"p/a": "2"}, "p/a", "3", false)
	swap(map[string]string{"p/b": "1"}, "p/b", "1", false)
	swap(map[string]string{"p/a": "1", "p/b": ""}, "p/b", "4", true)
	swap(map[string]string{"p/a": "1", "p/b": ""}, "p/a", "5", false)
	swap(map[string]string{"p/a": "1", "p/b": "4"}, "p/a", "6", true)
	swap(map[string]string{"q": ""}, "q", "7", true)
	odd := "//Ü p_a.b%2f~/\x01/" + `"\`
	swap(map[string]string{odd: ""}, odd, `"ü\ `, true)
	swap(map[string]string{odd: `"ü\ `}, odd, "9", true)
	for _, want := range []bool{true, false} { // all values are written, or none
		ok, err := s.Swap(ctx, map[string]string{"r/a": ""}, map[string]string{"r/a": "1", "r/b": fmt.Sprint(want)})
		if texts, getErr := s.Get(ctx, "r/a", "r/b"); ok != want || err != nil || getErr != nil ||
			!slices.Equal(texts, []string{"1", "true"}) {
			t.Errorf("swap of two values: %v, %v, %q, %v", ok, err, texts, getErr)
		}
	}
	if all, err := s.List(ctx, "p/"); err != nil || !maps.Equal(all, map[string]string{"p/a": "6", "p/b": "4"}) {
		t.Errorf("list: %v, %v", all, err)
	}
	texts, err := s.Get(ctx, "q", "p/none", "p/a", odd)
	if err != nil || !slices.Equal(texts, []string{"7", "", "6", "9"}) {
		t.Errorf("get: %q, %v", texts, err)
	}
	if id, err := s.Cluster(ctx); err != nil || len(id) != 36 {
		t.Errorf("cluster %q, %v", id, err)
	}
	ok, err := s.Swap(ctx, nil, map[string]string{strings.Repeat("ü", 50): "1"})
	if wantRefused(t, err, "use a shorter prefix"); ok {
		t.Error("the key was too long")
	}
	ok, err = s.Swap(ctx, nil, map[string]string{"big": strings.Repeat("a", 1<<20)})
	if ok || err == nil || errors.Is(err, workers.ErrRefused) ||
		!strings.Contains(err.Error(), "may not be more than 1048576 bytes") {
		t.Errorf("the object is full: %v, %v", ok, err)
	}
	wantSign(t, s, "")
}

// If somebody empties the object, the next write goes on.
func TestEmptied(t *testing.T) {
	s, f := overFake(t)
	if err := swap(s); err != nil {
		t.Fatal(err)
	}
	f.objects["/api/v1/namespaces/ids/configmaps/"+DefaultName].Data = nil
	ok, err := s.Swap(t.Context(), map[string]string{"p/a": ""}, map[string]string{"p/a": "2", "p/b": "3"})
	if texts, getErr := s.Get(t.Context(), "p/a", "p/b"); !ok || err != nil || getErr != nil || texts[1] != "3" {
		t.Errorf("%v, %v, %q, %v", ok, err, texts, getErr)
	}
	wantSign(t, s, "")
}

func TestKeys(t *testing.T) {
	for key, want := range map[string]string{
		"flake/n/00000000002a": "flake.n.00000000002a",
		"a.b/c-d_e/Z":          "a_2eb.c-d_5fe.Z",
		"//..":                 "_2f._2e_2e",
		"ü %2F":                "_c3_bc_20_252F",
		"azAZ09":               "azAZ09",
		"":                     "",
	} {
		if got := encode(key); got != want {
			t.Errorf("%q is %s, want %s", key, got, want)
		}
		if back, ok := decode(want); !ok || back != key {
			t.Errorf("%s is %q, %v", want, back, ok)
		}
	}
	for _, name := range []string{note, "_", "_2", "_2F", "_61", "..", "a_2fb", "%2f"} {
		if key, ok := decode(name); ok {
			t.Errorf("%s is %q", name, key)
		}
	}
}

func FuzzKeys(f *testing.F) {
	f.Add("flake/n/00000000002a")
	f.Add("_note")
	f.Fuzz(func(t *testing.T, text string) {
		if key, ok := decode(encode(text)); !ok || key != text {
			t.Errorf("%q became %q", text, key)
		}
		if key, ok := decode(text); ok && encode(key) != text {
			t.Errorf("two names of %q", key)
		}
	})
}

// In a pod, everything is in the environment and in the files of the service account, which can change.
func TestPod(t *testing.T) {
	var authorized atomic.Value
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		authorized.Store(r.Header.Get("Authorization") + " " + r.URL.Path)
		failed(w, 404, "NotFound", `{"name":"mine","kind":"configmaps"}`)
	}))
	defer server.Close()
	server.Config.ErrorLog = quiet
	host, port, _ := strings.Cut(server.Listener.Addr().String(), ":")
	account = t.TempDir()
	for _, env := range [][2]string{{"", ""}, {host, ""}, {"", port}, {host, port}} {
		t.Setenv("KUBERNETES_SERVICE_HOST", env[0])
		t.Setenv("KUBERNETES_SERVICE_PORT", env[1])
		_, err := New(Config{})
		if inside := env[0] != "" && env[1] != ""; err == nil || strings.Contains(err.Error(), "not in a pod") == inside {
			t.Errorf("%q: %v", env, err)
		}
	}
	_, err := New(Config{})
	wantRefused(t, err, "automountServiceAccountToken")
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(account, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("namespace", "there\n")
	s, err := New(Config{Name: "mine"})
	if err != nil {
		t.Fatal(err)
	}
	wantRefused(t, list(s), "/token: no such file or directory: does the pod have automountServiceAccountToken")
	put("token", "one\n")
	wantRefused(t, list(s), "/ca.crt: no such file or directory: does the pod have automountServiceAccountToken")
	put("ca.crt", "")
	if err := list(s); err == nil || !strings.Contains(err.Error(), "has no certificate") {
		t.Error(err)
	}
	put("ca.crt", otherCA(t))
	wantRefused(t, list(s), "certificate signed by unknown authority")
	put("ca.crt", certificate(server))
	for _, token := range []string{"one", "two"} {
		put("token", token)
		if err := list(s); err != nil || authorized.Load() != "Bearer "+token+" /api/v1/namespaces/there/configmaps/mine" {
			t.Errorf("%v, %v", err, authorized.Load())
		}
	}
}

// A token that is not valid is read again once; if the file has another by now, the request is repeated.
func TestToken(t *testing.T) {
	f, server := startFake(t)
	file := filepath.Join(t.TempDir(), "token")
	put := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Error(err)
		}
	}
	put("old")
	var asked atomic.Int64
	rotates, code, reason := true, 401, "Unauthorized"
	f.before = func(r *http.Request) http.HandlerFunc {
		if r.Header.Get("Authorization") == "Bearer new" {
			return nil
		}
		asked.Add(1)
		if rotates {
			put("new")
		}
		return func(w http.ResponseWriter, r *http.Request) { failed(w, code, reason, "{}") }
	}
	s := open(t, Config{URL: server.URL, TokenFile: file})
	if err := swap(s); err != nil || asked.Load() != 1 {
		t.Errorf("%v, asked %d times", err, asked.Load())
	}
	rotates = false
	put("old")
	asked.Store(0)
	if wantRefused(t, swap(s), "it has expired"); asked.Load() != 1 {
		t.Errorf("asked %d times", asked.Load())
	}
	rotates, code, reason = true, 500, "InternalError" // the write may have happened
	asked.Store(0)
	if err := swap(s); err == nil || asked.Load() != 1 {
		t.Errorf("%v, asked %d times", err, asked.Load())
	}
}

// An error names the rule that is missing. It is no refusal, because the right may come later.
func TestRefusals(t *testing.T) {
	s, f := overFake(t)
	cannot := `configmaps "flake-numbers" is forbidden: User "u" cannot `
	for _, tt := range []struct {
		method, path string
		code         int
		reason, says string
		kind         string
		call         func(*Store) error
		refused      bool
		want         string
	}{
		{"GET", "configmaps", 403, "Forbidden", cannot + "get", "configmaps", list, false,
			`apiGroups [""], resources [configmaps], resourceNames [flake-numbers], verbs [get]`},
		{"PATCH", "configmaps", 403, "Forbidden", cannot + "patch", "configmaps", swap, false, "verbs [patch]"},
		{"POST", "configmaps", 403, "Forbidden", cannot + "create", "configmaps", cluster, false,
			`apiGroups [""], resources [configmaps], verbs [create]`},
		{"GET", "leases", 403, "Forbidden", cannot + "get", "leases", cluster, false,
			`apiGroups ["coordination.k8s.io"], resources [leases], resourceNames [flake-numbers], verbs [get]`},
		{"POST", "leases", 403, "Forbidden", cannot + "create", "leases", cluster, false,
			"resources [leases], verbs [create]"},
		{"POST", "configmaps", 403, "Forbidden", "exceeded quota: x", "configmaps", cluster, false, "exceeded quota: x"},
		{"POST", "configmaps", 404, "NotFound", `namespaces "ids" not found`, "namespaces", cluster, true, `"ids" not found`},
		{"POST", "configmaps", 500, "InternalError", "it cannot connect", "namespaces", cluster, false, "it cannot connect"},
		{"PATCH", "configmaps", 500, "", "etcdserver: request timed out", "", swap, false, "etcdserver: request timed out"},
		{"GET", "configmaps", 503, "ServiceUnavailable", "no", "", list, false, "503"},
	} {
		clear(f.objects)
		s.history = history{}
		if tt.method != "POST" {
			if err := swap(s); err != nil {
				t.Fatal(err)
			}
		}
		f.before = func(r *http.Request) http.HandlerFunc {
			if r.Method != tt.method || !strings.Contains(r.URL.Path, tt.path) {
				return nil
			}
			return func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(tt.code)
				fmt.Fprintf(w, `{"kind":"Status","reason":%q,"message":%q,"details":{"name":"ids","kind":%q}}`,
					tt.reason, tt.says, tt.kind)
			}
		}
		err := tt.call(s)
		f.before = nil
		if err == nil || errors.Is(err, workers.ErrRefused) != tt.refused || !strings.Contains(err.Error(), tt.want) ||
			strings.Contains(err.Error(), "verbs") != strings.Contains(tt.want, "verbs") {
			t.Errorf("%s %s: %v; want %s", tt.method, tt.path, err, tt.want)
		}
		wantSign(t, s, "")
	}
}

// A node that starts waits for its rights.
func TestRightsComeLater(t *testing.T) {
	s, f := overFake(t)
	asked := 0
	f.before = func(*http.Request) http.HandlerFunc {
		if asked++; asked > 2 {
			return nil
		}
		return func(w http.ResponseWriter, _ *http.Request) { failed(w, 403, "Forbidden", "{}") }
	}
	o, err := workers.Open(t.Context(), workers.Config{Store: s, Prefix: "flake", Hold: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	o.Close(t.Context())
}

// failed writes an error of the API.
func failed(w http.ResponseWriter, code int, reason, details string) {
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","reason":%q,"message":"no","details":%s}`, reason, details)
}

// Requests that came too fast, and writes that met too many others, are sent again while there is time.
func TestAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{version: 100, objects: map[string]*stored{}}
		s := open(t, Config{URL: "http://a"})
		// Over pipes, time advances when all wait.
		s.transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			go http.Serve(&oneConn{conn: server}, f)
			return client, nil
		}
		if err := swap(s); err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			code  int
			text  string
			after string
			fails int           // how often
			waits time.Duration // at least
			sends int
			ok    bool
		}{
			{429, "Too many requests, please try again later.\n", "1", 2, 2 * time.Second, 3, true},
			{429, `{"kind":"Status","reason":"TooManyRequests"}`, "3", 1, 3 * time.Second, 2, true},
			{429, "", "", 1, time.Second, 2, true},
			{429, "", "60", 1, 0, 1, false},
			{429, "", "1", 99, 5 * time.Second, 6, false},
			{409, `{"kind":"Status","reason":"Conflict"}`, "", 2, 0, 3, true},
			{500, `{"kind":"Status","reason":"InternalError"}`, "1", 1, 0, 1, false},
			{503, "", "1", 1, 0, 1, false},
			{504, `{"kind":"Status","reason":"Timeout"}`, "1", 1, 0, 1, false},
		} {
			sends := 0
			f.before = func(r *http.Request) http.HandlerFunc {
				if r.Method != http.MethodPatch {
					return nil
				}
				if sends++; sends > tt.fails {
					return nil
				}
				return func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Retry-After", tt.after)
					w.WriteHeader(tt.code)
					io.WriteString(w, tt.text)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5500*time.Millisecond)
			began := time.Now()
			ok, err := s.Swap(ctx, nil, map[string]string{"p/a": fmt.Sprint(tt)})
			took := time.Since(began)
			cancel()
			if ok != tt.ok || (err == nil) != tt.ok || sends != tt.sends || took < tt.waits ||
				took > tt.waits+time.Second || errors.Is(err, workers.ErrRefused) {
				t.Errorf("%d %q after %s: %v, %v; sent %d times, took %v", tt.code, tt.text, tt.after, ok, err, sends, took)
			}
		}
	})
}

// oneConn is a listener with one connection.
type oneConn struct {
	conn net.Conn
	once sync.Once
}

func (l *oneConn) Accept() (conn net.Conn, err error) {
	err = io.EOF
	l.once.Do(func() { conn, err = l.conn, nil })
	return conn, err
}
func (l *oneConn) Close() error   { return nil }
func (l *oneConn) Addr() net.Addr { return l.conn.LocalAddr() }

// If the answer to a write is lost, the write has happened once.
func TestLostAnswer(t *testing.T) {
	s, f := overFake(t)
	if err := swap(s); err != nil {
		t.Fatal(err)
	}
	var writes atomic.Int32
	f.before = func(r *http.Request) http.HandlerFunc {
		if r.Method != http.MethodPatch {
			return nil
		}
		writes.Add(1)
		body, _ := io.ReadAll(r.Body)
		return func(w http.ResponseWriter, r *http.Request) {
			f.mu.Lock()
			f.answer(r, body)
			f.mu.Unlock()
			panic(http.ErrAbortHandler)
		}
	}
	ok, err := s.Swap(limited(t, time.Minute), map[string]string{"p/a": "1"}, map[string]string{"p/a": "2"})
	if ok || err == nil || errors.Is(err, workers.ErrRefused) || writes.Load() != 1 {
		t.Errorf("%v, %v; %d were sent", ok, err, writes.Load())
	}
	if texts, err := s.Get(limited(t, time.Minute), "p/a"); err != nil || texts[0] != "2" {
		t.Errorf("get: %q, %v", texts, err)
	}
}

// An error has a date too, in whole seconds.
func TestClocks(t *testing.T) {
	const date = 1_700_000_000_000
	dated := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", time.UnixMilli(date).UTC().Format(http.TimeFormat))
		failed(w, 403, "Forbidden", "{}")
	})
	undated := serve(t, func(w http.ResponseWriter, r *http.Request) { w.Header()["Date"] = nil })
	gone := httptest.NewServer(nil)
	gone.Close()
	for url, want := range map[string][]time.Duration{undated: nil, gone.URL: nil, dated: {time.Minute}} {
		s := open(t, Config{URL: url})
		if got := s.Clocks(t.Context(), func() uint64 { return date + 61_000 }); !slices.Equal(got, want) {
			t.Errorf("%s: ahead by %v, want %v", url, got, want)
		}
	}
}
