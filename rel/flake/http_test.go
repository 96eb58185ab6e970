package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/rel/flake/cli"
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
	listen, url := onHTTP(t)
	s, port := startHere(t, listen)
	defer s.Stop()
	status, id := fetch(t, http.DefaultClient, url+"v1/ids", "")
	if status != http.StatusOK || !regexp.MustCompile(`^[0-9A-Za-z]{22}\n$`).MatchString(id) {
		t.Errorf("%d, %q", status, id)
	}
	runChecks(t, port, nil, "get")
	hangUp(t, dialAs(t, s.Node.Addr().String(), "caller@127.0.0.1"))
	_, metrics := fetch(t, http.DefaultClient, url+"metrics", "")
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
		`flake_build_info{commit=".*",go="go.*",version="` + cli.Version + `"} 1`,
		`flake_http_requests_total{code="200",endpoint="/v1/ids"} 1`,
		`process_resident_memory_bytes [1-9]`,
		`go_goroutines [1-9]`,
	} {
		if !regexp.MustCompile("(?m)^" + want).MatchString(metrics) {
			t.Errorf("no %s in\n%s", want, metrics)
		}
	}
}

// Stopping lets requests finish, ends the page's events, and admits no new caller.
func TestHTTPStops(t *testing.T) {
	listen, url := onHTTP(t)
	s, _ := startHere(t, listen)
	events, err := http.Get(url + "events")
	if err != nil {
		t.Fatal(err)
	}
	defer events.Body.Close()
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	if body, err := io.ReadAll(events.Body); err != nil || !strings.HasPrefix(string(body), "data: ") {
		t.Errorf("%v, %q", err, body)
	}
	if _, err := http.Get(url); err == nil {
		t.Error("a request after Stop was accepted")
	}
	http.DefaultClient.CloseIdleConnections()
}

// startHTTP starts the command with HTTP, and returns its URL.
func startHTTP(t *testing.T, command string) (n *flakeNode, url string) {
	t.Helper()
	n = startCommand(t, command, "", fmt.Sprintf("cookie = %q\n[http]\nlisten = \"127.0.0.1:0\"", cookie))
	return n, n.await("  HTTP ")
}

// ask opens many connections with small receive buffers, and then sends a request on each.
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

// An Erlang caller that leases 1000 ids at a time is not delayed by hundreds of callers that lease as many as they
// can over HTTP.
func TestHTTPLeases(t *testing.T) {
	const conns, calls = 400, 10
	n, url := startHTTP(t, command)
	c, err := n.connect(t.Context())
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
		// Each line is "ID COUNT". As text, ids sort in the same order.
		lines := strings.Split(strings.TrimSpace(string(body)), "\n")
		if answer.StatusCode == http.StatusOK && lines[len(lines)-1] < last.String() {
			before++
		}
	}
	t.Logf("%d of %d had all their ids before the last of %d calls", before, conns, calls)
	if before > conns/2 {
		t.Errorf("%d of %d HTTP callers had all their ids before the last of the Erlang caller's %d calls",
			before, conns, calls)
	}
}

// While some clients do not read their answers, and others connect and send nothing, the node
// reports that it is healthy.
func TestHTTPHealth(t *testing.T) {
	const unread, silent = 600, 300
	command, err := plain()
	if err != nil {
		t.Fatal(err)
	}
	_, url := startHTTP(t, command)
	alone := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	many := fmt.Sprintf("/v1/ids?base=2&n=%d", idserver.MaxMany)
	ask(t, url, many, unread)
	await(t, "more clients are refused", func() bool {
		status, _ := fetch(t, alone, url+"v1/ids", "")
		ask(t, url, many, 1) // one of them may have been refused while this client was answered
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
