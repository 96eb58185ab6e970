package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/idserver/idhttp"
)

func TestURL(t *testing.T) {
	for _, tt := range []struct {
		url string
		ok  bool
	}{
		{"http://127.0.0.1:8465", true},
		{"https://ids.example/flake/", true},
		{"127.0.0.1:8465", false},
		{"ftp://127.0.0.1", false},
		{"http://", false},
		{"http://127.0.0.1:8465/?n=1", false},
		{"", false},
	} {
		if _, err := NewHTTP(tt.url, HTTPOptions{}); (err == nil) != tt.ok {
			t.Errorf("%q: %v", tt.url, err)
		}
	}
}

// Errors do not show the password in a URL.
func TestPassword(t *testing.T) {
	for _, at := range []string{"http://user:PASS@127.0.0.1:1", "ftp://user:PASS@127.0.0.1",
		"http://user:PASS@127.0.0.1:x", "user:PASS@127.0.0.1"} {
		h, err := NewHTTP(at, HTTPOptions{})
		if err == nil {
			_, err = NewIDs[flake.ID](h, "flake").Next(t.Context())
		}
		if err == nil || strings.Contains(err.Error(), "PASS") || !strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("%s: %v", at, err)
		}
	}
}

func TestToken(t *testing.T) {
	f := startFlakes(t)
	const token = "0123456789abcdef"
	web := httptest.NewServer(idhttp.New(idhttp.Options{
		Generators: []idhttp.Generator{{Name: "flake", Server: f.server}}, Access: idhttp.Access{Token: token},
		Log: quiet,
	}))
	defer web.Close()
	for _, tt := range []struct{ token, err string }{
		{token, ""},
		{"", "401"},
		{"wrong", "401"},
	} {
		h, err := NewHTTP(web.URL, HTTPOptions{Token: tt.token})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		_, err = NewIDs[flake.ID](h, "flake").Next(t.Context())
		if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("%q: %v, want %q", tt.token, err, tt.err)
		}
	}
}

// The token is not sent to other ports, which net/http considers the same host.
func TestRedirect(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the redirect is followed")
	}))
	defer other.Close()
	web := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer web.Close()
	no := errors.New("no way")
	for _, tt := range []struct {
		own  *http.Client
		want string
	}{
		{nil, "307"},
		{&http.Client{}, "307"},
		{&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return no }}, "no way"},
	} {
		h, err := NewHTTP(web.URL, HTTPOptions{Token: "0123456789abcdef", Client: tt.own})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := NewIDs[flake.ID](h, "flake").Next(t.Context()); err == nil ||
			!strings.Contains(err.Error(), tt.want) {
			t.Error(err)
		}
		h.Close()
	}
}

// If a different server, or a later version, answers at the URL, calls fail with a clear error.
func TestOtherServers(t *testing.T) {
	hangUp := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "16")
		io.WriteString(w, "half")
	}
	status := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			io.WriteString(w, body)
		}
	}
	statusLine := func(line string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			fmt.Fprintf(conn, "HTTP/1.1 %s\r\nContent-Length: 16\r\n\r\n{\"detail\":\"why\"}", line)
		}
	}
	for _, tt := range []struct {
		what  string
		serve http.HandlerFunc
		err   string
		is    error // or nil
	}{
		{"another service", status(200, "<html>"), "6 bytes", nil},
		{"nothing there", status(404, "<html>"), "404 Not Found\n", nil},
		{"no detail", status(500, `{"reason":"system_limit"}`), "500 Internal Server Error\n", nil},
		{"a detail", status(500, `{"detail":"why"}`), "500 Internal Server Error: why", nil},
		{"a reason", status(503, `{"detail":"why","reason":"timestamp_not_saved"}`), "why", flake.ErrTimestampNotSaved},
		{"a reason of the future", status(503, `{"detail":"why","reason":"new"}`), "new", nil},
		{"a reason with a terminal escape sequence", status(503, `{"detail":"\u001b[2J","reason":"\u001b[2J"}`),
			`{error, \x1b[2J}: \x1b[2J` + "\n", nil},
		{"a status with a terminal escape sequence", statusLine("500 \x1b[2J"), `500 \x1b[2J: why` + "\n", nil},
		{"an answer cut off", hangUp, "unexpected EOF", ErrLost},
		{"the longest allowed answer", status(200, strings.Repeat("x", maxAnswer)), "have 16777216 bytes", nil},
		{"an endless answer", status(200, strings.Repeat("x", maxAnswer+1)), "16777216 bytes", nil},
	} {
		web := httptest.NewServer(tt.serve)
		h, err := NewHTTP(web.URL, HTTPOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = NewIDs[flake.ID](h, "flake").Next(t.Context())
		if err == nil || !strings.Contains(err.Error()+"\n", tt.err) || tt.is != nil && !errors.Is(err, tt.is) {
			t.Errorf("%s: %v, want %q", tt.what, err, tt.err)
		}
		if fields, err := NewIDs[flake.ID](h, "flake").Decompose(t.Context(), flake.ID{}); err == nil ||
			tt.is != nil && !errors.Is(err, tt.is) {
			t.Errorf("%s: %v, %v", tt.what, fields, err)
		}
		h.Close()
		web.Close()
		if _, err = NewIDs[flake.ID](h, "flake").Next(t.Context()); err == nil || errors.Is(err, ErrLost) {
			t.Errorf("%s: without a server: %v", tt.what, err)
		}
	}
}

