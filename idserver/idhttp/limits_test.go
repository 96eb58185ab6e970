package idhttp

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/internal/certstest"
)

// listening returns the URL of a server.
func listening(t *testing.T) string { return "http://" + listeningWith(t, nil) }

// listeningWith returns the address of a server, with TLS unless config is nil.
func listeningWith(t *testing.T, config *tls.Config) string {
	t.Helper()
	s := New(Options{Generators: flakes(t)})
	if config != nil {
		s.TLS = func() *tls.Config { return config }
	}
	s.http.ReadHeaderTimeout, s.http.ReadTimeout, s.http.WriteTimeout = 0, 0, 0 // so that no connection times out
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Serve(l, nil)
	t.Cleanup(func() { s.Stop(context.Background()) })
	return l.Addr().String()
}

// The size of a TLS handshake is limited; the data after it is not.
func TestTLSLimit(t *testing.T) {
	ca := certstest.NewCA(t, "ca")
	cert, err := tls.LoadX509KeyPair(ca.Issue("flake", "127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	addr := listeningWith(t, &tls.Config{Certificates: []tls.Certificate{cert}})
	long, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer long.Close()
	long.SetDeadline(time.Now().Add(time.Minute))
	long.Write([]byte{22, 3, 1, 0x40, 0, 1, 0, 0xff, 0xff}) // a ClientHello of 65,535 bytes, the first record
	long.Write(make([]byte, 16<<10-4))
	long.Write(append([]byte{22, 3, 1, 0x40, 0}, make([]byte, 4<<10)...))
	if n, err := long.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d, %v: the connection was not closed", n, err)
	}

	dialled := 0
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: ca.Pool},
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			dialled++
			return new(net.Dialer).DialContext(ctx, network, addr)
		},
	}}
	defer client.CloseIdleConnections()
	for i := range 30 {
		r, err := http.NewRequest(http.MethodGet, "https://"+addr+"/healthz", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X", strings.Repeat("x", 7<<10))
		answer, err := client.Do(r)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Error(answer.Status)
		}
	}
	if dialled != 1 {
		t.Errorf("%d connections, want 1", dialled)
	}
}

func TestLongHeader(t *testing.T) {
	r, err := http.NewRequest(http.MethodGet, listening(t)+"/v1/ids", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X", strings.Repeat("x", MaxHeader+4096))
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Error(answer.Status)
	}
}

// Silent connections, and those with half a request, do not keep callers out, even if there are
// more of them than the limit.
func TestManySilent(t *testing.T) {
	url := listening(t)
	addr := strings.TrimPrefix(url, "http://")
	var silent []net.Conn
	for i := range MaxConnections + SpareConnections + 10 {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if i%2 == 0 {
			io.WriteString(c, "GET /v1/ids HTTP/1.1\r\nHost: ")
		}
		silent = append(silent, c)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	answer, err := client.Get(url + "/v1/ids")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	silent[0].SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := silent[0].Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the oldest connection is still open: %v", err)
	}
}

// from is a connection from an address. It records whether it was closed.
type from struct {
	net.Conn
	addr   string
	closed atomic.Bool
}

func (f *from) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(f.addr), 1))
}

func (f *from) Close() error { f.closed.Store(true); return nil }

type callers chan *from

func (c callers) Accept() (net.Conn, error) {
	f, ok := <-c
	if !ok {
		return nil, net.ErrClosed
	}
	return f, nil
}

func (c callers) Close() error { close(c); return nil }
func (callers) Addr() net.Addr { return nil }

