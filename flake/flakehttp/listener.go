package flakehttp

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/node/host"
)

// limited is a listener of which so many connections are open at a time. One more
// has the one closed that has been silent the longest, of its host if that has as
// many as it may. While all are being answered it waits to be accepted, or is hung
// up on if it is its host that has too many.
type limited struct {
	net.Listener
	most, perHost int
	start         time.Time

	mu   sync.Mutex
	open map[*placed]bool

	room   chan struct{} // holds one when there may be a place
	closed chan struct{}
	close  func() // closed, once
}

func limitListener(l net.Listener, most, perHost int) *limited {
	closed := make(chan struct{})
	return &limited{
		Listener: l, most: most, perHost: perHost, start: time.Now(), open: make(map[*placed]bool),
		room: make(chan struct{}, 1), closed: closed, close: sync.OnceFunc(func() { close(closed) }),
	}
}

func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		p := &placed{Conn: c, of: l, host: host.Of(c.RemoteAddr())}
		p.silent.Store(l.now())
		switch err := l.place(p); err {
		case nil:
			return p, nil
		case errHostFull:
			c.Close()
		default:
			c.Close()
			return nil, err
		}
	}
}

// now is a time that is never 0.
func (l *limited) now() int64 { return 1 + int64(time.Since(l.start)) }

var (
	errFull     = errors.New("as many connections are being answered as may be")
	errHostFull = errors.New("as many connections of this host are being answered as may be")
)

// place waits for a place.
func (l *limited) place(p *placed) error {
	for {
		oldest, err := l.arrive(p)
		if oldest != nil {
			oldest.Close()
		}
		if err != errFull {
			return err
		}
		select {
		case <-l.room:
		case <-l.closed:
			return net.ErrClosed
		}
	}
}

// arrive gives a connection a place. If there are too many, it gives the one that
// has to make room, which the caller closes.
func (l *limited) arrive(p *placed) (oldest *placed, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ofHost := func(other *placed) bool { return other.host == p.host }
	switch {
	case p.host.IsValid() && l.count(ofHost) >= l.perHost:
		oldest, err = l.oldest(ofHost), errHostFull
	case len(l.open) >= l.most:
		oldest, err = l.oldest(func(*placed) bool { return true }), errFull
	}
	if err != nil && oldest == nil {
		return nil, err
	}
	l.open[p] = true
	return oldest, nil
}

func (l *limited) count(among func(*placed) bool) (n int) {
	for p := range l.open {
		if among(p) {
			n++
		}
	}
	return n
}

// oldest finds who has been silent the longest, or nil.
func (l *limited) oldest(among func(*placed) bool) (oldest *placed) {
	var since int64
	for p := range l.open {
		if s := p.silent.Load(); s != 0 && (oldest == nil || s < since) && among(p) {
			oldest, since = p, s
		}
	}
	return oldest
}

// wake has Accept look for a place again.
func (l *limited) wake() {
	select {
	case l.room <- struct{}{}:
	default:
	}
}

func (l *limited) Close() error {
	l.close()
	return l.Listener.Close()
}

// placed is a connection of a limited listener.
type placed struct {
	net.Conn
	of     *limited
	host   netip.Addr
	silent atomic.Int64 // since when no request has come, by limited.now; 0: one is being answered
}

func (p *placed) Close() error {
	p.of.mu.Lock()
	delete(p.of.open, p)
	p.of.mu.Unlock()
	p.of.wake()
	return p.Conn.Close()
}

// noteState is [http.Server.ConnState]. A connection is active from when the header
// of a request has come until its answer is written.
func noteState(c net.Conn, state http.ConnState) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	p := c.(*placed)
	switch state {
	case http.StateActive:
		p.silent.Store(0)
	case http.StateIdle:
		p.silent.Store(p.of.now())
		p.of.wake()
	}
}
