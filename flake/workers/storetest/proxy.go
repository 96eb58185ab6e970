package storetest

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Proxy is a [Link] that forwards connections, to all servers of a store.
type Proxy struct {
	Addrs []string // where it accepts connections

	// Write reports whether what a client sends changes a key. [Proxy.Delay] needs it.
	Write func(sent []byte) bool

	// Login says that clients log in on each connection. DropAnswers then drops only what a server
	// sends after a write, since without its other answers there would be no write.
	Login bool

	tb        testing.TB
	listeners []net.Listener
	wg        sync.WaitGroup

	mu   sync.Mutex
	cut  cut
	open context.Context // of the current connections; they close when it is done
	end  context.CancelFunc
}

// cut is what a proxy does not forward, or not immediately.
type cut int

const (
	nothing     cut = iota
	connections     // nothing is forwarded, and connections are closed
	requests        // what the client sends
	answers         // what the server sends
	writes          // what the client sends to change a key, which is late
)

// Late is how late [Proxy.Delay] delivers a write.
const Late = 800 * time.Millisecond

// NewProxy returns a proxy that lasts until the test ends. It forwards no connections yet.
func NewProxy(tb testing.TB) *Proxy {
	p := &Proxy{tb: tb}
	p.open, p.end = context.WithCancel(context.Background())
	tb.Cleanup(func() {
		for _, l := range p.listeners {
			l.Close()
		}
		p.Cut()
		p.wg.Wait()
	})
	return p
}

func (p *Proxy) DropRequests() { p.set(requests) }
func (p *Proxy) DropAnswers()  { p.set(answers) }
func (p *Proxy) Delay()        { p.set(writes) }
func (p *Proxy) Cut()          { p.set(connections) }
func (p *Proxy) Join()         { p.set(nothing) }

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

// To forwards connections from l to addr. If l is nil, it listens on loopback. It returns p.
func (p *Proxy) To(l net.Listener, addr string) *Proxy {
	p.tb.Helper()
	return p.Forward(l, func() (net.Conn, error) { return net.Dial("tcp", addr) })
}

// Forward is like [Proxy.To], but forwards to what dial returns.
func (p *Proxy) Forward(l net.Listener, dial func() (net.Conn, error)) *Proxy {
	p.tb.Helper()
	if l == nil {
		var err error
		if l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			p.tb.Fatal(err)
		}
	}
	p.Addrs, p.listeners = append(p.Addrs, l.Addr().String()), append(p.listeners, l)
	p.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.pass(c, dial) })
		}
	})
	return p
}

func (p *Proxy) pass(from net.Conn, dial func() (net.Conn, error)) {
	defer from.Close()
	now, open := p.now()
	if now == connections {
		return
	}
	to, err := dial()
	if err != nil {
		return
	}
	defer to.Close()
	defer context.AfterFunc(open, func() { from.Close(); to.Close() })()
	var dropped atomic.Bool // whether answers may be
	dropped.Store(!p.Login)
	done := make(chan struct{}, 2)
	p.wg.Go(func() {
		io.Copy(writer(func(b []byte) error {
			write := p.Write != nil && p.Write(b)
			if write {
				dropped.Store(true)
			}
			now, _ := p.now()
			if write && now == writes {
				time.Sleep(Late)
				defer time.Sleep(Late / 4) // the client may have hung up: give the server time to write
			}
			if now == requests {
				return nil
			}
			_, err := to.Write(b)
			return err
		}), from)
		done <- struct{}{}
	})
	p.wg.Go(func() {
		io.Copy(writer(func(b []byte) error {
			if now, _ := p.now(); now == answers && dropped.Load() {
				return nil
			}
			_, err := from.Write(b)
			return err
		}), to)
		done <- struct{}{}
	})
	<-done
}

type writer func(b []byte) error

func (w writer) Write(b []byte) (int, error) { return len(b), w(b) }

// FreeAddr returns a free address. A killed server needs its port again, so the port is outside the
// range from which systems choose ports. It is not below 30000, where other tests choose ports.
// FreeAddr holds the UDP port with the same number until the test ends, so that it never returns the
// same address twice.
func FreeAddr(tb testing.TB) string {
	tb.Helper()
	for range 100 {
		addr := fmt.Sprint("127.0.0.1:", 30000+rand.IntN(2700))
		taken, err := net.ListenPacket("udp", addr)
		if err != nil {
			continue
		}
		tb.Cleanup(func() { taken.Close() })
		if l, err := net.Listen("tcp", addr); err == nil {
			l.Close()
			return addr
		}
	}
	tb.Fatal("no port is free")
	return ""
}
