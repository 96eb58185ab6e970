package idhttp

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"sync"

	"github.com/flake-go/flake/node/host"
	"github.com/flake-go/flake/node/tlslimit"
)

// limited is a listener of which so many connections are open at a time, spare more
// than may be answered. One more has the one closed that has been silent the longest,
// of its host if that has as many as it may.
type limited struct {
	net.Listener
	secure bool // TLS is above

	mu       sync.Mutex
	open     host.Line[*placed]
	answered host.Line[*placed] // of them
	heard    int                // times that one of them came, asked or was answered
}

func limitListener(l net.Listener, most, perHost, spare int) *limited {
	return &limited{
		Listener: l,
		open:     host.Line[*placed]{Most: most + spare, PerHost: perHost + spare},
		answered: host.Line[*placed]{Most: most, PerHost: perHost},
	}
}

func (l *limited) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	p := &placed{Conn: c, of: l, host: host.Of(c.RemoteAddr())}
	if l.secure {
		p.below = tlslimit.New(c)
		p.Conn = p.below
	}
	if oldest := l.arrive(p); oldest != nil {
		oldest.Close()
		runtime.Gosched() // those who came before this one may be answered first
	}
	return p, nil
}

// arrive counts a connection, and returns the one that has to make room, which the
// caller closes: as not all may be answered there is one.
func (l *limited) arrive(p *placed) (oldest *placed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ofHost, inAll := l.open.Full(p.host)
	for _, other := range l.open.All {
		mayGo := !other.answered && (ofHost && other.host == p.host || !ofHost && inAll)
		if mayGo && (oldest == nil || other.heard < oldest.heard) {
			oldest = other
		}
	}
	l.open.Add(p)
	l.hear(p)
	return oldest
}

func (l *limited) hear(p *placed) {
	l.heard++
	p.heard = l.heard
}

// answer counts a connection as one that is being answered, if so many may be.
func (l *limited) answer(p *placed) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hear(p)
	if ofHost, inAll := l.answered.Full(p.host); !ofHost && !inAll {
		p.answered = true
		l.answered.Add(p)
	}
	return p.answered
}

// rest is the opposite of answer.
func (l *limited) rest(p *placed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hear(p)
	l.answered.Remove(p)
	p.answered = false
}

// placed is a connection of a limited listener.
type placed struct {
	net.Conn
	of    *limited
	host  netip.Addr
	below *tlslimit.Conn // or nil

	heard    int // limited.heard when it was last
	answered bool
}

func (p *placed) Host() netip.Addr { return p.host }

func (p *placed) Close() error {
	p.of.mu.Lock()
	p.of.open.Remove(p)
	p.of.answered.Remove(p)
	p.of.mu.Unlock()
	return p.Conn.Close()
}

func placedOf(c net.Conn) *placed {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return c.(*placed)
}

// noteState is [http.Server.ConnState]. A connection is idle when an answer is written.
func noteState(c net.Conn, state http.ConnState) {
	p := placedOf(c)
	if p.below != nil && state != http.StateNew {
		p.below.Used()
	}
	if state == http.StateIdle {
		p.of.rest(p)
	}
}

type placedKey struct{}

// noteConn is [http.Server.ConnContext].
func noteConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, placedKey{}, placedOf(c))
}

// getsPlace counts a request as one that is being answered, if so many may be.
func getsPlace(r *http.Request) bool {
	p, ok := r.Context().Value(placedKey{}).(*placed)
	return !ok || p.of.answer(p)
}
