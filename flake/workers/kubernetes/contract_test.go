package kubernetes

import (
	"bytes"
	"context"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

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
		c.URL, c.CAFile = l.url, ""
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

// link is a client's path to the API server. It is a proxy, which has no TLS.
type link struct {
	url     string
	handler http.HandlerFunc
	does    atomic.Int32
}

const (
	joins = iota
	dropsRequests
	dropsAnswers
	delays
	cuts
)

func (l *link) DropRequests() { l.does.Store(dropsRequests) }
func (l *link) DropAnswers()  { l.does.Store(dropsAnswers) }
func (l *link) Delay()        { l.does.Store(delays) }
func (l *link) Cut()          { l.does.Store(cuts) }
func (l *link) Join()         { l.does.Store(joins) }

// late is how late a link that delays writes delivers them.
const late = 2 * time.Second

func newLink(t *testing.T, c Config) *link {
	target, err := url.Parse(c.URL)
	if err != nil {
		t.Fatal(err)
	}
	behind := httputil.NewSingleHostReverseProxy(target)
	behind.ErrorLog = quiet
	behind.Transport = open(t, c).transport
	l := new(link)
	l.handler = func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		does := l.does.Load()
		gone := r.Context()
		if does == delays && r.Method == http.MethodPatch {
			time.Sleep(late)
		}
		if does == cuts {
			panic(http.ErrAbortHandler)
		}
		if does == dropsRequests {
			<-gone.Done()
			return
		}
		r = r.Clone(context.WithoutCancel(gone)) // the request arrives even if the client has given up
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer := httptest.NewRecorder()
		behind.ServeHTTP(answer, r)
		if does == dropsAnswers {
			<-gone.Done()
			return
		}
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Code)
		w.Write(answer.Body.Bytes())
	}
	l.url = serve(t, l.handler)
	return l
}
