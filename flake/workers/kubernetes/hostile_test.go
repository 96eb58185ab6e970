package kubernetes

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/workers"
)

var quiet = log.New(io.Discard, "", 0)

func serve(t *testing.T, h http.HandlerFunc) string {
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = quiet
	s.Start()
	t.Cleanup(s.Close)
	return s.URL
}

func answer(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		io.WriteString(w, text)
	}
}

// certificate returns the certificate of a server, in PEM.
func certificate(s *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

// otherCA returns a certificate that signed no server's.
func otherCA(t *testing.T) string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true}
	text, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: text}))
}

const object1 = `{"kind":"ConfigMap","metadata":{"name":"flake-numbers","uid":"u","resourceVersion":"5"}`

// Answers of something that is not Kubernetes, or that does not work.
func TestBadAnswers(t *testing.T) {
	hangs, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer hangs.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	secure := httptest.NewUnstartedServer(nil)
	secure.Config.ErrorLog = quiet
	secure.StartTLS()
	defer secure.Close()
	moved := 0
	target := serve(t, func(w http.ResponseWriter, r *http.Request) { moved++ })
	for _, tt := range []struct{ url, want string }{
		{gone.URL, "refused"},
		{"http://a b", "invalid character"},
		{"http://" + hangs.Addr().String(), "no answer in time"},
		{secure.URL, "certificate signed by unknown authority"},
		{"http://" + secure.Listener.Addr().String(), "Client sent an HTTP request to an HTTPS server."},
		{serve(t, answer(200, "<html>hello</html>")), `not that of Kubernetes: 200 OK: "<html>hello</html>"`},
		{serve(t, answer(200, "{}")), `not that of Kubernetes: 200 OK: "{}"`},
		{serve(t, answer(200, "")), `not that of Kubernetes: 200 OK: ""`},
		{serve(t, answer(200, "null")), "not that of Kubernetes"},
		{serve(t, answer(200, object1)), "not that of Kubernetes"},
		{serve(t, answer(200, object1+"}}")), "not that of Kubernetes"},
		{serve(t, answer(200, strings.Replace(object1, "ConfigMap", "Secret", 1)+"}")), "not that of Kubernetes"},
		{serve(t, answer(200, strings.Replace(object1, "flake-numbers", "other", 1)+"}")), "not that of Kubernetes"},
		{serve(t, answer(200, strings.Replace(object1, `"u"`, `""`, 1)+"}")), "not that of Kubernetes"},
		{serve(t, answer(300, object1+"}")), "not that of Kubernetes: 300"},
		{serve(t, answer(300, `{"kind":"Status","message":"m"}`)), "300 Multiple Choices: m"},
		{serve(t, answer(404, "404 page not found")), "404 Not Found"},
		{serve(t, answer(404, `{"kind":"Status","reason":"NotFound","details":{}}`)), "404 Not Found"},
		{serve(t, answer(403, "go away")), `403 Forbidden: "go away"`},
		{serve(t, answer(200,
			`{"kind":"Status","reason":"NotFound","details":{"name":"flake-numbers","kind":"configmaps"}}`)),
			"not that of Kubernetes"},
		{serve(t, answer(500, "no\nflake: forged \x1b[2J")), `no\nflake: forged \x1b[2J`},
		{serve(t, answer(500, `{"kind":"Status","message":"no\nflake: forged \u001b[2J"}`)), `no\nflake: forged \x1b[2J`},
		{serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, target, http.StatusTemporaryRedirect)
		}), "307 Temporary Redirect"},
		{serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), "it closed the connection: EOF"},
		{serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000")
			answer(200, object1)(w, r)
		}), "its answer is cut off"},
		{serve(t, func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h\r\n\r\n")
			io.Copy(io.Discard, conn) // until the client closes it; net/http gives it no deadline
		}), "101 Switching Protocols"},
		{serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X", strings.Repeat("a", maxHeader))
		}), "headers exceeded 65536 bytes"},
		{serve(t, endless(`{"data":{"a":"`, "a")), "more than 4194304 bytes"},
		{serve(t, func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "{")
			http.NewResponseController(w).Flush()
			io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}), "no answer in time"},
	} {
		var known object
		known.Metadata.UID = "u"
		patience := time.Minute
		if strings.Contains(tt.want, "in time") {
			patience = 300 * time.Millisecond
		}
		s := open(t, Config{URL: tt.url})
		texts, err := s.Get(limited(t, patience), "a")
		if err == nil || !strings.Contains(err.Error(), tt.want) ||
			errors.Is(err, workers.ErrRefused) != strings.Contains(tt.want, "certificate") {
			t.Errorf("%s: get %q, %v; want %s", tt.url, texts, err, tt.want)
		}
		before, _ := s.history.Before()
		s.note(before, known)
		ok, err := s.Swap(limited(t, patience), nil, map[string]string{"a": "1"})
		if ok || err == nil { // the connection may be closed before the answer is read
			t.Errorf("%s: swap %v, %v", tt.url, ok, err)
		}
		wantSign(t, s, "")
	}
	if moved > 0 {
		t.Error("a redirect was followed")
	}
}

// endless is an answer that does not end until the client closes the connection.
func endless(begin, more string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, begin)
		for some := []byte(strings.Repeat(more, 1<<14)); ; {
			if _, err := w.Write(some); err != nil {
				return
			}
		}
	}
}

// The largest answer that is read takes only some times its length of memory.
func TestMemoryOfAnswer(t *testing.T) {
	for begin, more := range map[string]string{`{"data":{"a":""`: `,"%06x":""`, `{"other":[{}`: ",{}", `[{}`: ",{}"} {
		var text strings.Builder
		text.WriteString(begin)
		for i := 0; text.Len() < maxAnswer-20; i++ {
			if strings.Contains(more, "%") {
				fmt.Fprintf(&text, more, i)
			} else {
				text.WriteString(more)
			}
		}
		s := open(t, Config{URL: serve(t, answer(200, text.String()))})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := list(s); err == nil {
			t.Errorf("%s: no error", begin)
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 32*maxAnswer {
			t.Errorf("%s: %d bytes", begin, took)
		}
	}
}

// The store does not use HTTP/2, in which requests share a connection and some are repeated, and uses each
// connection once.
func TestConnections(t *testing.T) {
	connections := map[string]bool{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 1 || connections[r.RemoteAddr] {
			t.Error(r.Proto, r.RemoteAddr)
		}
		connections[r.RemoteAddr] = true
		answer(200, object1+"}")(w, r)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	s := open(t, Config{URL: server.URL, CAFile: caFile(t, certificate(server))})
	if err := errors.Join(list(s), list(s)); err != nil || len(connections) != 2 {
		t.Errorf("%v, %d connections", err, len(connections))
	}
}

// A call without a deadline ends.
func TestDeadline(t *testing.T) {
	s := open(t, Config{URL: "http://a"})
	s.transport.Proxy = func(r *http.Request) (*url.URL, error) {
		until, ok := r.Context().Deadline()
		if left := time.Until(until); !ok || left > longest {
			t.Errorf("%v left", left)
		}
		return nil, context.DeadlineExceeded
	}
	for _, call := range []func(*Store) error{list, get, swap, cluster} {
		if err := call(s); err == nil || !strings.Contains(err.Error(), "no connection in time") {
			t.Error(err)
		}
	}
	if ahead := s.Clocks(t.Context(), func() uint64 { return 0 }); len(ahead) != 0 {
		t.Error(ahead)
	}
}
