package idhttp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/node/traffic"
)

// pipes is a listener in memory.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	close  func()
}

func newPipes() *pipes {
	closed := make(chan struct{})
	return &pipes{make(chan net.Conn), closed, sync.OnceFunc(func() { close(closed) })}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.close(); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	p.conns <- there
	return here, nil
}

// flakes returns a list of one generator, flake.
func flakes(t *testing.T) []Generator {
	t.Helper()
	ids, err := flake.NewGenerator(1, flake.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return []Generator{{Name: "flake", Server: &idserver.Server{IDs: formats.Flake(ids)}}}
}

// source is a source whose readiness the test sets.
type source struct {
	formats.Source
	ready func() error
}

func (s source) Ready() error { return s.ready() }

// server returns a server that serves pipes, and a client for it.
func server(t *testing.T, o Options, ready func() error) (*Door, *pipes, *http.Client) {
	t.Helper()
	return serving(o, source{flakes(t)[0].Server.IDs, ready})
}

// serving is like server, with the given source.
func serving(o Options, ids formats.Source) (*Door, *pipes, *http.Client) {
	o.Generators = []Generator{{Name: "flake", Server: &idserver.Server{IDs: ids}}}
	s, l := New(o), newPipes()
	s.Serve(l, nil)
	return s, l, &http.Client{Transport: &http.Transport{DialContext: l.dial, DisableKeepAlives: true}}
}

func isReady() error { return nil }

// An event is sent every second until the server stops.
func TestEvents(t *testing.T) { synctest.Test(t, testEvents) }

func testEvents(t *testing.T) {
	s, _, client := server(t, Options{}, func() error { return flake.ErrClosed })
	time.Sleep(time.Minute)
	begin := time.Now()
	answer, err := client.Get("http://localhost/events")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if h := answer.Header; h.Get("Content-Type") != "text/event-stream" || h.Get("Cache-Control") != "no-store" ||
		h.Get("X-Accel-Buffering") != "no" {
		t.Errorf("%v", h)
	}
	events := bufio.NewReader(answer.Body)
	n, html := 0, ""
	go func() {
		time.Sleep(interval / 2)
		if answer, err := client.Get("http://localhost/v1/ids?n=40"); err == nil {
			answer.Body.Close()
		}
	}()
	for ; time.Since(begin) < 2*writeTime; n++ {
		html = ""
		for {
			line, err := events.ReadString('\n')
			if err != nil {
				t.Fatalf("after %v: %v", time.Since(begin), err)
			}
			if line == "\n" {
				break
			}
			data, ok := strings.CutPrefix(line, "data: ")
			if !ok || data == "\n" {
				t.Fatalf("%q", line)
			}
			html += data
		}
	}
	if n < 60 || n > 61 {
		t.Errorf("%d events", n)
	}
	for _, want := range []string{`id="line" d="M1 `, "at most 40, now 0.", " UTC, for 2 min 0 s"} {
		if !strings.Contains(html, want) {
			t.Errorf("there is no %s in %s", want, html)
		}
	}
	var stop sync.WaitGroup
	stop.Go(func() { s.Stop(t.Context()) })
	if rest, err := io.ReadAll(events); err != nil {
		t.Errorf("after Stop, the events end with %q, %v", rest, err)
	}
	stop.Wait()
}

// Every second the door notes the refusals and the clock, and every ten seconds the nodes. It asks an idle
// generator nothing.
func TestSamples(t *testing.T) { synctest.Test(t, testSamples) }

func testSamples(t *testing.T) {
	var log bytes.Buffer
	looks, asked := 0, 0
	ids := source{flakes(t)[0].Server.IDs, func() error { asked++; return nil }}
	s := New(Options{
		Log: slog.New(slog.NewTextHandler(&log, nil)), Node: Node{Peers: func() []traffic.Peer { looks++; return nil }},
		Generators: []Generator{{Name: "flake", Server: &idserver.Server{IDs: idle{ids}}}},
	})
	s.steps.start = s.started.Add(-time.Hour)
	s.Generators[0].Server.Get(t.Context(), idserver.Meta{Given: true}) // refused
	s.Serve(newPipes(), nil)
	time.Sleep(time.Minute + interval/2)
	synctest.Wait()
	s.Stop(t.Context())
	all := s.samples.get()
	if len(all) != 61 || all[60].errors != 1 || looks != 7 || asked != 1 {
		t.Errorf("%d samples, the last %+v; %d looks at the nodes, %d at the generator", len(all), all[len(all)-1],
			looks, asked)
	}
	if n, first := strings.Count(log.String(), "\n"), s.Recent.state(); n != 1 || len(first) != 1 ||
		!strings.Contains(log.String(), "the clock was set") {
		t.Errorf("logged: %s; the page shows %+v", &log, first)
	}
}

// idle is a source whose mark is never saved again.
type idle struct{ formats.Source }

func (idle) LastSaved() (time.Time, error) { return time.Unix(1, 0), nil }

// A caller that does not read its events, or has gone, does not keep others out for long.
func TestEventsUnread(t *testing.T) { synctest.Test(t, testEventsUnread) }

func testEventsUnread(t *testing.T) {
	s, l, _ := server(t, Options{}, isReady)
	defer s.Stop(t.Context())
	c, _ := l.dial(t.Context(), "", "")
	defer c.Close()
	io.WriteString(c, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
	ctx, cancel := context.WithCancel(t.Context())
	follow := func() int {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/events", nil))
		if w.Code != http.StatusOK && w.Header().Get("Retry-After") != "120" {
			t.Errorf("Retry-After is %s, want 120", w.Header().Get("Retry-After"))
		}
		return w.Code
	}
	for range MaxStreams - 1 {
		go follow()
	}
	synctest.Wait()
	if status := follow(); status != http.StatusServiceUnavailable {
		t.Errorf("one more page is answered with %d", status)
	}
	time.Sleep(writeTime + time.Second)
	if len(s.streams) != MaxStreams-1 {
		t.Errorf("%d streams after one was not read, want %d", len(s.streams), MaxStreams-1)
	}
	cancel()
	synctest.Wait()
	if len(s.streams) != 0 {
		t.Errorf("%d streams, want 0", len(s.streams))
	}
}

// If a response is not read, its connection is closed, and a line is logged.
func TestUnread(t *testing.T) { synctest.Test(t, testUnread) }

// unreadLines counts the log lines about responses that were not read.
type unreadLines struct{ atomic.Int32 }

func (n *unreadLines) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("not read in time")) {
		n.Add(1)
	}
	return len(line), nil
}