// If there are too many connections, the one that has been silent the longest is closed. If one
// host has too many, only its connections are considered. Connections being answered stay, up to
// the limit.
func TestLimitListener(t *testing.T) {
	const most, perHost, spare = 4, 2, 1
	for _, tt := range []struct {
		// In order. Those with ! are being answered, those with + have just been, and those with ~ have just
		// sent the beginning of a request.
		callers string
		closed  int // the index of the one that is closed
	}{
		{"192.0.2.1 192.0.2.2 192.0.2.2 192.0.2.2 192.0.2.2", 1},
		{"192.0.2.1 192.0.2.2! 192.0.2.2 192.0.2.2 192.0.2.2", 2},
		{"192.0.2.1 192.0.2.2+ 192.0.2.2 192.0.2.2 192.0.2.2", 2},
		{"192.0.2.1 192.0.2.2! 192.0.2.2! 192.0.2.2 192.0.2.2", 3},
		{"192.0.2.1 192.0.2.2! 192.0.2.2! 192.0.2.2! 192.0.2.2", 3},
		{"192.0.2.1! 192.0.2.2! 192.0.2.2! 192.0.2.3! 192.0.2.4! 192.0.2.4", 4},
		{"192.0.2.1! 192.0.2.2+ 192.0.2.2! 192.0.2.2! 192.0.2.2", 3},
		{"2001:db8::1 2001:db8:1::1 2001:db8:1::2 2001:db8:1::3 2001:db8:1::4", 1},
		{"192.0.2.1 ::ffff:192.0.2.1 192.0.2.1 192.0.2.1", 0},
		{"192.0.2.1 192.0.2.2 192.0.2.3 192.0.2.4 192.0.2.5", -1},
		{"192.0.2.1 192.0.2.2 192.0.2.3 192.0.2.4 192.0.2.5 192.0.2.6", 0},
		{"192.0.2.1~ 192.0.2.2 192.0.2.3 192.0.2.4 192.0.2.5 192.0.2.6", 0},
		{"192.0.2.1! 192.0.2.2+ 192.0.2.3 192.0.2.4 192.0.2.5 192.0.2.6", 2},
		{"192.0.2.1 192.0.2.3 192.0.2.2 192.0.2.2 192.0.2.2 192.0.2.2", 2}, // both limits are exceeded
		{"127.0.0.1 127.0.0.1 127.0.0.1 127.0.0.1 127.0.0.1", -1},
		{"127.0.0.1 127.0.0.1 127.0.0.1 127.0.0.1 ::1 127.0.0.1", 0},
		{"127.0.0.1! 127.0.0.1! 127.0.0.1! 127.0.0.1! 127.0.0.1! 127.0.0.1!", 4},
	} {
		inner := make(callers, 1)
		l := &limited{inner, false, newLimits(most, perHost, spare)}
		all := strings.Fields(tt.callers)
		var conns []*from
		var answered, sending []net.Conn
		for i, text := range all {
			f := &from{addr: strings.TrimRight(text, "!+~")}
			conns = append(conns, f)
			inner <- f
			if i == len(all)-1 {
				for _, c := range answered {
					noteState(c, http.StateIdle)
				}
				for _, c := range sending {
					noteState(c, http.StateActive)
				}
			}
			c, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			if strings.ContainsAny(text, "!+") {
				l.answer(connOf(tls.Server(c, nil))) // net/http passes it in a tls.Conn
			}
			if strings.Contains(text, "+") {
				answered = append(answered, c)
			}
			if strings.Contains(text, "~") {
				sending = append(sending, c)
			}
		}
		for i, f := range conns {
			if f.closed.Load() != (i == tt.closed) {
				t.Errorf("%s: connection %d closed: %t", tt.callers, i, f.closed.Load())
			}
		}
	}
}

// A request ends the silence of its connection, even a request for which there is no room, such as
// one for /healthz.
func TestRequestWithoutRoom(t *testing.T) {
	inner := make(callers, 1)
	l := &limited{inner, false, newLimits(1, 1, 2)}
	var conns []*from
	accept := func() *conn {
		f := &from{addr: "127.0.0.1"}
		conns = append(conns, f)
		inner <- f
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return connOf(c)
	}
	first, second, _ := accept(), accept(), accept()
	if !l.answer(first) || l.answer(second) {
		t.Error("there is not room for exactly one request")
	}
	accept()
	for i, f := range conns {
		if f.closed.Load() != (i == 2) {
			t.Errorf("connection %d closed: %t", i, f.closed.Load())
		}
	}
}

// A request on a connection that was just closed does not make the connection count as open again.
func TestRequestOnClosed(t *testing.T) {
	inner := make(callers, 1)
	l := &limited{inner, false, newLimits(1, 1, 1)}
	inner <- &from{addr: "192.0.2.1"}
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	l.answer(connOf(c))
	noteState(c, http.StateIdle)
	if n := len(l.open.All); n != 0 {
		t.Errorf("%d connections are open", n)
	}
}

// slow is a source that returns ids when its gate opens.
type slow struct {
	formats.Source
	gate chan struct{}
}

func newSlow(t *testing.T) slow {
	t.Helper()
	return slow{flakes(t)[0].Server.IDs, make(chan struct{})}
}

func (s slow) Reserve(ctx context.Context, n int, meta uint8) (formats.Run, error) {
	<-s.gate
	return s.Source.Reserve(ctx, n, meta)
}

