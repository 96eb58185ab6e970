package credentials

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/internal/files"
	"github.com/flake-go/flake/rel/flake/cli"
)

// Certs holds the TLS settings from certificate files. Renew replaces them when the files have
// changed, so that renewing a certificate needs no restart. Encrypted keys and revocation are not
// supported.
type Certs struct {
	cert, key string // paths of PEM files: the certificate is followed by the intermediate certificates
	ca        string // the issuer of other nodes' certificates, which are not verified if ca is empty
	table     string // their table in the configuration
	log       *slog.Logger

	config atomic.Pointer[tls.Config] // the current settings, replaced by Renew

	files  Watch  // used only by Renew
	warned string // the last warning; used only by Warn
}

// NodeCerts reads the files of [node.tls]. If there is no such table, it returns nil.
func NodeCerts(cfg config.Node, log *slog.Logger) (*Certs, error) {
	c := &Certs{cert: cfg.TLS.Cert, key: cfg.TLS.Key, table: "node.tls", log: log}
	if cfg.TLS.Verify == config.VerifyPeer {
		c.ca = cfg.TLS.CA
	}
	return c.open(cfg.TLS.On)
}

// HTTPCerts reads the files of [http.tls]. If there is no such table, or no HTTP, it returns nil.
func HTTPCerts(cfg config.HTTP, log *slog.Logger) (*Certs, error) {
	c := &Certs{cert: cfg.TLS.Cert, key: cfg.TLS.Key, table: "http.tls", log: log}
	return c.open(cfg.TLS.On && cfg.Listen != "")
}

func (c *Certs) open(on bool) (*Certs, error) {
	if !on {
		return nil, nil
	}
	c.files = Watched(c.cert, c.key, c.ca)
	settings, err := c.load()
	if err != nil {
		return nil, cli.UsageError(fmt.Errorf("%s: %w", c.table, err))
	}
	c.config.Store(settings)
	return c, nil
}

// Config returns the settings for an accepted or dialed connection. It reads no file. The dialing
// side sets ServerName in a clone.
func (c *Certs) Config() *tls.Config { return c.config.Load() }

// Renew reads the files if they have changed. Unless atOnce is set, they must also be the same as in
// the last call. If they are invalid, Renew logs an error once, and the old settings stay in use.
// Then it calls Warn. Calls of Renew and Warn must not overlap.
func (c *Certs) Renew(atOnce bool) {
	defer c.Warn()
	if !c.files.Changed(atOnce, c.cert, c.key, c.ca) {
		return
	}
	settings, err := c.load()
	if !c.files.Kept(c.cert, c.key, c.ca) && !atOnce {
		return
	}
	if err != nil {
		c.log.Error("cannot use the changed TLS files; the old certificate stays in use", "err", err)
		return
	}
	c.config.Store(settings)
	leaf := settings.Certificates[0].Leaf
	c.log.Info("read the changed TLS files", "certificate",
		fmt.Sprintf("%s, until %s", leaf.Subject, leaf.NotAfter.UTC().Format(time.RFC3339)))
}

// soon is how long before its end a certificate is reported, unless a third of its life is less.
const soon = 14 * 24 * time.Hour

// Warn logs once that the certificate expires soon, and once that it is not valid. If c is nil, it
// does nothing.
func (c *Certs) Warn() {
	if c == nil {
		return
	}
	leaf, now, what := c.Config().Certificates[0].Leaf, time.Now(), ""
	switch {
	case now.Before(leaf.NotBefore) || now.After(leaf.NotAfter):
		what = "this node's certificate is not valid now, and callers that verify it refuse it: replace it"
	case leaf.NotAfter.Sub(now) < min(soon, leaf.NotAfter.Sub(leaf.NotBefore)/3):
		what = "this node's certificate expires soon: replace it"
	}
	if what != "" && what != c.warned {
		c.log.Warn(what, "keys", c.table, "from", leaf.NotBefore, "until", leaf.NotAfter)
	}
	c.warned = what
}

// Source returns c.Config, or nil if c is nil: then there is no TLS.
func (c *Certs) Source() func() *tls.Config {
	if c == nil {
		return nil
	}
	return c.Config
}

func (c *Certs) load() (*tls.Config, error) {
	pair, err := files.Pair(c.cert, c.key)
	if err != nil {
		return nil, err
	}
	settings := &tls.Config{
		Certificates: []tls.Certificate{pair},
		MinVersion:   tls.VersionTLS12,
		// A resumed session would not verify the peer with the current CA.
		SessionTicketsDisabled: true,
	}
	if c.ca == "" {
		settings.InsecureSkipVerify = true // when dialing: only the cookie is verified
		return settings, nil
	}
	if settings.RootCAs, err = files.Pool(c.ca); err != nil {
		return nil, err
	}
	settings.ClientCAs = settings.RootCAs
	settings.ClientAuth = tls.RequireAndVerifyClientCert
	return settings, nil
}
