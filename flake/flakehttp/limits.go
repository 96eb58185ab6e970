package flakehttp

import "time"

// The limits of who asks over HTTP.
const (
	// MaxConnections bounds the connections at a time; more wait to be accepted.
	MaxConnections = 512

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
