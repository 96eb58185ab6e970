//go:build unix

package postgrestest

import (
	"bytes"
	"context"
	"net"
	"sync"
	"testing"
	"time"
)

// cut is what a proxy does not forward, or not immediately.
type cut int

const (
	nothing     cut = iota
	connections     // nothing is forwarded, and connections are closed
	requests        // what the client sends
	answers         // what the server sends, once the client has sent a write
	writes          // what the client sends to change a row, which is late
)

// Proxy is a client's path to a server. Its methods are those of storetest.Link.
type Proxy struct {
	l    net.Listener
	to   string
	wg   sync.WaitGroup
	mu   sync.Mutex
	cut  cut
	open context.Context // of the current connections; they close when it is done
	end  context.CancelFunc
}

// Late is how late [Proxy.Delay] delivers a write.
const Late = 800 * time.Millisecond

// Proxy returns a new path to the server, which lasts until the test ends.
func (s *Server) Proxy() *Proxy { return NewProxy(s.tb, s.Addr) }

// NewProxy returns a new path to an address, which lasts until the test ends.
func NewProxy(tb testing.TB, to string) *Proxy {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	return NewProxyFrom(tb, l, to)
}

// NewProxyFrom is like [NewProxy]. The client connects to a listener, which may be in another network namespace.
func NewProxyFrom(tb testing.TB, l net.Listener, to string) *Proxy {
	p := &Proxy{l: l, to: to}
	p.open, p.end = context.WithCancel(context.Background())
	p.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.pass(c) })
		}
	})
	tb.Cleanup(func() {
		l.Close()
		p.Cut()
		p.wg.Wait()
	})
	return p
}

// Addr returns the address at which the proxy accepts connections.
func (p *Proxy) Addr() string { return p.l.Addr().String() }

// DropRequests drops what the client sends.
func (p *Proxy) DropRequests() { p.set(requests) }

// DropAnswers drops what the server sends once the client has sent a write.
func (p *Proxy) DropAnswers() { p.set(answers) }

// Delay delivers writes only after [Late], even if the client has given up by then.
func (p *Proxy) Delay() { p.set(writes) }

// Cut closes the connections and accepts no others.
func (p *Proxy) Cut() { p.set(connections) }

// Join forwards everything.
func (p *Proxy) Join() { p.set(nothing) }

func (p *Proxy) set(c cut) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// A connection that has lost bytes cannot be used again.
	if c == connections || p.cut != nothing && p.cut != writes && p.cut != c {
		p.end()
		p.open, p.end = context.WithCancel(context.Background())
	}
	p.cut = c
}

func (p *Proxy) now() (cut, context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cut, p.open
}

func (p *Proxy) pass(from net.Conn) {
	defer from.Close()
	now, open := p.now()
	if now == connections {
		return
	}
	to, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer to.Close()
	defer context.AfterFunc(open, func() { from.Close(); to.Close() })()
	var mu sync.Mutex
	wrote := false
	done := make(chan struct{}, 2)
	p.wg.Go(func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := from.Read(buf)
			now, _ := p.now()
			write := bytes.Contains(buf[:n], []byte("INSERT INTO"))
			mu.Lock()
			wrote = wrote || write
			mu.Unlock()
			if write && now == writes {
				time.Sleep(Late)
			}
			if n > 0 && now != requests {
				_, err = to.Write(buf[:n])
			}
			if write && now == writes { // the client may have hung up: give the server time to write
				time.Sleep(Late / 4)
			}
			if err != nil {
				done <- struct{}{}
				return
			}
		}
	})
	p.wg.Go(func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := to.Read(buf)
			now, _ := p.now()
			mu.Lock()
			drop := now == answers && wrote
			mu.Unlock()
			if n > 0 && !drop {
				_, err = from.Write(buf[:n])
			}
			if err != nil {
				done <- struct{}{}
				return
			}
		}
	})
	<-done
}
