package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake/workers/etcd"
)

// passwordOf reads the password of etcd's user; without a file there is none.
func passwordOf(cfg config.Etcd) (password string, err error) {
	if cfg.PasswordFile == "" {
		return "", nil
	}
	if password, err = config.Secret(cfg.PasswordFile); err != nil {
		return "", fmt.Errorf("etcd.password_file %q: %w", cfg.PasswordFile, err)
	}
	return password, nil
}

// openEtcd makes a store as the configuration says, with the password that is in its file
// now.
func openEtcd(cfg config.Etcd) (store *etcd.Store, password string, err error) {
	if password, err = passwordOf(cfg); err != nil {
		return nil, "", err
	}
	c := etcd.Config{Endpoints: cfg.Endpoints, User: cfg.User, Password: password}
	if cfg.CA != "" || cfg.Cert != "" {
		c.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if cfg.CA != "" {
		pem, err := os.ReadFile(cfg.CA)
		if err != nil {
			return nil, "", fmt.Errorf("etcd.ca: %w", err)
		}
		c.TLS.RootCAs = x509.NewCertPool()
		if !c.TLS.RootCAs.AppendCertsFromPEM(pem) {
			return nil, "", fmt.Errorf("etcd.ca %q: a certificate in PEM wanted", cfg.CA)
		}
	}
	if cfg.Cert != "" {
		load := func() (*tls.Certificate, error) { // again for each connection, as they are renewed
			pair, err := tls.LoadX509KeyPair(cfg.Cert, cfg.Key)
			return &pair, err
		}
		if _, err := load(); err != nil {
			return nil, "", fmt.Errorf("etcd.cert, etcd.key: %w", err)
		}
		c.TLS.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	}
	store, err = etcd.New(c)
	return store, password, err
}
