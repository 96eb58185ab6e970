package daemon

import (
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake/workers/stores"
	"github.com/flake-go/flake/idserver/idhttp"
	"github.com/flake-go/flake/rel/flake/output"
)

// A reload changes the level of the log.
func TestReloadLogLevel(t *testing.T) {
	cfg := config.Default()
	cfg.Node.Name, cfg.Node.EPMD, cfg.Node.Listen = "level@127.0.0.1", "off", "127.0.0.1:0"
	cfg.Flake.TimestampPath = filepath.Join(t.TempDir(), "timestamp")
	lines := output.OpenLog(cfg.Log, t.Output())
	defer lines.Close()
	s, err := Start(t.Context(), cfg, io.Discard, lines)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	cfg = s.settings.config
	cfg.Log.Level = slog.LevelDebug
	if err := s.reload(func() (config.Config, error) { return cfg, nil }, true); err != nil ||
		lines.Level.Level() != slog.LevelDebug {
		t.Error(err, lines.Level)
	}
}

// Startup reports the same facts in several lines or, if the log is in JSON, in one log line.
func TestAnnounce(t *testing.T) {
	for format, objects := range map[string]int{config.LogText: 0, config.LogJSON: 1} {
		cfg := config.Default()
		cfg.Node.Name, cfg.Node.EPMD, cfg.Node.Listen = "announced@127.0.0.1", "off", "127.0.0.1:0"
		cfg.Flake.TimestampPath = filepath.Join(t.TempDir(), "timestamp")
		cfg.HTTP.Listen, cfg.HTTP.Metrics, cfg.Log.Format = "127.0.0.1:0", "127.0.0.1:0", format
		var log, out strings.Builder
		lines := output.OpenLog(cfg.Log, &log)
		s, err := Start(t.Context(), cfg, io.Discard, lines)
		if err != nil {
			t.Fatal(err)
		}
		s.announce(&out)
		_, metrics := s.http.addresses()
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		lines.Close()
		said := strings.Count(log.String(), `"msg":"hands out ids"`)
		text := log.String() + out.String()
		if said != objects || (out.Len() == 0) != (objects > 0) || !strings.Contains(text, metrics) ||
			!strings.Contains(text, "node.cookie") { // the default is public
			t.Errorf("%s: %s", format, text)
		}
	}
}

// The log warns about a node that Erlang nodes cannot find.
func TestWarnOf(t *testing.T) {
	for _, test := range []struct {
		epmd, listen string
		warns        bool
	}{{"off", "", true}, {"off", "127.0.0.1:0", true}, {"off", "127.0.0.1:4370", false}, {"auto", "", false}} {
		var b strings.Builder
		warnOf(config.Config{Node: config.Node{EPMD: test.epmd, Listen: test.listen}}, slog.New(slog.NewTextHandler(&b, nil)))
		if (b.Len() > 0) != test.warns {
			t.Errorf("%+v: %s", test, &b)
		}
	}
}