// While the maximum number of requests are being answered, all others are refused immediately,
// except those for the health of the node.
func TestCrowded(t *testing.T) { synctest.Test(t, testCrowded) }

func testCrowded(t *testing.T) {
	ids := newSlow(t)
	s, l, client := serving(Options{}, ids)
	defer s.Stop(t.Context())
	keeping := &http.Client{Transport: &http.Transport{DialContext: l.dial, MaxIdleConnsPerHost: MaxConnections}}
	defer keeping.CloseIdleConnections()
	get := func(client *http.Client, path string) (status int, retry string, ends bool) {
		answer, err := client.Get("http://localhost" + path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return 0, "", false
		}
		defer answer.Body.Close()
		io.Copy(io.Discard, answer.Body)
		return answer.StatusCode, answer.Header.Get("Retry-After"), answer.Close
	}
	for round, client := range []*http.Client{client, keeping, keeping, client} {
		got := make(chan int, MaxConnections)
		for range MaxConnections {
			go func() {
				status, _, _ := get(client, "/v1/ids")
				got <- status
			}()
		}
		synctest.Wait()
		for range 3 * SpareConnections {
			c, _ := l.dial(t.Context(), "", "")
			defer c.Close()
		}
		for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/v1/ids": 503, "/metrics": 503, "/": 503,
			"/nowhere": 503} {
			if status, retry, ends := get(keeping, path); status != want || (retry == "1") != (want == 503) || !ends {
				t.Errorf("round %d, %s: %d, Retry-After %q, connection closed: %t", round, path, status, retry, ends)
			}
		}
		for range MaxConnections {
			ids.gate <- struct{}{}
		}
		for range MaxConnections {
			if status := <-got; status != http.StatusOK {
				t.Errorf("round %d: %d", round, status)
			}
		}
	}
}

// Callers without the required token do not keep out those that have it, even if they send many
// requests for the health of the node, and do not read the answers.
func TestCrowdedByStrangers(t *testing.T) { synctest.Test(t, testCrowdedByStrangers) }

func testCrowdedByStrangers(t *testing.T) {
	s, l, client := server(t, Options{Access: Access{Token: tokenA}}, isReady)
	defer s.Stop(t.Context())
	for range MaxConnections {
		c, _ := l.dial(t.Context(), "", "")
		defer c.Close()
		io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n") // the answer is not read
	}
	synctest.Wait()
	r, err := http.NewRequest(http.MethodGet, "http://localhost/v1/ids", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+tokenA)
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Error(answer.Status)
	}
	if answer, err = client.Get("http://localhost/healthz"); err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK || !answer.Close {
		t.Errorf("%s, connection closed: %t", answer.Status, answer.Close)
	}
}

// No ids are taken for a caller that hangs up before its turn.
func TestHungUp(t *testing.T) { synctest.Test(t, testHungUp) }

func testHungUp(t *testing.T) {
	ids := newSlow(t)
	s, l, _ := serving(Options{}, ids)
	defer s.Stop(t.Context())
	const callers = 10
	for i := range callers {
		c, _ := l.dial(t.Context(), "", "")
		defer c.Close()
		io.WriteString(c, "GET /v1/leases?n=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n")
		synctest.Wait()
		if i > 0 {
			c.Close()
		}
	}
	synctest.Wait()
	if got := s.Generators[0].Server.Stats(); got.Refusals != callers-1 {
		t.Errorf("%+v, want %d refusals", got, callers-1)
	}
	close(ids.gate)
	synctest.Wait()
	if got := s.Generators[0].Server.Stats(); got.IDs != 1000 {
		t.Errorf("%d ids, want the 1000 of the remaining caller", got.IDs)
	}
}

// dry is a source without ids.
type dry struct{ formats.Source }

func (dry) Reserve(ctx context.Context, _ int, _ uint8) (formats.Run, error) {
	<-ctx.Done()
	return formats.Run{}, ctx.Err()
}

// A request for many ids that waits too long is refused while its answer can still be written.
func TestNoTurn(t *testing.T) { synctest.Test(t, testNoTurn) }

func testNoTurn(t *testing.T) {
	s, _, client := serving(Options{}, dry{newSlow(t)})
	defer s.Stop(t.Context())
	begin := time.Now()
	answer, err := client.Get("http://localhost/v1/leases?n=1000")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" ||
		!strings.Contains(string(body), "cannot take 1000 ids in 15s") ||
		!strings.Contains(string(body), `"reason":"system_limit"`) || time.Since(begin) != turnTime {
		t.Errorf("%s, %s after %v", answer.Status, body, time.Since(begin))
	}
}

