// Package tlslimit bounds what crypto/tls keeps of a peer that sends much and says
// nothing: by itself it gathers messages of up to 256 KiB from any caller, during the
// handshake and after it.
//
// Start at [New], which goes below the TLS of a connection. Call [Conn.Used] whenever
// data has come out of TLS.
package tlslimit

import (
	"errors"
	"net"
	"sync/atomic"
)

// MaxRaw bounds the bytes below TLS that yield no data: those of the handshake,
// certificates included, and later those between data. The longest record has 18 KiB,
// and a handshake with three RSA 4096 certificates about 7.
const MaxRaw = 20 << 10

var errMuch = errors.New("more bytes than a TLS handshake or record may have")

// Conn is a connection below TLS that fails beyond [MaxRaw].
type Conn struct {
	net.Conn
	read atomic.Int64 // bytes, since data came out
}

// New bounds what is read from a connection that has not yielded data yet.
func New(c net.Conn) *Conn { return &Conn{Conn: c} }

// Used notes that data has come out of TLS.
func (c *Conn) Used() { c.read.Store(0) }

// NetConn returns the connection below.
func (c *Conn) NetConn() net.Conn { return c.Conn }

// Read fails once more than MaxRaw would have come.
func (c *Conn) Read(b []byte) (int, error) {
	left := MaxRaw - c.read.Load()
	if left <= 0 {
		return 0, errMuch
	}
	n, err := c.Conn.Read(b[:min(int64(len(b)), left)])
	c.read.Add(int64(n))
	return n, err
}
