package main

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/node/certs"
)

// openCerts reads the files of [node.tls]. Without that table it returns nil.
func openCerts(cfg config.Node, log *slog.Logger) (*certs.Source, error) {
	if !cfg.TLS.On {
		return nil, nil
	}
	files := certs.Files{Cert: cfg.TLS.Cert, Key: cfg.TLS.Key}
	if cfg.TLS.Verify == config.VerifyPeer {
		files.CA = cfg.TLS.CA
	}
	s, err := certs.Open(files, log)
	if err != nil {
		return nil, usageError{fmt.Errorf("node.tls: %w", err)}
	}
	return s, nil
}

// secure returns the TLS settings of a node that has certificates, and warns of what other
// nodes may reject in them.
func secure(s *certs.Source, name string, log *slog.Logger) func() *tls.Config {
	if s == nil {
		return nil
	}
	leaf := s.Config().Certificates[0].Leaf
	_, host, _ := strings.Cut(name, "@")
	if err := leaf.VerifyHostname(host); err != nil {
		log.Warn("nodes that verify ours will refuse it", "err", err)
	}
	if now := time.Now(); now.Before(leaf.NotBefore) || now.After(leaf.NotAfter) {
		log.Warn("nodes that verify ours will refuse it: the certificate is not valid now",
			"from", leaf.NotBefore, "until", leaf.NotAfter)
	}
	return s.Config
}
