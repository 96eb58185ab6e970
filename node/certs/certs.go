// Package certs makes TLS settings from a node's certificate files, and makes them again when
// the files change, so that renewing a certificate needs no restart.
//
// Start at [Open]. A change applies to the next connection, not to existing ones. If the
// new files are invalid, an error is logged once and the old settings stay in use.
//
// Encrypted keys and revocation are not supported.
package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Files are the paths of PEM files.
type Files struct {
	Cert string // the node's certificate, followed by the intermediate certificates
	Key  string
	CA   string // the issuer of other nodes' certificates, which are not verified if CA is empty
}

// Source holds the TLS settings of the current files.
type Source struct {
	files Files
	log   *slog.Logger

	mu     sync.Mutex
	seen   Versions // of the files when they were last read
	config *tls.Config
}

// Open returns a Source after reading the files.
func Open(f Files, log *slog.Logger) (*Source, error) {
	s := &Source{files: f, log: log, seen: f.versions()}
	var err error
	s.config, err = f.load()
	return s, err
}

// Config returns the settings for an accepted or dialed connection. The dialing side sets
// ServerName in a clone.
func (s *Source) Config() *tls.Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.files.versions()
	if now == s.seen {
		return s.config
	}
	s.seen = now // before reading, so that a change during the read is noticed
	config, err := s.files.load()
	if err != nil {
		s.log.Error("cannot use the changed TLS files; the old certificate stays in use", "err", err)
		return s.config
	}
	s.config = config
	s.log.Info("read the changed TLS files", "certificate", Describe(config))
	return config
}

// Describe returns the certificate's subject and expiry.
func Describe(c *tls.Config) string {
	leaf := c.Certificates[0].Leaf
	return fmt.Sprintf("%s, until %s", leaf.Subject, leaf.NotAfter.UTC().Format(time.RFC3339))
}

func (f Files) versions() Versions { return VersionsOf(f.Cert, f.Key, f.CA) }

// Versions tells whether files have changed, by their modification times, sizes and modes.
type Versions [4]struct {
	modified time.Time
	size     int64
	mode     fs.FileMode
}

// VersionsOf returns the versions of up to 4 files. All missing files have the same version.
func VersionsOf(paths ...string) (v Versions) {
	for i, path := range paths {
		if info, err := os.Stat(path); err == nil {
			v[i].modified, v[i].size, v[i].mode = info.ModTime(), info.Size(), info.Mode()
		}
	}
	return v
}

func (f Files) load() (*tls.Config, error) {
	cert, err := read("cert", f.Cert)
	if err != nil {
		return nil, err
	}
	key, err := read("key", f.Key)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("cert %q and key %q: %w", f.Cert, f.Key, err)
	}
	config := &tls.Config{
		Certificates: []tls.Certificate{pair},
		MinVersion:   tls.VersionTLS12,
		// A resumed session would not verify the peer with the current CA.
		SessionTicketsDisabled: true,
	}
	if f.CA == "" {
		config.InsecureSkipVerify = true // when dialing: only the cookie is verified
		return config, nil
	}
	ca, err := read("ca", f.CA)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("ca %q: no certificate in PEM form", f.CA)
	}
	config.RootCAs, config.ClientCAs = pool, pool
	config.ClientAuth = tls.RequireAndVerifyClientCert
	return config, nil
}

// MaxFile bounds the bytes of a certificate file. All public CAs together have about 200 KB.
const MaxFile = 1 << 20

// ReadFile reads a regular file of at most MaxFile bytes. It refuses other files, such as pipes,
// which may block the reader or never end. Errors are a [*fs.PathError].
func ReadFile(path string) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err == nil && len(b) > MaxFile {
		err = &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("longer than %d bytes", MaxFile)}
	}
	return b, err
}

func read(what, path string) ([]byte, error) {
	b, err := ReadFile(path)
	if err != nil {
		if cause, ok := errors.AsType[*fs.PathError](err); ok {
			err = cause.Err
		}
		return nil, fmt.Errorf("%s %q: cannot be read: %w", what, path, err)
	}
	return b, nil
}