// The log limits lines by message, so all lines from net/http have the same message. The address is
// in an attribute.
func TestNetHTTPIsLogged(t *testing.T) {
	var out strings.Builder
	s := New(Options{Log: slog.New(slog.NewTextHandler(&out, nil))})
	for _, caller := range []string{"10.0.0.1:1", "10.0.0.2:2"} {
		s.http.ErrorLog.Printf("http: TLS handshake error from %s: EOF", caller)
	}
	messages := make(map[string]int)
	for line := range strings.Lines(out.String()) {
		_, message, _ := strings.Cut(line, "msg=")
		message, err, _ := strings.Cut(message, " err=")
		if messages[message]++; !strings.Contains(err, "TLS handshake error from 10.0.0.") {
			t.Errorf("%q", line)
		}
	}
	if len(messages) != 1 {
		t.Errorf("%d messages: %v", len(messages), messages)
	}
}

// If this node's certificate is not valid, lines about handshakes say so, since callers that refuse it may not.
func TestInvalidCertificateIsLogged(t *testing.T) {
	var out strings.Builder
	expired := &tls.Config{Certificates: []tls.Certificate{{Leaf: &x509.Certificate{NotAfter: time.Unix(1, 0)}}}}
	s := New(Options{Log: slog.New(slog.NewTextHandler(&out, nil)), TLS: func() *tls.Config { return expired }})
	s.http.ErrorLog.Print("http: TLS handshake error from 10.0.0.1:1: EOF")
	s.http.ErrorLog.Print("http: superfluous response.WriteHeader call")
	if n := strings.Count(out.String(), "certificate is not valid"); n != 1 {
		t.Errorf("%d lines name the certificate, want 1:\n%s", n, &out)
	}
}

// A third of the connections, and at most SpareConnections, are for callers that send nothing.
func TestConnections(t *testing.T) {
	for connections, answered := range map[int]int{0: MaxConnections, 30: 20} {
		s := New(Options{Generators: flakes(t), Connections: connections})
		l := newPipes()
		s.Serve(l, nil)
		s.Stop(t.Context())
		most, perHost := s.limits.answered.Most, s.limits.answered.PerHost
		if all := cmp.Or(connections, MaxConnections+SpareConnections); s.limits.open.Most != all || most != answered ||
			perHost != min(answered, MaxConnectionsPerHost) {
			t.Errorf("of %d connections, %d may be answered, and %d of one host", s.limits.open.Most, most, perHost)
		}
	}
}

// A body may have MaxBody bytes. One that cannot be read is refused.
func TestBodySizes(t *testing.T) {
	s := New(Options{Generators: flakes(t)})
	for _, tt := range []struct {
		body io.Reader
		want int
	}{
		{strings.NewReader("n=1" + strings.Repeat("&", MaxBody-3)), 200},
		{strings.NewReader("n=1" + strings.Repeat("&", MaxBody-2)), 413},
		{io.MultiReader(strings.NewReader("n=1"), iotest.ErrReader(io.ErrUnexpectedEOF)), 400},
	} {
		r := httptest.NewRequest(http.MethodPost, "http://localhost/v1/ids", tt.body)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		if s.ServeHTTP(w, r); w.Code != tt.want {
			t.Errorf("%d, want %d: %s", w.Code, tt.want, w.Body)
		}
	}
}

// Over plain HTTP, except on loopback, browsers do not say which page a GET is from.
func TestPagesElsewhere(t *testing.T) {
	generators := flakes(t)
	for name, test := range map[string]struct {
		options Options
		method  string
		header  map[string]string
		want    int
	}{
		"a browser": {Options{Access: Access{AnyHost: true}}, "GET",
			map[string]string{"User-Agent": "Mozilla/5.0"}, 403},
		"a browser's POST": {Options{Access: Access{AnyHost: true}}, "POST",
			map[string]string{"User-Agent": "Mozilla/5.0", "Origin": "http://flake.example"}, 200},
		"another site's": {Options{Access: Access{AnyHost: true}}, "POST",
			map[string]string{"User-Agent": "Mozilla/5.0", "Origin": "http://elsewhere.example"}, 403},
		"an origin that is no URL": {Options{Access: Access{AnyHost: true}}, "POST",
			map[string]string{"User-Agent": "Mozilla/5.0", "Origin": "http://%"}, 403},
		"not a browser": {Options{Access: Access{AnyHost: true}}, "GET", nil, 200},
		"no password": {Options{Access: Access{Token: tokenA}}, "GET",
			map[string]string{"User-Agent": "Mozilla/5.0", "Authorization": "Basic Og=="}, 401},
		"the token": {Options{Access: Access{Token: tokenA}}, "GET",
			map[string]string{"User-Agent": "Mozilla/5.0", "Authorization": "Bearer " + tokenA}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			test.options.Generators = generators
			r := httptest.NewRequest(test.method, "http://flake.example/v1/ids", nil)
			for key, value := range test.header {
				r.Header.Set(key, value)
			}
			w := httptest.NewRecorder()
			New(test.options).ServeHTTP(w, r)
			if w.Code != test.want {
				t.Errorf("%d, want %d", w.Code, test.want)
			}
		})
	}
}

