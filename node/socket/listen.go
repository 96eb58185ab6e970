package socket

import (
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/flake-go/flake/node/reserve"
)

// maxUnsent is the size of a connection's send buffer. The kernel doubles it. By default, the
// buffer can grow to megabytes for a peer that does not read.
const maxUnsent = 128 << 10

// Admit bounds the send buffer of a new connection. If the connection has a reserved descriptor,
// Admit closes it and returns [reserve.ErrFew].
func Admit(c net.Conn) error {
	if err := reserve.Check(c); err != nil {
		c.Close()
		return err
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetWriteBuffer(maxUnsent) // fails only if the connection has ended
	}
	return nil
}

// retry is how long a listener waits after a failure, such as a lack of descriptors.
const retry = 100 * time.Millisecond

// Listener returns a listener for the connections of l that Admit admits. Its Accept fails only
// when l is closed.
func Listener(l net.Listener, log *slog.Logger) net.Listener { return listener{l, log} }

type listener struct {
	net.Listener
	log *slog.Logger
}

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
		if err = Admit(c); err == nil {
			return c, nil
		}
		l.log.Warn("closed a new connection", "address", c.RemoteAddr(), "listener", l.Addr(), "err", err)
	}
}
