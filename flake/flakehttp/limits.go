package flakehttp

import "time"

// The limits of who asks over HTTP.
const (
	// MaxConnections bounds the connections at a time, and MaxConnectionsPerHost
	// those of one host; the loopback is no host. One more has the one closed, of
	// that host or of all, from which no request has come for the longest. While all
	// are being answered it waits to be accepted, and is hung up on if it is its host
	// that has too many.
	MaxConnections        = 512
	MaxConnectionsPerHost = 256

	// MaxStreams bounds the pages that follow events at a time; one more is
	// answered 503.
	MaxStreams = 32

	// MaxHeader bounds the octets of a request's line and header, to which
	// net/http adds 4096; more is answered 431.
	MaxHeader = 8 << 10

	// MaxBody bounds the octets of a form; more is answered 413.
	MaxBody = 4 << 10

	// readTime is how long a request may take to arrive, writeTime how long its
	// answer may take to be read, and idleTime how long a connection may then
	// wait for the next.
	readTime  = 10 * time.Second
	writeTime = 30 * time.Second
	idleTime  = 2 * time.Minute
)
