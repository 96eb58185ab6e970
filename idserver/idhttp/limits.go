package idhttp

import "time"

// The limits of who asks over HTTP.
const (
	// MaxConnections bounds the connections on which a request is being answered that
	// has come as a whole and may be made, and MaxConnectionsPerHost those of one host;
	// the loopback is no host. One more is answered 503, but for /healthz and /readyz.
	MaxConnections        = 512
	MaxConnectionsPerHost = 256

	// SpareConnections may be open besides. One more has the one closed, of that
	// host or of all, from which no request has come for the longest.
	SpareConnections = 256

	// MaxStreams bounds the pages that follow events at a time; one more is
	// answered 503.
	MaxStreams = 32

	// MaxHeader bounds the bytes of a request's line and header, to which
	// net/http adds 4096; more is answered 431.
	MaxHeader = 8 << 10

	// MaxBody bounds the bytes of a body; more is answered 413.
	MaxBody = 4 << 10

	// turnTime is how long a request may wait for the turns it has to take many ids;
	// then it is answered 503.
	turnTime = writeTime / 2

	// readTime is how long a request may take to arrive, writeTime how long its
	// answer may take to be read, and idleTime how long a connection may then
	// wait for the next.
	readTime  = 10 * time.Second
	writeTime = 30 * time.Second
	idleTime  = 2 * time.Minute
)