func testUnread(t *testing.T) {
	var unread unreadLines
	log := slog.New(slog.NewTextHandler(&unread, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s, l, client := server(t, Options{Log: log}, isReady)
	c, _ := l.dial(t.Context(), "", "")
	defer c.Close()
	io.WriteString(c, "GET /v1/ids?n=65536 HTTP/1.1\r\nHost: localhost\r\n\r\n")
	time.Sleep(writeTime - time.Second)
	for want := range int32(2) {
		if n := unread.Load(); n != want {
			t.Errorf("%d lines, want %d", n, want)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
	}
	if rest, err := io.ReadAll(c); len(rest) != 0 || err != nil {
		t.Errorf("%d bytes and %v after the end", len(rest), err)
	}
	if answer, err := client.Get("http://localhost/v1/ids"); err != nil {
		t.Error(err)
	} else {
		answer.Body.Close()
	}
	synctest.Wait()
	if n := unread.Load(); n != 1 {
		t.Errorf("%d lines, want 1", n)
	}
	s.Stop(t.Context())
}

// Stop lets requests finish until its context ends. After Stop returns, the server does not call
// generators.
func TestStop(t *testing.T) {
	for _, late := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) { testStop(t, late) })
	}
}

func testStop(t *testing.T, late bool) {
	answered := make(chan struct{})
	var log bytes.Buffer
	s, _, client := server(t, Options{Log: slog.New(slog.NewTextHandler(&log, nil))},
		func() error { <-answered; return nil })
	got := make(chan error)
	go func() {
		answer, err := client.Get("http://localhost/readyz")
		if err == nil {
			answer.Body.Close()
		}
		got <- err
	}()
	synctest.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	stopped := make(chan struct{})
	go func() {
		s.Stop(ctx)
		close(stopped)
	}()
	if late {
		if err := <-got; !errors.Is(err, io.EOF) {
			t.Errorf("a caller that is not answered in time gets %v", err)
		}
	}
	synctest.Wait()
	select {
	case <-stopped:
		t.Error("stopped while a generator is being called")
	default:
	}
	close(answered)
	if !late {
		if err := <-got; err != nil {
			t.Errorf("a caller that is answered in time gets %v", err)
		}
	}
	<-stopped
	if log.Len() > 0 {
		t.Errorf("%s", &log)
	}
}

// A listener's failure is logged.
func TestListenerEnds(t *testing.T) { synctest.Test(t, testListenerEnds) }

func testListenerEnds(t *testing.T) {
	var log bytes.Buffer
	s, l, _ := server(t, Options{Log: slog.New(slog.NewTextHandler(&log, nil))}, isReady)
	l.Close()
	synctest.Wait()
	if !strings.Contains(log.String(), "HTTP stopped") {
		t.Errorf("%s", &log)
	}
	s.Stop(t.Context())
}

// However many requests wait for a body that never arrives, other requests are answered. Without
// the token, requests are refused before their body arrives.
func TestNoBody(t *testing.T) {
	for _, token := range []string{"", tokenA} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			t.Run(method+" "+token, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { testNoBody(t, token, method) })
			})
		}
	}
}

func testNoBody(t *testing.T, token, method string) {
	s, l, client := server(t, Options{Access: Access{Token: token}}, isReady)
	defer s.Stop(t.Context())
	begin := time.Now()
	for range MaxConnections {
		c, _ := l.dial(t.Context(), "", "")
		defer c.Close()
		io.WriteString(c, method+" /v1/ids HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nn=")
		if token == "" {
			continue
		}
		if answer, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil ||
			answer.StatusCode != http.StatusUnauthorized {
			t.Fatalf("%v, %v", answer, err)
		}
	}
	synctest.Wait()
	r, err := http.NewRequest(http.MethodPost, "http://localhost/v1/ids", strings.NewReader("n=2"))
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth("", token)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if took := time.Since(begin); answer.StatusCode != http.StatusOK || took != 0 {
		t.Errorf("%s after %v", answer.Status, took)
	}
}

// The default logger is used if none is given.
func TestDefaultLog(t *testing.T) {
	if New(Options{}).Log != slog.Default() {
		t.Error("the logger is not slog.Default")
	}
}
