package idhttp

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/node/host"
	"github.com/flake-go/flake/node/tlslimit"
)

// limited is a listener that adds its connections to limits.
type limited struct {
	net.Listener
	metrics bool // serves only metrics and health, without the token
	*limits
}

// limits bounds a door's open connections, and those with a request that is being answered.
// When one connection too many arrives, the one that has been silent the longest is closed. If the
// new connection's host has too many, only that host's connections are considered.
type limits struct {
	secure bool // TLS runs above the connections
	log    *slog.Logger

	mu       sync.Mutex // guards the fields below, and lastEvent and answered of each conn
	open     host.Line[*conn]
	answered host.Line[*conn] // those being answered
	events   int              // counts accepts, requests and answers
	closing  *sync.WaitGroup  // runs conn.linger while the door stops, otherwise nil
}

func newLimits(most, perHost, spare int) *limits {
	return &limits{
		open:     host.Line[*conn]{Most: most + spare, PerHost: perHost + spare},
		answered: host.Line[*conn]{Most: most, PerHost: perHost},
	}
}

func (l *limited) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	p := &conn{Conn: c, of: l, host: host.Of(c.RemoteAddr())}
	if l.secure {
		p.Conn = tlslimit.New(c)
	}
	if oldest := l.arrive(p); oldest != nil {
		oldest.Close()
		runtime.Gosched() // earlier connections may be answered first
	}
	return p, nil
}

// linger makes connections that are closed from now on linger, or not if w is nil.
func (l *limits) linger(w *sync.WaitGroup) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closing = w
}

// arrive adds a connection and returns the connection that the caller must close to make room
// for it, or nil if there is room. If room is needed, there is always a connection to close,
// because fewer connections are being answered than may be open.
func (l *limits) arrive(p *conn) (oldest *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ofHost, inAll := l.open.Full(p.host)
	for _, other := range l.open.All {
		canClose := !other.answered && (ofHost && other.host == p.host || !ofHost && inAll)
		if canClose && (oldest == nil || other.lastEvent < oldest.lastEvent) {
			oldest = other
		}
	}
	l.open.Add(p)
	l.note(p)
	return oldest
}

// note records an event on a connection. l.mu must be held.
func (l *limits) note(p *conn) {
	l.events++
	p.lastEvent = l.events
}

// answer counts a connection as being answered and reports whether there was room.
func (l *limits) answer(p *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.note(p)
	if ofHost, inAll := l.answered.Full(p.host); !ofHost && !inAll {
		p.answered = true
		l.answered.Add(p)
	}
	return p.answered
}

// finish ends what answer began.
func (l *limits) finish(p *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.note(p)
	l.answered.Remove(p)
	p.answered = false
}

// conn is a connection of a limited listener.
type conn struct {
	net.Conn
	of        *limited
	host      netip.Addr
	lastEvent int // limits.events at its last event
	answered  bool
	lingers   atomic.Bool // it has been closed, and linger runs
}

func (p *conn) Host() netip.Addr { return p.host }

// Close closes the connection. While the door stops, another goroutine does that; see linger.
func (p *conn) Close() error {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.of.open.Remove(p)
	p.of.answered.Remove(p)
	switch {
	case p.lingers.Load():
		return net.ErrClosed
	case p.of.closing != nil:
		p.lingers.Store(true)
		p.of.closing.Go(p.linger)
		return nil
	}
	return p.Conn.Close()
}

const (
	lingerTime = time.Second
	quietTime  = 50 * time.Millisecond
)

// linger drops what the caller sends until it sends nothing for quietTime, but at most for
// lingerTime, and closes the connection. Closing with unread bytes, such as the next request, would
// reset the connection, and the caller would lose the part of the last answer that it has not read.
func (p *conn) linger() {
	defer p.Conn.Close()
	c := p.Conn
	if below, ok := c.(*tlslimit.Conn); ok {
		c = below.NetConn()
	}
	if half, ok := c.(interface{ CloseWrite() error }); !ok || half.CloseWrite() != nil {
		return
	}
	b := make([]byte, 4<<10)
	for end := time.Now().Add(lingerTime); time.Now().Before(end); {
		c.SetReadDeadline(time.Now().Add(quietTime))
		if _, err := c.Read(b); err != nil {
			return
		}
	}
}

// Read fails once the connection has been closed, even if it lingers.
func (p *conn) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	if p.lingers.Load() {
		return 0, net.ErrClosed
	}
	return n, err
}

// Write writes to the connection. Package http sets the deadline, [writeTime].
func (p *conn) Write(b []byte) (int, error) {
	n, err := p.Conn.Write(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		p.of.log.Debug("HTTP response not read in time, connection closed", "address", p.RemoteAddr())
	}
	return n, err
}

func connOf(c net.Conn) *conn {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return c.(*conn)
}

// noteState is the [http.Server.ConnState] hook. A connection becomes idle once an answer is
// written.
func noteState(c net.Conn, state http.ConnState) {
	p := connOf(c)
	if below, ok := p.Conn.(*tlslimit.Conn); ok {
		below.Used()
	}
	if state == http.StateIdle {
		p.of.finish(p)
	}
}

type connKey struct{}

// noteConn is the [http.Server.ConnContext] hook.
func noteConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, connOf(c))
}

// connWith returns the connection with a request, or nil in tests without one.
func connWith(r *http.Request) *conn {
	p, _ := r.Context().Value(connKey{}).(*conn)
	return p
}

// ofMetrics reports whether a request arrived on the metrics listener.
func ofMetrics(r *http.Request) bool {
	p := connWith(r)
	return p != nil && p.of.metrics
}

// mayAnswer counts a request as being answered and reports whether there was room for it.
func mayAnswer(r *http.Request) bool {
	p := connWith(r)
	return p == nil || p.of.answer(p)
}
