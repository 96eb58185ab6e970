package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"unicode"

	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/idserver/idhttp"
)

// evil starts a line, clears a terminal in two ways, moves the cursor back, and reverses the text
// that follows.
const evil = "\nforged\x1b[2J\u009b2J\r\u202e\U000e0001"

// harmless fails the test if what a command prints can control a terminal or forge a line.
func harmless(t *testing.T, what string, printed ...string) {
	t.Helper()
	for _, text := range printed {
		if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("%s: prints %q", what, text)
		}
		if strings.Contains("\n"+text, "\nforged") {
			t.Errorf("%s: prints a forged line: %q", what, text)
		}
	}
}

// speak answers one request with the given bytes.
func speak(answer string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
			fmt.Fprint(conn, answer)
			conn.Close()
		}
	})
}

// switches answers "101 Switching Protocols", and then sends nothing. A client that accepts this
// answer reads from a connection that has no deadline.
func switches(w http.ResponseWriter, _ *http.Request) {
	if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h\r\n\r\n")
		io.Copy(io.Discard, conn) // until the client closes it
		conn.Close()
	}
}

// Whatever a server answers, the commands end, and print no terminal escape sequences or forged lines.
func TestHostileAnswers(t *testing.T) {
	serving := func(report, ids string) http.Handler {
		mux := http.NewServeMux()
		mux.HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
		mux.HandleFunc("/v1/info", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, report) })
		mux.HandleFunc("/v1/ids", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, ids) })
		return mux
	}
	text, err := json.Marshal(idhttp.Report{Node: evil, Version: evil, Generators: []idhttp.GeneratorReport{
		{Name: "flake", Reason: evil, Info: idserver.Info{
			Format: evil, WorkerFrom: evil, WorkerError: evil, Uptime: -1 << 63, Last: 1 << 63, Mark: -1 << 63,
		}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	file := writeConfig(t, "")
	detail := fmt.Sprintf(`{"detail":%q,"reason":%q}`, "\x1b[2J", "\x1b[2J")
	detail = strings.ReplaceAll(detail, `\x1b`, `\u001b`)
	for what, h := range map[string]http.Handler{
		"a report":           serving(string(text), "01234567"),
		"ids":                serving(`{"generators":[{"name":"flake","format":"flake"}]}`, evil+" "+evil+" "+evil),
		"a large report":     serving(strings.Repeat(" ", 2<<20)+string(text), ""),
		"no report":          serving(evil, ""),
		"another type":       serving(`{"node":`+evil, ""),
		"a status":           speak("HTTP/1.1 500 " + evil + "\r\nContent-Length: 16\r\n\r\n" + `{"detail":"why"}`),
		"a reason":           speak(fmt.Sprintf("HTTP/1.1 503 x\r\nContent-Length: %d\r\n\r\n%s", len(detail), detail)),
		"a protocol":         speak(evil),
		"a header":           speak("HTTP/1.1 200 OK\r\n" + evil + "\r\n\r\n"),
		"an endless header":  speak("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 11<<20)),
		"another protocol":   http.HandlerFunc(switches),
		"an endless interim": speak(strings.Repeat("HTTP/1.1 103 x\r\n\r\n", 1<<10)),
	} {
		server := httptest.NewServer(h)
		for _, args := range []string{"status", "status -json", "get", "get -n 3 -base 62",
			"bench -duration 50ms -callers 2", "bench -json -duration 50ms -callers 1 -base 36"} {
			words := strings.Fields(args)
			out, errs, _ := called(t, append(words, "-config", file, "-url", server.URL)...)
			harmless(t, what+", "+args, out, errs)
		}
		server.Close()
	}
	var b bytes.Buffer
	complain(&b, errors.New(evil[1:]))
	harmless(t, "an error", b.String())
}

// Requests to loopback addresses are not sent through a proxy.
func TestNoProxyForLoopback(t *testing.T) {
	node := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer node.Close()
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the proxy was asked for %s", r.URL)
	}))
	defer proxy.Close()
	_, port, err := net.SplitHostPort(node.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"LOCALHOST", "0.0.0.0"} {
		c := exec.Command(command, "status", "-url", "http://"+net.JoinHostPort(host, port))
		c.Env = append(os.Environ(), "http_proxy="+proxy.URL, "no_proxy=")
		if out, err := c.CombinedOutput(); !strings.Contains(string(out), "ready") {
			t.Errorf("%s: %s, %v", host, out, err)
		}
	}
}

// No command follows a redirect, which could send the token to another host.
func TestRedirect(t *testing.T) {
	var asked []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path+" "+r.Header.Get("Authorization"))
	}))
	defer other.Close()
	server := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	token := writeConfig(t, "0123456789abcdef0123456789abcdef\n")
	file := writeConfig(t, "[http]\nlisten = %q\ntoken_file = %q\n", server.Listener.Addr(), token)
	for _, command := range []string{"status -over http", "get -url " + server.URL, "bench -url " + server.URL} {
		_, errs, status := called(t, append(strings.Fields(command), "-config", file)...)
		if status != exitFailure || !strings.Contains(errs, "307") {
			t.Errorf("%s: exit status %d, %q", command, status, errs)
		}
	}
	if len(asked) > 0 {
		t.Errorf("redirects were followed: %q", asked)
	}
}
