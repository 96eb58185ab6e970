// Package tlslimit bounds the bytes that crypto/tls buffers for a peer that sends no data.
// By itself, crypto/tls accepts messages of up to 256 KiB from any peer, during the handshake and
// after it.
//
// Start at [New], which returns the connection to use below TLS. Call [Conn.Used] after each
// read of data from TLS. [Explain] explains failed handshakes.
package tlslimit

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"
)

// MaxRaw bounds the bytes that a peer may send below TLS without sending data: the bytes of the
// handshake, including the certificates, and later the bytes between two reads of data. The
// longest record is 18 KiB long, and a handshake with three RSA 4096 certificates about 7 KiB.
const MaxRaw = 20 << 10

var errTooLong = errors.New("TLS handshake or record too long")

// Conn is a connection below TLS. Reads beyond [MaxRaw] fail.
type Conn struct {
	net.Conn
	read atomic.Int64 // bytes since Used was called
}

// New returns a Conn for a connection from which nothing has been read.
func New(c net.Conn) *Conn { return &Conn{Conn: c} }

// Used records that data was read from TLS.
func (c *Conn) Used() { c.read.Store(0) }

// NetConn returns the underlying connection.
func (c *Conn) NetConn() net.Conn { return c.Conn }

// Read fails after MaxRaw bytes without data.
func (c *Conn) Read(b []byte) (int, error) {
	left := MaxRaw - c.read.Load()
	if left <= 0 {
		return 0, errTooLong
	}
	n, err := c.Conn.Read(b[:min(int64(len(b)), left)])
	c.read.Add(int64(n))
	return n, err
}

// Explain adds to the error of a handshake that this side's certificate is not valid now. Peers that
// refuse it may end the handshake so that crypto/tls reports something else: a bad record MAC, or EOF.
func Explain(err error, c *tls.Config) error {
	if err == nil || len(c.Certificates) == 0 || c.Certificates[0].Leaf == nil {
		return err
	}
	leaf, now := c.Certificates[0].Leaf, time.Now()
	if now.Before(leaf.NotBefore) || now.After(leaf.NotAfter) {
		return fmt.Errorf("%w; this node's certificate is not valid now, only from %s until %s: replace it",
			err, leaf.NotBefore.Format(time.RFC3339), leaf.NotAfter.Format(time.RFC3339))
	}
	return err
}
