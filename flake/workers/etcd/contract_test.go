package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/etcd/etcdtest"
	"github.com/flake-go/flake/flake/workers/storetest"
)

var contend = flag.Duration("contract.contend", 0, "how long two clients of TestContract write the same keys")

func TestContract(t *testing.T) {
	c := etcdtest.Start(t, 1)
	untrusted := httptest.NewUnstartedServer(nil)
	untrusted.Config.ErrorLog = quiet
	untrusted.StartTLS()
	defer untrusted.Close()
	saved := filepath.Join(t.TempDir(), "saved")
	storetest.Test(t, storetest.Config{
		Open: func() workers.Store { return open(t, Config{Endpoints: c.Endpoints()}) },
		Link: func() (workers.Store, storetest.Link) {
			link := c.Link()
			return open(t, Config{Endpoints: link.Addrs}), link
		},
		Refused: map[string]func(context.Context) error{"a certificate that is not trusted": func(ctx context.Context) error {
			s := open(t, Config{Endpoints: []string{untrusted.URL}, TLS: &tls.Config{RootCAs: x509.NewCertPool()}})
			_, err := s.Swap(ctx, nil, map[string]string{"p/a": "1"})
			return errors.Join(err, list(s))
		}},
		Kill: func() {
			c.Members[0].Kill()
			c.Members[0].Start()
		},
		Restore: func(change func()) {
			c.Copy(saved)
			change()
			c.Restore(saved)
		},
		Contend: *contend,
	})
}
