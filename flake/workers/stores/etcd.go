package stores

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/etcd"
	"github.com/flake-go/flake/internal/files"
)

var etcdKind = &Kind{
	Name: "etcd",
	Keys: []Key{
		{Name: "etcd.endpoints", List: true, Valid: isEndpoint, Must: `must be an array of "host:port"`},
		{Name: "etcd.user", Valid: printable, Must: mustBePrintable, Reloads: true},
		{Name: "etcd.password_file", Valid: path, Must: mustBePath, Reloads: true},
		{Name: "etcd.ca", Valid: path, Must: mustBePEM},
		{Name: "etcd.cert", Valid: path, Must: mustBePEM},
		{Name: "etcd.key", Valid: path, Must: mustBePEM},
	},
	Check: func(v Values) (faults []Fault) {
		if len(v["etcd.endpoints"]) == 0 {
			faults = append(faults, Fault{"etcd.endpoints", `must be an array of "host:port"`})
		}
		faults = append(faults, v.together("etcd.user", "etcd.password_file")...)
		return append(faults, v.together("etcd.cert", "etcd.key")...)
	},
	Open: openEtcd,
	Advise: func(err error, prefix string) string {
		switch {
		case errors.As(err, new(x509.UnknownAuthorityError)):
			return "set etcd.ca to the CA of etcd's certificate"
		case errors.As(err, new(*tls.CertificateVerificationError)):
			return "is this etcd's certificate? See etcd.endpoints"
		case errors.Is(err, etcd.ErrPassword):
			return "see etcd.user and etcd.password_file"
		case errors.Is(err, etcd.ErrNoUser):
			return "set etcd.user and etcd.password_file"
		case errors.Is(err, etcd.ErrPermission):
			return "etcd.user needs a role that may read and write all keys that begin with " + prefix + "/"
		case errors.As(err, new(*etcd.EndpointError)):
			return "is it up, and does it require TLS? See etcd.endpoints and etcd.ca"
		}
		return ""
	},
}

func openEtcd(now func() Values, _ bool) (workers.Store, error) {
	v := now()
	c := etcd.Config{Endpoints: v["etcd.endpoints"], Login: func() (user, password string, err error) {
		v := now()
		password, err = secret(v, "etcd.password_file")
		return v.Text("etcd.user"), password, err
	}}
	if _, _, err := c.Login(); err != nil {
		return nil, err
	}
	ca, cert, key := v.Text("etcd.ca"), v.Text("etcd.cert"), v.Text("etcd.key")
	if ca != "" || cert != "" {
		c.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	var err error
	if ca != "" {
		if c.TLS.RootCAs, err = files.Pool(ca); err != nil {
			return nil, fmt.Errorf("etcd.%w", err)
		}
	}
	if cert != "" {
		// This function reads the files for each connection, because certificates are renewed.
		c.TLS.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := files.Pair(cert, key)
			return &pair, err
		}
		if _, err := c.TLS.GetClientCertificate(nil); err != nil {
			return nil, fmt.Errorf("etcd.%w", err)
		}
	}
	return etcd.New(c)
}

// isEndpoint reports whether s is host:port, or an http or https URL of host:port.
func isEndpoint(s string) bool {
	if scheme, rest, _ := strings.Cut(s, "://"); scheme == "http" || scheme == "https" {
		s = rest
	}
	host, port, _ := net.SplitHostPort(s)
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && host != "" && n > 0 && printable(host)
}
