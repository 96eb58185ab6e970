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

// Stop waits for connections that linger. The next request on one of them is not answered.
func TestStopLingers(t *testing.T) { synctest.Test(t, testStopLingers) }

func testStopLingers(t *testing.T) {
	s, l, _ := server(t, Options{}, isReady)
	here, there := net.Pipe()
	defer here.Close()
	c := &half{Conn: there}
	l.conns <- c
	const request = "GET /v1/ids HTTP/1.1\r\nHost: localhost\r\n\r\n"
	io.WriteString(here, request)
	answers := bufio.NewReader(here)
	answer, err := http.ReadResponse(answers, nil)
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, answer.Body)
	synctest.Wait()
	stopped := make(chan struct{})
	go func() {
		s.Stop(t.Context())
		close(stopped)
	}()
	synctest.Wait()
	if !c.ended.Load() || c.closed.Load() {
		t.Errorf("while it lingers, closed for writing: %t, closed: %t", c.ended.Load(), c.closed.Load())
	}
	io.WriteString(here, request)
	<-stopped
	if !c.closed.Load() {
		t.Error("Stop returned before the connection was closed")
	}
	if rest, err := io.ReadAll(answers); len(rest) > 0 || err != nil {
		t.Errorf("after the end: %q, %v", rest, err)
	}
}
