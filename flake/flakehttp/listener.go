package flakehttp

import (
	"net"
	"sync"
)

// limitListener has at most so many connections of a listener open at a time.
// More are accepted by the kernel alone, until one of them ends.
func limitListener(l net.Listener, most int) net.Listener {
	return &limited{Listener: l, places: make(chan struct{}, most), closed: make(chan struct{})}
}

type limited struct {
	net.Listener
	places chan struct{}
	once   sync.Once
	closed chan struct{}
}

func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	return &placed{Conn: c, leave: sync.OnceFunc(func() { <-l.places })}, nil
}

func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type placed struct {
	net.Conn
	leave func()
}

func (c *placed) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