// A request with both lengths gets one answer, and its connection closes.
func TestBothLengths(t *testing.T) {
	c, err := net.Dial("tcp", strings.TrimPrefix(listening(t), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const next = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
	fmt.Fprintf(c, "POST /v1/ids HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n"+
		"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n%s",
		len("0\r\n\r\n"+next), next)
	c.SetReadDeadline(time.Now().Add(time.Minute))
	answers, err := io.ReadAll(c)
	if n := strings.Count(string(answers), "HTTP/1.1 "); err != nil || n != 1 {
		t.Errorf("%d answers, %v: %s", n, err, answers)
	}
}

// A caller who waits before it sends a body that is too large is not told to send it.
func TestExpect(t *testing.T) {
	c, err := net.Dial("tcp", strings.TrimPrefix(listening(t), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "POST /v1/ids HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n",
		MaxBody+1)
	c.SetReadDeadline(time.Now().Add(time.Minute))
	answer := make([]byte, len("HTTP/1.1 413"))
	if _, err := io.ReadFull(c, answer); err != nil || string(answer) != "HTTP/1.1 413" {
		t.Errorf("%s, %v", answer, err)
	}
}

// unread is a caller who does not read the answer, or has hung up.
type unread struct {
	httptest.ResponseRecorder
	began, ended chan struct{}
	err          error
}

func newUnread(err error) *unread {
	return &unread{*httptest.NewRecorder(), make(chan struct{}), make(chan struct{}), err}
}

func (u *unread) Write(b []byte) (int, error) {
	if u.err == nil {
		close(u.began)
		<-u.ended
		return 0, os.ErrDeadlineExceeded
	}
	return 0, u.err
}

func (u *unread) SetWriteDeadline(time.Time) error {
	close(u.ended)
	return nil
}

// Callers who do not read metrics keep no other from getting them, and those who hang up cause no error.
func TestScrapes(t *testing.T) {
	var log strings.Builder
	s := New(Options{Generators: flakes(t), Log: slog.New(slog.NewTextHandler(&log, nil))})
	scrape := func(w http.ResponseWriter) {
		s.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/metrics", nil))
	}
	var all []*unread
	var wg sync.WaitGroup
	for range maxUnread + 1 {
		u := newUnread(nil)
		all = append(all, u)
		wg.Go(func() { scrape(u) })
		<-u.began
	}
	<-all[0].ended
	w := httptest.NewRecorder()
	if scrape(w); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "flake_ids_total") ||
		w.Header().Get("Content-Length") != strconv.Itoa(w.Body.Len()) {
		t.Errorf("%d: %.100s", w.Code, w.Body)
	}
	<-all[1].ended
	for _, u := range all[2:] {
		select {
		case <-u.ended:
			t.Error("an answer was ended too early")
		default:
			close(u.ended)
		}
	}
	wg.Wait()
	scrape(newUnread(errors.New("broken pipe")))
	if log.Len() > 0 {
		t.Error(log.String())
	}
	all = nil
	for range maxUnread + 2 { // none of them leaves before the last enters
		all = append(all, newUnread(nil))
		s.scrapes.enter(http.NewResponseController(all[len(all)-1]))
	}
	<-all[0].ended
	<-all[1].ended

	s = New(Options{Generators: slices.Repeat(flakes(t), 2), Log: s.Log}) // two with one name
	w = httptest.NewRecorder()
	if scrape(w); w.Code != http.StatusInternalServerError || log.Len() == 0 {
		t.Errorf("metrics that cannot be collected: %d, logged: %s", w.Code, &log)
	}
}
