// Package socket has TCP connections that a thread may read, where their peer runs.
//
// To decode a call and to make an id costs little; to be woken costs most. Go's
// poller is woken for every segment, on whatever processor is idle, and a BEAM sends
// a call in three. But a caller on this machine waits for its answer, so the best
// processor to answer on is the one that it leaves: nothing has to be woken
// elsewhere, all that it has sent until then is read at once, and the answer is
// beside it. Whoever reads a busy connection therefore has a thread, which blocks in
// the system's poll, and which follows the peer from processor to processor, unless
// it has to wait long for its turn there. SO_INCOMING_CPU of socket(7) reports the
// processor that the peer runs on. For a peer on another machine it is the one that
// takes the network card's interrupts, and the way from there is the shortest, too.
//
// A connection that nothing arrives on needs no thread: Go's poller watches it, by way
// of an epoll(7) of its own that is armed just then. So no segment wakes both.
//
// Only Linux has all that. Elsewhere a connection stays as it is.
//
// # What it saves
//
// This is the CPU time that the node takes for a call, in microseconds, without this
// package and with it; the ratio of the two; and that of the calls a second:
//
//	callers              without   with   ratio              calls/s
//	64, same machine        13.9    5.5   0.39 (0.31-0.57)   1.12 (0.86-1.40)
//	256, same machine       14.8    4.1   0.30 (0.20-0.34)   1.57 (1.06-1.98)
//	64, over veth           16.7    4.8   0.29 (0.22-0.57)   1.26 (1.06-1.39)
//	256, over veth          14.4    4.8   0.33 (0.23-0.39)   1.14 (0.98-1.49)
//
// Each is the median of six rounds, with the least and the most, in which the two took
// turns. The callers were processes of one Erlang node of OTP 25, on two processors of
// an AMD EPYC, whose other programs had a lower priority and a load of 12. When these
// had a higher one, nothing was saved: the ratios were 1.10 to 1.25.
//
// The thread alone saves that. A connection that was adopted and got none cost 0.95 to
// 1.14 of what it costs without this package.
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
