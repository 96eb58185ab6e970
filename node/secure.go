package node

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/flake-go/flake/node/socket"
	"github.com/flake-go/flake/node/tlslimit"
)

// secure performs the TLS handshake if Options.TLS is set. dialed is the node that we dialed, whose
// certificate must name its host; it is empty if a node dialed us. With TLS, as in OTP with
// -proto_dist inet_tls, lengths in the distribution handshake are 4 bytes long instead of 2; frames
// do not change.
func (n *Node) secure(c net.Conn, dialed string) (net.Conn, error) {
	c = socket.Adopt(c)
	if n.options.TLS == nil {
		return c, nil
	}
	below, config := tlslimit.New(c), n.options.TLS()
	t := tls.Server(below, config)
	if dialed != "" {
		config = config.Clone()
		_, config.ServerName, _ = strings.Cut(dialed, "@")
		t = tls.Client(below, config)
	}
	err := t.HandshakeContext(n.ctx)
	if _, plain := errors.AsType[tls.RecordHeaderError](err); plain && dialed == "" {
		err = fmt.Errorf("%w: the caller must speak TLS (-proto_dist inet_tls)", err)
	}
	return secured{t, below}, tlslimit.Explain(err, config)
}

// secured is a TLS connection.
type secured struct {
	*tls.Conn
	below *tlslimit.Conn
}

// Read records that the peer has sent data.
func (c secured) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.below.Used()
	}
	return n, err
}

// closeTime bounds the write of the close_notify alert.
const closeTime = 100 * time.Millisecond

// Close is like tls.Conn's, but waits closeTime instead of 5 s for a peer that does not read.
func (c secured) Close() error {
	end := time.AfterFunc(closeTime, func() { c.NetConn().Close() })
	defer end.Stop()
	return c.Conn.Close()
}