// A connection that stays open after "101 Switching Protocols" would have no deadline.
func TestSwitchingProtocols(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h\r\n\r\n")
		io.Copy(io.Discard, conn) // until the client closes it
	}))
	defer web.Close()
	for _, own := range []*http.Client{nil, {}} {
		h, err := NewHTTP(web.URL, HTTPOptions{Client: own})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := NewIDs[flake.ID](h, "flake").Next(t.Context()); !errors.Is(err, ErrLost) ||
			!strings.Contains(err.Error(), "101 Switching Protocols") {
			t.Error(err)
		}
		h.Close()
	}
}

// A canceled call does not wait for the answer.
func TestHTTPContext(t *testing.T) {
	var asked atomic.Bool
	web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked.Store(true)
		<-r.Context().Done()
	}))
	defer web.Close()
	h, err := NewHTTP(web.URL, HTTPOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	ended := make(chan error)
	go func() {
		_, err := NewIDs[flake.ID](h, "flake").Next(ctx)
		ended <- err
	}()
	await(t, "a request", asked.Load)
	cancel(why)
	if err := <-ended; !errors.Is(err, why) {
		t.Error(err)
	}
}

func TestClosedHTTP(t *testing.T) {
	door := startFlakes(t).doors(t)["HTTP"]
	ids := NewIDs[flake.ID](door, "flake")
	if _, err := ids.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	door.Close()
	if _, err := ids.Next(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

// theirs is a transport that the program provides.
type theirs struct {
	err    error
	asked  *http.Request
	closed bool // whether the body is closed
}

func (t *theirs) RoundTrip(r *http.Request) (*http.Response, error) {
	t.asked = r
	return &http.Response{StatusCode: http.StatusOK, Body: t}, t.err
}

func (t *theirs) Read(b []byte) (int, error) { return len(b), nil }
func (t *theirs) Close() error               { t.closed = true; return nil }

// HTTPOptions.Client makes the requests.
func TestOwnClient(t *testing.T) {
	for _, tt := range []struct {
		what string
		err  error
		lost bool // the call may have been performed
	}{
		{"no end of an answer", nil, false},
		{"no connection", &net.OpError{Op: "dial", Err: io.EOF}, false},
		{"a connection that ends", &net.OpError{Op: "read", Err: io.EOF}, true},
		{"another error", io.EOF, true},
	} {
		own := &theirs{err: tt.err}
		h, err := NewHTTP("http://own", HTTPOptions{Client: &http.Client{Transport: own}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = NewIDs[flake.ID](h, "flake").Next(t.Context())
		if err == nil || errors.Is(err, ErrLost) != tt.lost || strings.Count(err.Error(), "http://") != 1 {
			t.Errorf("%s: %v", tt.what, err)
		}
		if tt.err == nil && !own.closed {
			t.Errorf("%s: the body is not closed", tt.what)
		}
		if _, ok := own.asked.Header["Authorization"]; ok {
			t.Errorf("%s: a token is sent, although none is set", tt.what)
		}
	}
}

// Connections of simultaneous calls are kept until Close.
func TestHTTPConnections(t *testing.T) {
	const callers = 10
	var opened, ended atomic.Int32
	arrived, leave := make(chan bool), make(chan bool)
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		arrived <- true
		<-leave
		id := flake.New()
		w.Write(id[:])
	}))
	web.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			opened.Add(1)
		case http.StateClosed:
			ended.Add(1)
		}
	}
	web.Start()
	defer web.Close()
	h, err := NewHTTP(web.URL, HTTPOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				if _, err := NewIDs[flake.ID](h, "flake").Next(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		for range callers {
			<-arrived
		}
		for range callers {
			leave <- true
		}
		all.Wait()
	}
	if n := opened.Load(); n != callers {
		t.Errorf("%d connections for %d callers, want one each", n, callers)
	}
	h.Close()
	await(t, "the end of the connections", func() bool { return ended.Load() == opened.Load() })
}

// A call is repeated if it was lost because a kept connection ended.
func TestHTTPRepeats(t *testing.T) {
	var used sync.Map
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, again := used.LoadOrStore(r.RemoteAddr, true); again {
			panic(http.ErrAbortHandler) // ends the connection
		}
		id := flake.New()
		w.Write(id[:])
	}))
	defer web.Close()
	h, err := NewHTTP(web.URL, HTTPOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for range 3 {
		if _, err := NewIDs[flake.ID](h, "flake").Next(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// Errors that show text from a node escape its control characters.
func TestHTTPForTerminals(t *testing.T) {
	const escape = "\x1b[2J"
	status := http.StatusOK
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		if status == http.StatusOK {
			io.WriteString(w, "BCf"+escape+"\n")
		} else {
			io.WriteString(w, `{"detail":"\u001b[2J","reason":"badarg"}`)
		}
	}))
	defer web.Close()
	h, err := NewHTTP(web.URL, HTTPOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for _, status = range []int{http.StatusOK, http.StatusBadRequest} {
		texts, err := NewIDs[flake.ID](h, "flake").Texts(t.Context(), 1, Canonical)
		if err == nil || strings.Contains(err.Error(), escape) {
			t.Errorf("%d: %q, %q", status, texts, err)
		}
	}
}

// Without a trusted certificate no request is sent.
func TestHTTPNotSent(t *testing.T) {
	handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the server received a request") })
	secure, plain := httptest.NewTLSServer(handler), httptest.NewServer(handler)
	defer secure.Close()
	defer plain.Close()
	for _, url := range []string{secure.URL, strings.Replace(plain.URL, "http:", "https:", 1)} {
		h, err := NewHTTP(url, HTTPOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		if _, err := NewIDs[flake.ID](h, "flake").Next(t.Context()); err == nil || errors.Is(err, ErrLost) {
			t.Errorf("%s: %v", url, err)
		}
	}
}
