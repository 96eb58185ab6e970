package main

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/idserver/idhttp"
	"github.com/flake-go/flake/idserver/idhttp/idhttptest"
	"github.com/flake-go/flake/internal/certstest"
	"github.com/flake-go/flake/rel/flake/cli"
)

// writeConfig writes a configuration for the commands that query a node.
func writeConfig(t *testing.T, text string, args ...any) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sys.toml")
	writeFile(t, path, fmt.Sprintf(text, args...))
	return path
}

// status queries a node in each way that its configuration offers, with its certificate and token. The exit
// status is 1 if the node cannot hand out ids, or does not answer.
func TestStatus(t *testing.T) {
	cert, key := certstest.NewCA(t, "ca").Issue("http", "flake.example.com")
	token := writeConfig(t, "0123456789abcdef0123456789abcdef\n")
	listen := "0.0.0.0:" + freePort(t)
	s, _ := startHere(t, func(c *config.Config) {
		c.HTTP = config.HTTP{Listen: listen, TokenFile: token, TLS: config.HTTPTLS{On: true, Cert: cert, Key: key}}
		id := int64(os.Getpid() % 1024)
		c.Generators = []config.Generator{{Name: "orders", Format: "snowflake", Options: formats.Options{"id": id}}}
	})
	defer s.Stop()
	file := writeConfig(t,
		"[node]\nname = %q\ncookie = %q\n[http]\nlisten = %q\ntoken_file = %q\n[http.tls]\ncert = %q\nkey = %q\n"+
			"[[generator]]\nname = \"orders\"\nformat = \"snowflake\"\nid = 1\n", nodeName, cookie, listen, token, cert, key)
	row := `\nflake +yes +flake +03:00:00:[0-9a-f:]{8} +worker_id +[0-9]+ +[-0-9TZ:]+ +[-0-9TZ:]+ +-?[0-9.]+m?s ` +
		`+-\norders +yes +snowflake +[0-9]+ +configuration +`
	for way, head := range map[string]string{"http": ", connected nodes: 0\n", "erlang": "\n"} {
		await(t, "the previous command has disconnected", func() bool { return len(s.Node.Peers()) == 0 })
		out, errs, status := called(t, "status", "-config", file, "-over", way)
		want := regexp.MustCompile(`^` + regexp.QuoteMeta(nodeName) + `, flake ` + regexp.QuoteMeta(cli.Version) +
			`, up [0-9hms]+` + head + `\ngenerator .*` + row)
		if status != 0 || errs != "" || !want.MatchString(out) {
			t.Errorf("over %s: exit status %d, %q,\n%s", way, status, errs, out)
		}
		out, _, status = called(t, "status", "-json", "-config", file, "-over", way)
		var r idhttp.Report
		if err := json.Unmarshal([]byte(out), &r); err != nil || status != 0 || !r.Ready || len(r.Generators) != 2 ||
			(r.Connections != nil) != (way == "http") ||
			r.Version != cli.Version || r.Generators[1].Name != "orders" || r.Generators[1].Format != "snowflake" ||
			r.Generators[1].Mark == 0 {
			t.Errorf("over %s: exit status %d, %v, %s", way, status, err, out)
		}
	}
	usual, _, _ := called(t, "status", "-config", file)
	if !strings.Contains(usual, "connected nodes") {
		t.Errorf("status did not use HTTP: %s", usual)
	}
	other, _ := certstest.NewCA(t, "other").Issue("http", "flake.example.com")
	text := readFile(t, file)
	strange := writeConfig(t, "%s", strings.Replace(text, cert, other, 1))
	if _, errs, status := called(t, "status", "-config", strange); status != exitFailure ||
		!strings.Contains(errs, "the certificate is not the one in http.tls.cert") {
		t.Errorf("with another certificate: exit status %d, %q", status, errs)
	}
	s.Generators.Stop()
	for _, way := range []string{"http", "erlang"} {
		out, errs, status := called(t, "status", "-config", file, "-over", way)
		if status != exitFailure || !strings.HasPrefix(errs, "flake: not ready: generator flake: ") ||
			!regexp.MustCompile(`\nflake +shutdown +flake `).MatchString(out) {
			t.Errorf("without ids over %s: exit status %d, %q,\n%s", way, status, errs, out)
		}
	}
	s.Stop()
	for _, way := range []string{"http", "erlang"} {
		if out, errs, status := called(t, "status", "-config", file, "-over", way); status != exitFailure ||
			out != "" || errs == "" {
			t.Errorf("without the node over %s: exit status %d, %q, %q", way, status, out, errs)
		}
	}
}

// A node reports its state at a URL, in each condition. Callers without the token learn only whether it is
// ready.
func TestStatusOfURL(t *testing.T) {
	file := writeConfig(t, "")
	for condition, want := range map[string]struct {
		status    int
		out, errs string // regular expressions
	}{
		"up": {0, `\nflake +yes +flake +02:fc:00:00:00:01 +store +0 +- .* 9m[0-9]+s\norders +yes `, `^$`},
		"token": {0, `^ready\n$`,
			`^flake: only the node's readiness is known: the node answered 401: the token is missing.*\n$`},
		"behind": {exitFailure, `\nflake +clock_running_backwards `,
			`^flake: not ready: generator flake: the clock is .* behind\n$`},
		"unsaved": {exitFailure,
			`\nflake +timestamp_not_saved (.*\n)*\nflake: the store: the store at 127.0.0.1: no answer in time\n`,
			`^flake: not ready: generator flake: the time was last saved at `},
	} {
		h := httptest.NewServer(idhttptest.Door(t, condition))
		out, errs, status := called(t, "status", "-config", file, "-url", h.URL)
		if status != want.status || !regexp.MustCompile(want.out).MatchString(out) ||
			!regexp.MustCompile(want.errs).MatchString(errs) {
			t.Errorf("%s: exit status %d, want %d, %q,\n%s", condition, status, want.status, errs, out)
		}
		h.Close()
	}
	for args, want := range map[string]string{
		"-over x":                         "flake: -over x: must be erlang or http\n",
		"-over http":                      "flake: HTTP needs -url, or http.listen with a port in the configuration\n",
		"-over erlang -url http://[::1]/": "flake: -url is for -over http\n",
		"-url x":                          "flake: -url: URL \"x\": must be like http://127.0.0.1:8465\n",
	} {
		_, errs, status := called(t, append([]string{"status", "-config", file}, strings.Fields(args)...)...)
		if status != exitUsage || errs != want {
			t.Errorf("%s: exit status %d, %q, want %q", args, status, errs, want)
		}
	}
}
