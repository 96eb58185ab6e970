// Package socket has TCP connections that a thread may read, where their peer runs.
//
// To decode a call and to make an id costs little; to be woken costs most. Go's
// poller is woken for every segment, on whatever processor is idle, and a BEAM sends
// a call in three. But a caller on this machine waits for its answer, so the best
// processor to answer on is the one that it leaves: nothing has to be woken
// elsewhere, all that it has sent until then is read at once, and the answer is
// beside it. Whoever reads a busy connection therefore has a thread, which blocks in
// the system's poll, and which follows the peer from processor to processor, unless
// it has to wait long for its turn there. Where a peer is tells SO_INCOMING_CPU of
// socket(7). Of one on another machine that is where the network card's interrupts
// are taken, and the way from there is the shortest, too.
//
// A connection that nothing arrives on needs no thread: Go's poller watches it, by way
// of an epoll(7) of its own that is armed just then. So no segment wakes both.
//
// Only Linux has all that. Elsewhere a connection stays as it is.
package socket

import "time"

const (
	// MaxThreads bounds the connections that a thread reads at a time; they are fewer if
	// the process may not have so many threads. Go's poller watches any more of them.
	MaxThreads = 64

	// idle is how long nothing has to arrive for a thread to be given back, and busy
	// how many waits in succession have to be shorter for one to be had: one call is
	// up to three.
	idle = 10 * time.Millisecond
	busy = 8
)
