// Package credentials reads the files that a configuration names: certificates, the HTTP
// token, and the credentials for etcd. A [Watch] notices when files change.
package credentials

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/etcd"
	"github.com/flake-go/flake/internal/files"
)

// minToken is the length of the shortest token accepted: 64 random bits in base 16.
const minToken = 16

// Token reads the token's file. If path is empty, there is no token.
func Token(path string) (string, error) {
	token, err := secret("http.token_file", path)
	if err != nil || path == "" {
		return "", err
	}
	if len(token) < minToken {
		return "", fmt.Errorf("http.token_file %q: must be %d characters or more, "+
			"such as the output of openssl rand -hex 16", path, minToken)
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("http.token_file %q: must be printable ASCII characters without spaces", path)
	}
	return token, nil
}

// secret returns the content of the file that a key names, or "" if path is empty.
func secret(key, path string) (text string, err error) {
	if path == "" {
		return "", nil
	}
	if text, err = files.Secret(path); err != nil {
		return "", fmt.Errorf("%s %q: %w", key, path, err)
	}
	return text, nil
}

// OpenEtcd returns the etcd store that the configuration describes, and the password that the
// password file now contains.
func OpenEtcd(cfg config.Etcd) (store *etcd.Store, password string, err error) {
	if password, err = secret("etcd.password_file", cfg.PasswordFile); err != nil {
		return nil, "", err
	}
	c := etcd.Config{Endpoints: cfg.Endpoints, User: cfg.User, Password: password}
	if cfg.CA != "" || cfg.Cert != "" {
		c.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if cfg.CA != "" {
		if c.TLS.RootCAs, err = files.Pool(cfg.CA); err != nil {
			return nil, "", fmt.Errorf("etcd.%w", err)
		}
	}
	if cfg.Cert != "" {
		// This function reads the files for each connection, because certificates are renewed.
		c.TLS.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := files.Pair(cfg.Cert, cfg.Key)
			return &pair, err
		}
		if _, err := c.TLS.GetClientCertificate(nil); err != nil {
			return nil, "", fmt.Errorf("etcd.%w", err)
		}
	}
	store, err = etcd.New(c)
	return store, password, err
}

// Advise adds advice for the operator to an error from etcd.
func Advise(err error, cfg config.Etcd) error {
	var advice string
	switch {
	case errors.Is(err, workers.ErrNoneFree):
		advice = "set etcd.wait to wait for one, or take one from its node: flake workers release NUMBER"
	case errors.As(err, new(x509.UnknownAuthorityError)):
		advice = "set etcd.ca to the CA of etcd's certificate"
	case errors.As(err, new(*tls.CertificateVerificationError)):
		advice = "is this etcd's certificate? See etcd.endpoints"
	case errors.Is(err, etcd.ErrPassword):
		advice = "see etcd.user and etcd.password_file"
	case errors.Is(err, etcd.ErrNoUser):
		advice = "set etcd.user and etcd.password_file"
	case errors.Is(err, etcd.ErrPermission):
		advice = "etcd.user needs a role that may read and write all keys that begin with " + cfg.Prefix + "/"
	case errors.As(err, new(*etcd.EndpointError)):
		advice = "is it up, and does it require TLS? See etcd.endpoints and etcd.ca"
	default:
		return err
	}
	return fmt.Errorf("%w; %s", err, advice)
}
