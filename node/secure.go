package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/flake-go/flake/node/socket"
	"github.com/flake-go/flake/node/tlslimit"
)

// security is TLS around connections to other nodes, as in OTP with -proto_dist
// inet_tls; nil is none. The function returns the settings for the next connection.
// Inside TLS, lengths in the handshake have 4 bytes instead of 2; frames are the same.
type security func() *tls.Config

// accept is our side of a connection that another node dialed.
func (s security) accept(ctx context.Context, c net.Conn) (net.Conn, error) {
	c = socket.Adopt(c)
	if s == nil {
		return c, nil
	}
	below := tlslimit.New(c)
	t := tls.Server(below, s())
	var plain tls.RecordHeaderError
	err := t.HandshakeContext(ctx)
	if errors.As(err, &plain) {
		err = fmt.Errorf("%w: the caller must speak TLS (-proto_dist inet_tls)", err)
	}
	return secured{t, below}, err
}

// dial is our side of a connection that we dialed to the node peer, whose certificate
// must contain its host.
func (s security) dial(ctx context.Context, c net.Conn, peer string) (net.Conn, error) {
	c = socket.Adopt(c)
	if s == nil {
		return c, nil
	}
	config := s().Clone()
	_, config.ServerName, _ = strings.Cut(peer, "@")
	below := tlslimit.New(c)
	t := tls.Client(below, config)
	return secured{t, below}, t.HandshakeContext(ctx)
}

// secured is a connection in TLS.
type secured struct {
	*tls.Conn
	below *tlslimit.Conn
}

// Read notes that the peer has sent data.
func (c secured) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.below.Used()
	}
	return n, err
}

// closeTime is how long a peer may take to accept the notice that TLS ends.
const closeTime = 100 * time.Millisecond

// Close does not wait five seconds for a peer that does not read, as tls.Conn's does.
func (c secured) Close() error {
	end := time.AfterFunc(closeTime, func() { c.NetConn().Close() })
	defer end.Stop()
	return c.Conn.Close()
}
