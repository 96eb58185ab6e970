package idhttp

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/internal/certstest"
)

// A caller gets the whole answer to a request that was being answered when the server stopped, even
// if it has already sent the next request and reads the answer later.
func TestStopDuringAnswer(t *testing.T) {
	ca := certstest.NewCA(t, "ca")
	cert, err := tls.LoadX509KeyPair(ca.Issue("flake", "127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	secured := &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: ca.Pool, ServerName: "127.0.0.1"}
	for name, config := range map[string]*tls.Config{"plain": nil, "TLS": secured} {
		t.Run(name, func(t *testing.T) {
			ids := newSlow(t)
			o := Options{Generators: []Generator{{Name: "flake", Server: &idserver.Server{IDs: ids}}}}
			if config != nil {
				o.TLS = func() *tls.Config { return config }
			}
			s := New(o)
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			s.Serve(l, nil)
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if config != nil {
				c = tls.Client(c, config)
			}
			const request = "GET /v1/ids?n=9000 HTTP/1.1\r\nHost: localhost\r\n\r\n"
			io.WriteString(c, strings.Repeat(request, 1000))
			for answered := 0; answered == 0; runtime.Gosched() {
				s.limits.mu.Lock()
				answered = len(s.limits.answered.All)
				s.limits.mu.Unlock()
			}
			stopped := make(chan struct{})
			go func() {
				s.Stop(context.Background())
				close(stopped)
			}()
			<-s.ctx.Done()
			close(ids.gate)
			<-stopped
			answer, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(answer.Body)
			if lines := strings.Count(string(body), "\n"); err != nil || lines != 9000 {
				t.Errorf("%d ids, %v", lines, err)
			}
		})
	}
}

// half is a connection that can be closed for writing.
type half struct {
	net.Conn
	ended, closed atomic.Bool
}

func (h *half) CloseWrite() error { h.ended.Store(true); return nil }

func (h *half) Close() error {
	h.closed.Store(true)
	return h.Conn.Close()
}

// If its context has ended, Stop closes the connections of requests that have not arrived, and waits while they
// linger. No id is taken for them.
func TestStopLingers(t *testing.T) {
	for _, hangsUp := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) { testStopLingers(t, hangsUp) })
	}
}

func testStopLingers(t *testing.T, hangsUp bool) {
	s, l, _ := server(t, Options{}, isReady)
	here, there := net.Pipe()
	defer here.Close()
	c := &half{Conn: there}
	l.conns <- c
	io.WriteString(here, "POST /v1/ids HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n"+
		"Content-Type: application/x-www-form-urlencoded\r\n\r\n")
	synctest.Wait()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	stopped := make(chan struct{})
	go func() {
		s.Stop(ended)
		close(stopped)
	}()
	synctest.Wait()
	if !c.ended.Load() || c.closed.Load() {
		t.Errorf("while it lingers, closed for writing: %t, closed: %t", c.ended.Load(), c.closed.Load())
	}
	go io.Copy(io.Discard, here)
	if hangsUp {
		here.Close()
	} else {
		io.WriteString(here, "n=2")
	}
	<-stopped
	if !c.closed.Load() {
		t.Error("Stop returned before the connection was closed")
	}
	synctest.Wait()
	if n := s.Generators[0].Server.Stats().IDs; n != 0 {
		t.Errorf("%d ids were taken", n)
	}
}
