package credentials

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/internal/certstest"
	"github.com/flake-go/flake/internal/files"
)

// openCerts opens certs that verify other nodes unless ca is empty.
func openCerts(log *slog.Logger, cert, key, ca string) (*Certs, error) {
	return (&Certs{cert: cert, key: key, ca: ca, table: "tls", log: log}).open(true)
}

func TestOpen(t *testing.T) {
	ca := certstest.NewCA(t, "ca")
	cert, key := ca.Issue("a", "localhost")
	_, otherKey := ca.Issue("b", "localhost")
	none, long := filepath.Join(ca.Dir, "none"), filepath.Join(ca.Dir, "long")
	if err := os.WriteFile(long, make([]byte, files.MaxPEM+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		cert, key, ca string
		want          string
	}{
		{cert, key, "", ""},
		{cert, key, ca.File, ""},
		{none, key, "", `cert "DIR/none": cannot be read: no such file or directory`},
		{cert, none, "", `key "DIR/none": cannot be read: no such file or directory`},
		{cert, key, none, `ca "DIR/none": cannot be read: no such file or directory`},
		{os.DevNull, key, "", `cert "` + os.DevNull + `": cannot be read: not a regular file`},
		{cert, ca.Dir, "", `key "DIR": cannot be read: not a regular file`},
		{cert, key, long, `ca "DIR/long": the file is 1048577 bytes long; the limit is 1048576`},
		{cert, otherKey, "", `cert "DIR/a.pem" and key "DIR/b.key": tls: private key does not match public key`},
		{cert, key, key, `ca "DIR/a.key": no certificate in PEM form`},
		{key, key, "", `cert "DIR/a.key" and key "DIR/a.key": tls: failed to find certificate PEM data ` +
			`in certificate input, but did find a private key; PEM inputs may have been switched`},
	} {
		s, err := openCerts(slog.Default(), tt.cert, tt.key, tt.ca)
		got := ""
		if err != nil {
			got = strings.ReplaceAll(strings.TrimPrefix(err.Error(), "tls: "), ca.Dir, "DIR")
		}
		if got != tt.want {
			t.Errorf("%+v:\ngot  %s\nwant %s", tt, got, tt.want)
		}
		if err != nil {
			continue
		}
		c := s.Config()
		if verifies := tt.ca != ""; (c.ClientAuth == tls.RequireAndVerifyClientCert) != verifies ||
			c.InsecureSkipVerify == verifies {
			t.Errorf("%+v: ClientAuth %v, InsecureSkipVerify %v", tt, c.ClientAuth, c.InsecureSkipVerify)
		}
		if c.MinVersion != tls.VersionTLS12 {
			t.Errorf("MinVersion %x, want TLS 1.2", c.MinVersion)
		}
	}
}

// Changed files apply if they are valid, once they were the same in two calls of Renew. Invalid ones
// are logged once.
func TestChange(t *testing.T) {
	ca := certstest.NewCA(t, "ca")
	cert, key := ca.Issue("first", "localhost")
	var log bytes.Buffer
	s, err := openCerts(slog.New(slog.NewTextHandler(&log, nil)), cert, key, ca.File)
	if err != nil {
		t.Fatal(err)
	}
	for i, step := range []struct {
		change func()
		want   string
		logged string
	}{
		{func() {}, "first", ""},
		{func() { replace(t, ca, cert, key, "second") }, "second", `level=INFO`},
		{func() { overwrite(t, cert, "broken") }, "second", `level=ERROR`},
		{func() { os.Remove(cert) }, "second", `no such file or directory`},
		{func() { replace(t, ca, cert, key, "third") }, "third", `level=INFO`},
		{func() { overwrite(t, ca.File, "") }, "third", `no certificate in PEM form`},
	} {
		log.Reset()
		before := s.Config()
		step.change()
		if s.Renew(false); s.Config() != before || log.Len() > 0 {
			t.Errorf("step %d: the files were read before they had settled: %s", i, log.String())
		}
		for range 3 {
			s.Renew(false)
			if got := s.Config().Certificates[0].Leaf.Subject.CommonName; got != step.want {
				t.Errorf("step %d: %s, want %s", i, got, step.want)
			}
		}
		lines := strings.Count(log.String(), "\n")
		if lines != min(i, 1) || !strings.Contains(log.String(), step.logged) {
			t.Errorf("step %d: logged %s", i, log.String())
		}
	}
}

func replace(t *testing.T, ca *certstest.CA, cert, key, name string) {
	newCert, newKey := ca.Issue(name, "localhost")
	for from, to := range map[string]string{newCert: cert, newKey: key} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
}

func overwrite(t *testing.T, path, text string) {
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A certificate that expires soon, or is not valid, is reported once.
func TestWarn(t *testing.T) {
	ca := certstest.NewCA(t, "ca")
	const day = 24 * time.Hour
	for name, tt := range map[string]struct {
		from, until time.Duration
		want        string
	}{
		"fresh":             {-day, 90 * day, ""},
		"late":              {-80 * day, 13 * day, "expires soon"},
		"short-lived":       {-6 * time.Hour, 18 * time.Hour, ""},
		"short-lived, late": {-18 * time.Hour, 6 * time.Hour, "expires soon"},
		"expired":           {-day, -time.Hour, "not valid now"},
		"not yet":           {time.Hour, day, "not valid now"},
	} {
		cert, key := ca.IssueFor("a", "localhost", time.Now().Add(tt.from), time.Now().Add(tt.until))
		var log strings.Builder
		s, err := openCerts(slog.New(slog.NewTextHandler(&log, nil)), cert, key, "")
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			s.Warn()
			s.Renew(false)
		}
		if got := log.String(); !strings.Contains(got, tt.want) || strings.Count(got, "\n") != min(len(tt.want), 1) {
			t.Errorf("%s: %s", name, got)
		}
	}
	(*Certs)(nil).Warn()
}
