package daemon

import (
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/rel/flake/cli"
	"github.com/flake-go/flake/rel/flake/output"
)

// Faults in the HTTP settings are reported at startup.
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
		{file("open", strings.Repeat("a", 32), 0o666), "the file's mode is 0666: other users must not be able to write it"},
		{file("short", "0123456789abcde\n", 0o600), "must be 16 characters or more"},
		{file("space", "0123456789 abcdef\n", 0o600), "characters without spaces"},
		{config.HTTP{TokenFile: filepath.Join(dir, "none")}, "cannot be read: no such file or directory"},
		{config.HTTP{TLS: config.HTTPTLS{On: true, Cert: "none.pem", Key: "none.pem"}},
			`http.tls: cert "none.pem": cannot be read`},
	} {
		tt.http.Listen = "127.0.0.1:0"
		_, err := readSettings(config.Config{HTTP: tt.http}, slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), tt.want) || !cli.IsUsageError(err) {
			t.Errorf("%+v: %v, want %s", tt.http, err, tt.want)
		}
	}
}

// 0.0.0.0 means all IPv4 addresses, and no IPv6 address.
func TestHTTPIPv4(t *testing.T) {
	d, err := openDoor(config.HTTP{Listen: "0.0.0.0:0", Open: true}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer d.listener.Close()
	if addr := d.listener.Addr().(*net.TCPAddr); addr.IP.To4() == nil {
		t.Errorf("listens at %v, want an IPv4 address", addr)
	}
}

// A node that cannot listen does not start. Its error names the key, and it leaves nothing behind.
func TestTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cfg := config.Default()
	cfg.Node.Name, cfg.Node.EPMD = "taken@127.0.0.1", "off"
	cfg.Flake.TimestampPath = filepath.Join(t.TempDir(), "timestamp")
	cfg.Flake.Random, cfg.Flake.Options = false, formats.Options{"worker_id": 0x030100<<24 | int64(os.Getpid()&(1<<24-1))}
	taken := l.Addr().String()
	for want, set := range map[string]func(){ // all but the first also show that the file and the worker id were released
		"http.listen: listen tcp4 " + taken:       func() { cfg.HTTP.Listen = taken },
		"http.metrics: listen tcp4 " + taken:      func() { cfg.HTTP.Listen, cfg.HTTP.Metrics = "127.0.0.1:0", taken },
		"node.listen: node taken@127.0.0.1: list": func() { cfg.Node.Listen = taken },
	} {
		cfg.HTTP, cfg.Node.Listen = config.HTTP{}, ""
		set()
		_, err := Start(t.Context(), cfg, io.Discard, &output.Log{Logger: slog.New(slog.DiscardHandler)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Fatalf("%v, want %s", err, want)
		}
	}
}
