package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/idserver/idhttp"
	"github.com/flake-go/flake/idserver/idhttp/idhttptest"
	"github.com/flake-go/flake/internal/testenv"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
)

// Each alert fires when it should and not before, according to promtool, and links to a section that says
// what to do.
func TestAlerts(t *testing.T) {
	t.Parallel()
	testenv.Need(t, "promtool")
	if out, err := exec.CommandContext(t.Context(), "promtool", "test", "rules",
		"testdata/alerts_test.yml").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	var texts [3]string
	for i, path := range []string{"../files/alerts.yml", "testdata/alerts_test.yml", "../../docs/metrics.md"} {
		texts[i] = readFile(t, path)
	}
	alerts := regexp.MustCompile(`(?m)^ *- alert: (\w+)$`).FindAllStringSubmatch(texts[0], -1)
	if len(alerts) == 0 {
		t.Fatal("no alerts")
	}
	for _, a := range alerts {
		if n := strings.Count(texts[1], "alertname: "+a[1]+"\n"); n != 1 {
			t.Errorf("%s is tested %d times, want once", a[1], n)
		}
		if !strings.Contains(texts[2], "\n### "+a[1]+"\n") {
			t.Errorf("docs/metrics.md has no heading %s", a[1])
		}
		if !strings.Contains(texts[0], "docs/metrics.md#"+strings.ToLower(a[1])+"\n") {
			t.Errorf("%s does not link to its section in docs/metrics.md", a[1])
		}
	}
}

// A Prometheus that scrapes a node answers each query of the dashboard and accepts the alerts, and
// none of them fires.
func TestPrometheus(t *testing.T) {
	t.Parallel()
	n, node := startHTTP(t, command)
	useEverything(t, n, node)
	s := httptest.NewServer(everything(t))
	t.Cleanup(s.Close)
	p := startPrometheus(t, strings.Trim(node, "htp:/"), strings.TrimPrefix(s.URL, "http://"))

	stop := make(chan struct{})
	done := make(chan struct{})
	go func() { // so that rates are not zero
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
				if answer, err := http.Get(node + "v1/ids"); err == nil {
					answer.Body.Close()
				}
			}
		}
	}()
	defer func() { close(stop); <-done }()
	for title, expr := range queriesOf(t) {
		await(t, title, func() bool { return p.answers(expr) })
	}
	var rules struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError, State string }
		}
	}
	await(t, "rules are evaluated", func() bool {
		p.get("rules", &rules)
		return len(rules.Groups) == 1 && rules.Groups[0].Rules[0].Health != "unknown"
	})
	for _, r := range rules.Groups[0].Rules {
		if r.Health == "err" || r.State == "firing" {
			t.Errorf("%s: %s, %s %s", r.Name, r.State, r.Health, r.LastError)
		}
	}
	metrics := exec.CommandContext(t.Context(), "promtool", "check", "metrics")
	_, text := fetch(t, http.DefaultClient, node+"metrics", "")
	metrics.Stdin = strings.NewReader(text)
	if out, err := metrics.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("metrics: %v, %s", err, out)
	}
}

// useEverything causes every kind of event that a node counts.
func useEverything(t *testing.T, n *flakeNode, url string) {
	t.Helper()
	c, err := n.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	for _, request := range []etf.Term{etf.Atom("get"), etf.Tuple{etf.Atom("get"), int64(99)}} {
		if _, err := c.Call(t.Context(), "flake", request); err != nil {
			t.Fatal(err)
		}
	}
	handshake.Start(dial(t, n.addr), nodeName, handshake.Options{Node: "wrong@127.0.0.1", Creation: 1, Cookie: "wrong"})
	hostile := dialAs(t, n.addr, "hostile@127.0.0.1")
	fmt.Fprintf(hostile, "\xff\xff\xff\xff")
	untilClosed(t, hostile)
	fetch(t, http.DefaultClient, url+"v1/ids?n=0", "")
}

// everything returns a server that reports what a node with etcd and certificates does.
func everything(t *testing.T) *idhttp.Door {
	o := idhttptest.Door(t, "up").Options
	leaf := &x509.Certificate{NotAfter: time.Now().Add(90 * 24 * time.Hour)}
	o.Node.TLS = func() *tls.Config { return &tls.Config{Certificates: []tls.Certificate{{Leaf: leaf}}} }
	for i := range o.Generators {
		o.Generators[i].Server.From = func() idserver.Origin {
			return idserver.Origin{From: "store", Until: time.Now().Add(10 * time.Minute)}
		}
	}
	return idhttp.New(o)
}

// queriesOf returns the queries of the dashboard. Its keys are the title of the panel and the
// query's id.
func queriesOf(t *testing.T) map[string]string {
	t.Helper()
	source := readFile(t, "../files/grafana.json")
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ RefID, Expr string }
		}
	}
	if err := json.Unmarshal([]byte(source), &dashboard); err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			all[p.Title+" "+target.RefID] = strings.NewReplacer("$job", "flake", "$instance", ".*", "$__rate_interval",
				"1m").Replace(target.Expr)
		}
	}
	if len(all) == 0 {
		t.Fatal("no queries")
	}
	return all
}

// prometheus is a real Prometheus.
type prometheus struct {
	t   *testing.T
	url string
}

// startPrometheus makes Prometheus scrape these addresses every two seconds. An answer may take two seconds
// at most.
func startPrometheus(t *testing.T, targets ...string) *prometheus {
	t.Helper()
	dir := t.TempDir()
	rules, err := filepath.Abs("../files/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("global: {scrape_interval: 2s, scrape_timeout: 2s, evaluation_interval: "+
		"250ms}\nrule_files: [%q]\n"+
		"scrape_configs: [{job_name: flake, static_configs: [{targets: [%s]}]}]\n", rules, strings.Join(targets, ", "))
	writeFile(t, config, text)
	addr := "127.0.0.1:" + freePort(t)
	testenv.Need(t, "prometheus", "promtool")
	cmd := exec.Command("prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+addr)
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v; scripts/test installs it", err)
	}
	p := &prometheus{t, "http://" + addr + "/api/v1/"}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		log.Close()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("%s", text)
		}
	})
	await(t, "Prometheus is up", func() bool { return p.answers(`up == 1`) })
	return p
}

// get decodes the data of an endpoint into data, and reports whether it got any.
func (p *prometheus) get(endpoint string, data any) bool {
	p.t.Helper()
	answer, err := http.Get(p.url + endpoint)
	if err != nil {
		return false // it has just been started
	}
	defer answer.Body.Close()
	reply := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.NewDecoder(answer.Body).Decode(&reply); err != nil {
		return false
	}
	if reply.Error != "" {
		p.t.Fatalf("%s: %s", endpoint, reply.Error)
	}
	return reply.Status == "success"
}

// answers reports whether the result of a query is a number.
func (p *prometheus) answers(expr string) bool {
	p.t.Helper()
	var data struct{ Result []struct{ Value [2]any } }
	if !p.get("query?query="+url.QueryEscape(expr), &data) {
		return false
	}
	for _, r := range data.Result {
		if r.Value[1] != "NaN" {
			return true
		}
	}
	return false
}
