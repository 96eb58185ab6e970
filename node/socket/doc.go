// Package socket provides TCP connections that are read by threads on the processors of their
// peers.
//
// Most of the cost of a call is waking up for it; decoding it and making an id cost little.
// Go's poller wakes up for every segment, on any idle processor, and a BEAM sends a call in
// three segments. But a caller on this machine waits for its answer, so its own processor is
// the best one for the answer: no other processor wakes up, all data sent until then is read
// at once, and the answer is in its cache. So there is a thread for each processor, the
// runner, which reads all connections whose peers run there, busy or quiet, by an epoll(7) of
// its own. SO_INCOMING_CPU of socket(7) is the processor of the peer. For a peer on another
// machine it is the one that handles the network card's interrupts. A connection moves to
// another runner when its peer moves. If a runner has to wait long before it runs on its
// processor, it runs on any.
//
// A connection is the only owner of its descriptor, which Go's poller does not watch: it would
// wake up for each segment too. A Read or Write that waits, as in a handshake, is woken up by
// the runner.
//
// If handling data takes long, or the peer does not read its answers, the runner's goroutine
// stays with that connection, and a new one continues with the others, after at most 20 ms.
// The connection's own goroutine then reads it for a while.
//
// All this is for Linux. On other systems the package does not change connections. The
// goroutines of runners stay for good.
package socket

import "time"

const (
	// MaxStuck bounds the threads of runners that stay with a connection.
	MaxStuck = 64

	// longStep is the time after which a step takes long.
	longStep = 10 * time.Millisecond

	// separateSteps is the number of steps, after a long one, before the runner reads the
	// connection again.
	separateSteps = 1024
)
