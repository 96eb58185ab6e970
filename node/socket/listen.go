package socket

import (
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/flake-go/flake/node/reserve"
)

// MaxUnsent is the size of a connection's send buffer. The kernel doubles it. By default, the
// buffer can grow to megabytes for a peer that does not read.
const MaxUnsent = 128 << 10

// Bound sets the send buffer of a TCP connection to MaxUnsent.
func Bound(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetWriteBuffer(MaxUnsent) // fails only if the connection has ended
	}
}

// retry is how long a listener waits after a failure, such as a lack of descriptors.
const retry = 100 * time.Millisecond

// Listener returns a listener that calls Bound for the connections of l, and immediately closes
// each connection with a reserved descriptor. Its Accept fails only when l is closed.
func Listener(l net.Listener, log *slog.Logger) net.Listener { return listener{l, log} }

type listener struct {
	net.Listener
	log *slog.Logger
}

// Accept returns the next connection.
func (l listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil, err
		case err != nil:
			l.log.Error("accept failed", "listener", l.Addr(), "err", err)
			time.Sleep(retry)
			continue
		}
		if err = reserve.Check(c); err == nil {
			Bound(c)
			return c, nil
		}
		l.log.Warn("closed a new connection", "address", c.RemoteAddr(), "listener", l.Addr(), "err", err)
		c.Close()
	}
}
