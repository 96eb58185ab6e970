package main

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/node/certs/certstest"
	"github.com/flake-go/flake/node/etf"
)

// fetch returns the status and the body of an answer.
func fetch(t *testing.T, client *http.Client, url, token string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

// HTTP and Erlang callers take ids of one generator, and see each other's counts.
func TestHTTP(t *testing.T) {
	s, port := startHere(t, func(c *config.Config) { c.HTTP.Listen = "127.0.0.1:0" })
	defer s.stop()
	status, id := fetch(t, http.DefaultClient, s.http.url+"v1/ids", "")
	if status != http.StatusOK || !regexp.MustCompile(`^[0-9A-Za-z]{22}\n$`).MatchString(id) {
		t.Errorf("%d, %q", status, id)
	}
	runChecks(t, port, nil, "get")
	hangUp(t, dialAs(t, s.node.Addr().String(), "caller@127.0.0.1"))
	_, metrics := fetch(t, http.DefaultClient, s.http.url+"metrics", "")
	for _, want := range []string{
		`flake_calls_total{generator="flake",kind="get",result="ok"} [1-9]`,
		`flake_ids_total{generator="flake"} [1-9]`,
		`flake_connections_established_total [1-9]`,
		`flake_received_bytes_total [1-9]`,
		`flake_sent_bytes_total [1-9]`,
		`flake_mark_ahead_seconds{generator="flake"} [0-9]`,
		`flake_mark_save_seconds_count{generator="flake"} [1-9]`,
		`flake_mark_saved_timestamp_seconds{generator="flake"} [1-9]`,
		`flake_call_seconds_count{door="erlang"} [1-9]`,
		`flake_call_seconds_count{door="http"} 1`,
		`flake_build_info{commit=".*",go="go.*",version="` + version + `"} 1`,
		`flake_http_requests_total{code="200",endpoint="/v1/ids"} 1`,
		`process_resident_memory_bytes [1-9]`,
		`go_goroutines [1-9]`,
	} {
		if !regexp.MustCompile("(?m)^" + want).MatchString(metrics) {
			t.Errorf("no %s in\n%s", want, metrics)
		}
	}
}

// With a token and TLS, beyond the loopback.
func TestHTTPS(t *testing.T) {
	ca := certstest.NewCA(t, "ca")
	cert, key := ca.Issue("http", "127.0.0.1")
	file := filepath.Join(t.TempDir(), "token")
	const token = "0123456789abcdef0123456789abcdef"
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, _ := startHere(t, func(c *config.Config) {
		c.HTTP = config.HTTP{Listen: "127.0.0.1:0", TokenFile: file, TLS: config.HTTPTLS{On: true, Cert: cert, Key: key}}
	})
	defer s.stop()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca.Pool}}}
	defer client.CloseIdleConnections()
	for token, want := range map[string]int{token: http.StatusOK, "": http.StatusUnauthorized, "another": http.StatusUnauthorized} {
		if status, body := fetch(t, client, s.http.url+"v1/ids", token); status != want {
			t.Errorf("%q: %d, %s, want %d", token, status, body, want)
		}
	}
	if status, _ := fetch(t, client, s.http.url+"healthz", ""); status != http.StatusOK {
		t.Errorf("healthz without the token: %d", status)
	}
}

// A stop lets requests finish, ends the page's events, and lets nobody in.
func TestHTTPStops(t *testing.T) {
	s, _ := startHere(t, func(c *config.Config) { c.HTTP.Listen = "127.0.0.1:0" })
	events, err := http.Get(s.http.url + "events")
	if err != nil {
		t.Fatal(err)
	}
	defer events.Body.Close()
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	if body, err := io.ReadAll(events.Body); err != nil || !strings.HasPrefix(string(body), "data: ") {
		t.Errorf("%v, %q", err, body)
	}
	if _, err := http.Get(s.http.url); err == nil {
		t.Error("let in")
	}
	http.DefaultClient.CloseIdleConnections()
}

// startHTTP starts the command with HTTP, and returns its URL.
func startHTTP(t *testing.T, command string) (n *flakeNode, url string) {
	t.Helper()
	n = startCommand(t, command, "", fmt.Sprintf("cookie = %q\n[http]\nlisten = \"127.0.0.1:0\"", cookie))
	return n, n.await("  HTTP ")
}

// ask sends requests on many connections at once. Little unread data is in flight.
func ask(t *testing.T, url, path string, conns int) (all []net.Conn) {
	t.Helper()
	addr := strings.Trim(strings.TrimPrefix(url, "http:"), "/")
	for range conns {
		c := dial(t, addr)
		c.(*net.TCPConn).SetReadBuffer(4 << 10)
		all = append(all, c)
	}
	for _, c := range all {
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path)
	}
	return all
}

