package credentials

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/etcd"
)

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
		pem, err := os.ReadFile(cfg.CA)
		if err != nil {
			return nil, "", fmt.Errorf("etcd.ca: %w", err)
		}
		c.TLS.RootCAs = x509.NewCertPool()
		if !c.TLS.RootCAs.AppendCertsFromPEM(pem) {
			return nil, "", fmt.Errorf("etcd.ca %q: must be a certificate in PEM", cfg.CA)
		}
	}
	if cfg.Cert != "" {
		load := func() (*tls.Certificate, error) { // called for each connection, because certificates are renewed
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

// Advise adds advice for the operator to an error from etcd.
func Advise(err error, cfg config.Etcd) error {
	var advice string
	switch {
	case errors.Is(err, workers.ErrNoneFree):
		advice = "set etcd.wait to wait for one, or take one from its node: flake workers release NUMBER"
	case as[x509.UnknownAuthorityError](err):
		advice = "set etcd.ca to the CA of its certificate"
	case as[*tls.CertificateVerificationError](err):
		advice = "is it etcd's? See etcd.endpoints"
	case errors.Is(err, etcd.ErrPassword):
		advice = "see etcd.user and etcd.password_file"
	case errors.Is(err, etcd.ErrNoUser):
		advice = "set etcd.user and etcd.password_file"
	case errors.Is(err, etcd.ErrPermission):
		advice = "etcd.user needs a role that may read and write all keys that begin with " + cfg.Prefix + "/"
	case as[*etcd.EndpointError](err):
		advice = "is it up, and does it require TLS? See etcd.endpoints and etcd.ca"
	default:
		return err
	}
	return fmt.Errorf("%w; %s", err, advice)
}

func as[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}
