// Package socket accepts TCP connections, and lets threads read the busy ones on the processors
// where their peers run.
//
// Most of the cost of a call is waking up for it; decoding it and making an id cost little. Go's
// poller wakes up for every segment, on any idle processor, and a BEAM sends a call in three
// segments. But a caller on this machine waits for its answer, so its own processor is the best
// one to produce the answer: no other processor wakes up, all data sent until then is read in one
// go, and the answer is in the processor's cache. So the reader of a busy connection gets a thread.
// The thread blocks in poll(2) and follows the peer from processor to processor, unless it would
// have to wait a long time to run there. SO_INCOMING_CPU (see socket(7)) is the processor of the
// peer. For a peer on another machine it is the processor that handles the network card's
// interrupts.
//
// Several busy connections share one thread, the shared poller, because each additional thread
// would have to be woken up. If a peer does not read, or handling its data takes a long time, its
// connection keeps the blocked goroutine, and the other connections continue on a new one after at
// most 20 ms. If the work is too much for one processor, the connection that sends most is evicted.
// In both cases that connection gets its own thread for a while. A TLS connection always has its
// own.
//
// A quiet connection needs no thread: Go's poller watches it like any other. A thread that
// takes it over duplicates its descriptor and closes the poller's, so that a segment wakes up only
// the thread. When the connection has been quiet for a moment, the poller watches a new duplicate.
// So a peer that rarely calls needs one descriptor and no thread.
//
// All this applies to Linux. On other systems connections have no threads.
//
// On all systems, a [Listener] bounds what the kernel buffers for a peer, and refuses connections
// when only reserved descriptors are left.
//
// # What it saves
//
// This table shows the node's CPU time per call in microseconds, without this package and with
// it, the ratio of the two, and the ratio of the calls per second:
//
//	callers              without   with   ratio              calls/s
//	64, same machine        13.9    5.5   0.39 (0.31-0.57)   1.12 (0.86-1.40)
//	256, same machine       14.8    4.1   0.30 (0.20-0.34)   1.57 (1.06-1.98)
//	64, over veth           16.7    4.8   0.29 (0.22-0.57)   1.26 (1.06-1.39)
//	256, over veth          14.4    4.8   0.33 (0.23-0.39)   1.14 (0.98-1.49)
//
// Each figure is the median of six rounds, with the minimum and the maximum; each round
// measured both. The callers were processes of one Erlang node of OTP 25, on two processors of
// an AMD EPYC, where other programs at a lower priority caused a load of 12. With those programs
// at a higher priority, the ratios were 1.10 to 1.25.
//
// The shared poller takes 0.75 of the CPU time of a thread for each connection with 8 nodes, 0.90
// with 64, and 0.86 and 0.94 if an endless loop runs on each processor. Threads that yield (see
// yieldTime) take 0.89 of the CPU time of threads that do not, and 0.72 beside such loops. A
// connection without a thread costs 0.95 to 1.14 times as much as without this package.
package socket

import "time"

// ThreadsKept is the number of threads, in addition to one per processor, that connections may not
// use. They are reserved because a Go process that cannot start a thread crashes.
const ThreadsKept = 24

// threadsEach is how many threads a connection may need: one to read, and one to write to a
// peer that does not read.
const threadsEach = 2

const (
	// MaxThreads bounds the connections that are read by threads, shared or not. The bound is
	// lower if the process's limit on threads is low. Go's poller watches the other
	// connections.
	MaxThreads = 64

	// idle is how long a connection must be quiet before its thread gives it back. busy is the
	// number of consecutive reads, each shorter than idle, after which a thread takes the
	// connection over. A call needs up to three reads.
	idle = 10 * time.Millisecond
	busy = 8

	// firstAlone is how long an evicted connection has its own thread. The time doubles with each
	// additional eviction, up to maxEvictions.
	firstAlone   = time.Second
	maxEvictions = 6
)