// An Erlang caller that leases some ids takes no notice of hundreds that lease the
// most over HTTP.
func TestHTTPLeases(t *testing.T) {
	const conns, calls = 400, 10
	n, url := startHTTP(t, command)
	c, err := client.DialAddr(t.Context(), n.addr, nodeName, cookie)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	leases := ask(t, url, fmt.Sprintf("/v1/leases?n=%d", idserver.MaxLease), conns)
	var last flake.ID
	for range calls {
		reply, err := c.Call(t.Context(), "flake", etf.Tuple{etf.Atom("lease"), int64(1000)})
		if err != nil {
			t.Fatal(err)
		}
		runs := reply.(etf.Tuple)[1].(etf.List)
		last = flake.ID(runs[len(runs)-1].(etf.Tuple)[0].([]byte))
	}
	before := 0
	for _, c := range leases {
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(body)), "\n") // "ID COUNT", and ids sort as their texts do
		if answer.StatusCode == http.StatusOK && lines[len(lines)-1] < last.String() {
			before++
		}
	}
	t.Logf("%d of %d had all their ids before the last of %d calls", before, conns, calls)
	if before > conns/2 {
		t.Errorf("%d of %d had all their ids before who asked %d times for some", before, conns, calls)
	}
}

// While others do not read their answers, and more connect and say nothing, the node
// reports that it is well.
func TestHTTPHealth(t *testing.T) {
	const unread, silent = 600, 300
	command, err := plain()
	if err != nil {
		t.Fatal(err)
	}
	_, url := startHTTP(t, command)
	alone := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	ask(t, url, fmt.Sprintf("/v1/ids?base=2&n=%d", idserver.MaxMany), unread)
	await(t, "others are refused", func() bool {
		status, _ := fetch(t, alone, url+"v1/ids", "")
		return status == http.StatusServiceUnavailable
	})
	for range 5 {
		for range silent {
			dial(t, strings.Trim(strings.TrimPrefix(url, "http:"), "/"))
		}
		for _, path := range []string{"healthz", "readyz"} {
			if status, body := fetch(t, alone, url+path, ""); status != http.StatusOK {
				t.Errorf("%s: %d, %s", path, status, body)
			}
		}
	}
}

// Faults in the HTTP settings are reported at the start.
func TestHTTPRefused(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string, mode os.FileMode) config.HTTP {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return config.HTTP{TokenFile: path}
	}
	for _, tt := range []struct {
		http config.HTTP
		want string
	}{
		{file("open", strings.Repeat("a", 32), 0o666), "the file's mode is 0666: no access for others wanted to write"},
		{file("short", "0123456789abcde\n", 0o600), "16 characters or more wanted"},
		{file("space", "0123456789 abcdef\n", 0o600), "without spaces wanted"},
		{config.HTTP{TokenFile: filepath.Join(dir, "none")}, "cannot be read: no such file or directory"},
		{config.HTTP{TLS: config.HTTPTLS{On: true, Cert: "none.pem", Key: "none.pem"}}, `http.tls: cert "none.pem": cannot be read`},
	} {
		tt.http.Listen = "127.0.0.1:0"
		_, _, err := readSettings(config.Config{HTTP: tt.http}, slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), tt.want) || !errors.As(err, new(usageError)) {
			t.Errorf("%+v: %v, want %s", tt.http, err, tt.want)
		}
	}
}

// 0.0.0.0 is all of IPv4, and none of IPv6.
func TestHTTPIPv4(t *testing.T) {
	d, err := openDoor(config.HTTP{Listen: "0.0.0.0:0", Open: true}, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer d.listener.Close()
	if addr := d.listener.Addr().(*net.TCPAddr); addr.IP.To4() == nil {
		t.Errorf("listens at %v", addr)
	}
}

// A node that cannot listen for HTTP does not start, and leaves nothing behind.
func TestHTTPTaken(t *testing.T) {
	s, _ := startHere(t, func(c *config.Config) { c.HTTP.Listen = "127.0.0.1:0" })
	defer s.stop()
	cfg := config.Default()
	cfg.Node.Name, cfg.Node.EPMD = "taken@127.0.0.1", "off"
	cfg.Flake.TimestampPath = filepath.Join(t.TempDir(), "timestamp")
	cfg.Flake.Random, cfg.Flake.WorkerID = false, []byte{3, 1, 0, byte(os.Getpid() >> 16), byte(os.Getpid() >> 8), byte(os.Getpid())}
	cfg.HTTP.Listen = s.http.listener.Addr().String()
	for range 2 { // the second finds file and worker id free
		_, err := start(t.Context(), cfg, io.Discard, &nodeLog{Logger: slog.New(slog.DiscardHandler)})
		if err == nil || !strings.Contains(err.Error(), "http.listen: listen tcp4 "+cfg.HTTP.Listen) {
			t.Fatal(err)
		}
	}
}