// The log warns about a name whose host is no address of this machine, or cannot be resolved in time.
func TestWarnOfHost(t *testing.T) {
	const late, resolved = "cannot be resolved", "no address of this machine"
	names := map[string]string{"flake@127.0.0.2": "", "flake@localhost": "", "flake@::1": "", "flake@192.0.2.1": resolved,
		"flake@2001:db8::1": resolved, "flake@host.invalid": late}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		names["flake@"+a.(*net.IPNet).IP.String()] = ""
	}
	for name, want := range names {
		ctx, cancel := context.WithDeadline(t.Context(), time.Time{})
		defer cancel()
		var b strings.Builder
		warnOfHost(ctx, name, slog.New(slog.NewTextHandler(&b, nil)))
		if got := b.String(); (got != "") != (want != "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// New values must be valid together with the values that cannot change. Otherwise a file that is valid by
// itself could open the node's address to everybody.
func TestSettingsWith(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("0123456789abcdef"), 0o600); err != nil {
		t.Fatal(err)
	}
	open := config.Default()
	open.HTTP = config.HTTP{Listen: "0.0.0.0:8465", TokenFile: file}
	beyond := config.Default()
	beyond.Node.Name, beyond.Node.Cookie = "flake@10.0.0.1", "own"
	numbered := config.Default()
	numbered.HTTP, numbered.Flake.Assigned = open.HTTP, []string{"worker_id"}
	numbered.Numbers.On, numbered.Numbers.Store = true, "etcd"
	numbered.Numbers.Keys = stores.Values{
		"etcd.endpoints": {"a:1"}, "etcd.user": {"flake"}, "etcd.password_file": {file}}
	secret := config.Default()
	secret.Node.Cookie, secret.Node.PreviousCookie = "own", "former"
	secret.HTTP = config.HTTP{Listen: "127.0.0.1:8465", TokenFile: file}
	for name, test := range map[string]struct {
		now     config.Config
		change  func(*config.Config)
		changed string
		later   string
		want    string // in the error
	}{
		"nothing": {open, func(*config.Config) {}, "", "", ""},
		"open at loopback": {open, func(c *config.Config) { c.HTTP = config.HTTP{Listen: "127.0.0.1:8465"} }, "", "",
			"set http.token_file"},
		"published cookie": {beyond, func(c *config.Config) { c.Node = config.Default().Node }, "", "",
			"this cookie is published"},
		"an empty file": {secret, func(c *config.Config) { *c = config.Default() }, "", "",
			"node.cookie: a reload cannot replace"},
		"default cookie": {secret, func(c *config.Config) { c.Node.Cookie = config.Default().Node.Cookie }, "", "",
			"node.cookie: a reload cannot replace"},
		"it as the previous one": {secret, func(c *config.Config) { c.Node.PreviousCookie = config.PublishedCookie }, "", "",
			"node.previous_cookie: a reload cannot add"},
		"no token": {secret, func(c *config.Config) { c.HTTP.TokenFile = "" }, "", "",
			"http.token_file: a reload cannot remove the token"},
		"open": {open, func(c *config.Config) { c.HTTP.TokenFile, c.HTTP.Open = "", true }, "", "",
			"http.token_file: a reload cannot remove the token"},
		"no old cookie": {secret, func(c *config.Config) { c.Node.PreviousCookie = "" }, "node.previous_cookie", "", ""},
		"no file":       {open, func(c *config.Config) { c.HTTP.TokenFile += ".none" }, "", "", "cannot be read"},
		"no certificate": {open, func(c *config.Config) {
			c.Node.TLS = config.TLS{On: true, Cert: "none", Key: "none", Verify: config.VerifyNone}
		}, "", "", "node.tls"},
		"all that can": {open, func(c *config.Config) {
			c.Node.Cookie, c.Node.PreviousCookie = "a", "b"
			c.Node.MaxConnections, c.Node.MaxConnectionsPerHost, c.Node.DrainTime = 1, 1, 1e9
			c.HTTP.Pprof, c.Log.Level = true, slog.LevelWarn
		}, "node.cookie node.previous_cookie node.max_connections node.max_connections_per_host node.drain_time " +
			"http.pprof log.level", "", ""},
		"another user of the store": {numbered, func(c *config.Config) {
			c.Numbers.Keys = c.Numbers.Keys.Replace("etcd.user", []string{"other"})
		}, "etcd.user", "", ""},
		"no store": {numbered, func(c *config.Config) { c.Flake.Assigned, c.Numbers = nil, config.Default().Numbers },
			"", "flake.worker_id numbers.store etcd.endpoints etcd.user etcd.password_file", ""},
		"no HTTP": {open, func(c *config.Config) { c.HTTP.Listen = "" }, "", "http.listen", ""},
		"of each": {open,
			func(c *config.Config) { c.Node.Cookie, c.Node.NetTicktime, c.Node.Listen = "a", 15e9, "127.0.0.1:1" },
			"node.cookie", "node.listen node.net_ticktime", ""},
	} {
		t.Run(name, func(t *testing.T) {
			now, err := readSettings(test.now, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			next := test.now
			test.change(&next)
			got, changed, later, err := now.with(next)
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) || len(config.Changed(got.config, test.now)) > 0 {
					t.Errorf("%v, want %s", err, test.want)
				}
				return
			}
			if err != nil || !sameKeys(changed, test.changed) || !sameKeys(later, test.later) {
				t.Errorf("changed %q, later %q, %v", changed, later, err)
			}
			if left := config.Changed(got.config, next); !sameKeys(left, test.later) {
				t.Errorf("keys that still differ: %q, want %q", left, test.later)
			}
			if want := (idhttp.Access{Token: "0123456789abcdef", Pprof: next.HTTP.Pprof}); got.access != want {
				t.Errorf("access %+v, want %+v", got.access, want)
			}
		})
	}
}

func sameKeys(got []string, want string) bool {
	all := strings.Fields(want)
	slices.Sort(got)
	slices.Sort(all)
	return slices.Equal(got, all)
}
