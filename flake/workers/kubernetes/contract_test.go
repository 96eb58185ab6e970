package kubernetes

import (
	"bytes"
	"context"
	"flag"
	"net"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/storetest"
)

var contend = flag.Duration("contract.contend", 0, "how long two clients of TestContract write the same keys")

// The fake does only what a real API server was recorded to do, so this shows what the store makes of that.
// TestRealContract runs the contract on a real one.
func TestContract(t *testing.T) {
	_, server := startFake(t)
	testContract(t, storetest.Config{}, Config{URL: server.URL})
}

func testContract(t *testing.T, contract storetest.Config, c Config) {
	untrusted := httptest.NewUnstartedServer(nil)
	untrusted.Config.ErrorLog = quiet
	untrusted.StartTLS()
	defer untrusted.Close()
	other := caFile(t, otherCA(t))
	contract.Open = func() workers.Store { return open(t, c) }
	contract.Link = func() (workers.Store, storetest.Link) {
		l := newLink(t, c)
		c := c
		c.URL, c.CAFile = "http://"+l.Addrs[0], ""
		return open(t, c), l
	}
	contract.Refused = map[string]func(context.Context) error{
		"a certificate that is not trusted": func(ctx context.Context) error {
			_, err := open(t, Config{URL: untrusted.URL, CAFile: other}).Swap(ctx, nil, map[string]string{"p/a": "1"})
			return err
		},
	}
	contract.MaxPrefix, contract.Contend = 220, *contend
	storetest.Test(t, contract)
}

// caFile returns a file with a certificate.
func caFile(t *testing.T, certificate string) string {
	path := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(path, []byte(certificate), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// newLink returns a client's path to the API server, which has no TLS.
func newLink(t *testing.T, c Config) *storetest.Proxy {
	target, err := url.Parse(c.URL)
	if err != nil {
		t.Fatal(err)
	}
	l := storetest.NewProxy(t)
	l.Write = func(sent []byte) bool { return bytes.HasPrefix(sent, []byte("PATCH ")) }
	if target.Scheme == "http" {
		return l.To(nil, target.Host)
	}
	return l.Forward(nil, func() (net.Conn, error) { return open(t, c).dial(t.Context(), "tcp", target.Host) })
}
