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
	most, perHost, spare int
	secure               bool // TLS is above

	mu       sync.Mutex
	open     map[*placed]bool
	answered int // of them
	heard    int // times that one of them came, asked or was answered
}

func limitListener(l net.Listener, most, perHost, spare int) *limited {
	return &limited{Listener: l, most: most, perHost: perHost, spare: spare, open: make(map[*placed]bool)}
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
	ofHost := func(other *placed) bool { return other.host == p.host }
	switch {
	case len(l.open) < l.perHost+l.spare:
	case p.host.IsValid() && l.count(ofHost) >= l.perHost+l.spare:
		oldest = l.oldest(ofHost)
	case len(l.open) >= l.most+l.spare:
		oldest = l.oldest(func(*placed) bool { return true })
	}
	l.open[p] = true
	l.hear(p)
	return oldest
}

func (l *limited) hear(p *placed) {
	l.heard++
	p.heard = l.heard
}

func (l *limited) count(among func(*placed) bool) (n int) {
	for p := range l.open {
		if among(p) {
			n++
		}
	}
	return n
}

// oldest finds who has been silent the longest.
func (l *limited) oldest(among func(*placed) bool) (oldest *placed) {
	for p := range l.open {
		if !p.answered && (oldest == nil || p.heard < oldest.heard) && among(p) {
			oldest = p
		}
	}
	return oldest
}

// answer counts a connection as one that is being answered, if so many may be.
func (l *limited) answer(p *placed) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hear(p)
	switch {
	case l.answered >= l.most:
	case l.answered >= l.perHost && p.host.IsValid() &&
		l.count(func(other *placed) bool { return other.answered && other.host == p.host }) >= l.perHost:
	default:
		p.answered = true
		l.answered++
	}
	return p.answered
}

// rest is the opposite of answer.
func (l *limited) rest(p *placed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hear(p)
	l.forget(p)
}

func (l *limited) forget(p *placed) {
	if p.answered {
		p.answered = false
		l.answered--
	}
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

func (p *placed) Close() error {
	p.of.mu.Lock()
	delete(p.of.open, p)
	p.of.forget(p)
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
