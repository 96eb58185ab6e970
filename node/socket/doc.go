// Package socket provides TCP connections that a thread may read, where their peer
// runs.
//
// Decoding a call and making an id cost little; waking up costs most. Go's poller
// wakes for every segment, on any idle processor, and a BEAM sends a call in three.
// But a caller on this machine waits for its answer, so the best processor to answer
// on is the one it leaves: nothing wakes elsewhere, everything sent until then is read
// at once, and the answer is nearby. So the reader of a busy connection has a thread.
// It blocks in the system's poll and follows the peer from processor to processor,
// unless it would wait long for its turn there. SO_INCOMING_CPU of socket(7) reports
// the processor that the peer runs on. For a peer on another machine it is the one
// that takes the network card's interrupts, also the nearest.
//
// Several busy connections have one thread together, as each thread more has to wake up:
// what has arrived on all of them is read, handled and answered in one go. That thread
// waits for nobody. If a peer does not read, or handling takes long, its connection keeps
// the goroutine that it has stopped, and the others get another, at the latest after
// 20 ms. If there is more to do than one processor can, the connection that sends most
// leaves. In both cases it has its own thread for a while. TLS connections always have.
//
// A quiet connection needs no thread: Go's poller watches it, as any other. A thread that
// takes it over has another descriptor of it, and closes the poller's, so that no segment
// wakes both. When it has been quiet for a moment, the poller gets one again. So whoever
// is connected and seldom calls takes one descriptor and no thread.
//
// Only Linux has all this. Elsewhere a connection stays as it is.
//
// # What it saves
//
// This is the node's CPU time for a call, in microseconds, without this package and
// with it; the ratio of the two; and the ratio of the calls per second:
//
//	callers              without   with   ratio              calls/s
//	64, same machine        13.9    5.5   0.39 (0.31-0.57)   1.12 (0.86-1.40)
//	256, same machine       14.8    4.1   0.30 (0.20-0.34)   1.57 (1.06-1.98)
//	64, over veth           16.7    4.8   0.29 (0.22-0.57)   1.26 (1.06-1.39)
//	256, over veth          14.4    4.8   0.33 (0.23-0.39)   1.14 (0.98-1.49)
//
// Each figure is the median of six rounds, with the least and the most; the two took
// turns in each. The callers were processes of one Erlang node of OTP 25, on two
// processors of an AMD EPYC, whose other programs had a lower priority and a load of
// 12. When those had a higher priority, nothing was saved: the ratios were 1.10 to
// 1.25.
//
// The same of reading several connections in one thread, beside a thread for each. The
// callers, 256 in all, were those of so many nodes, over veth, in 15 rounds; "loops" are
// programs that do nothing else, one on each processor:
//
//	nodes         each   together   ratio              calls/s
//	8              6.3        4.7   0.75 (0.63-1.08)   0.99 (0.78-1.21)
//	8, loops       6.6        5.8   0.86 (0.62-1.03)   0.87 (0.69-1.12)
//	64            14.2       13.7   0.90 (0.69-1.05)   1.08 (0.91-1.26)
//	64, loops     14.4       13.4   0.94 (0.67-1.07)   1.06 (0.94-1.17)
//
// And of a thread that at times lets Go's scheduler count it as switched, see yieldTime;
// over veth, one node, 11 rounds:
//
//	callers              without   with   ratio              calls/s
//	1                       22.1   17.9   0.90 (0.63-1.02)   1.09 (0.90-1.43)
//	64                       4.1    3.5   0.89 (0.70-0.99)   0.99 (0.85-1.05)
//	256                      3.9    3.1   0.81 (0.66-0.98)   1.02 (0.90-1.27)
//	64, loops                5.0    3.5   0.72 (0.40-0.91)   1.03 (0.89-1.42)
//
// The thread alone saves what is in the first table. An adopted connection without a thread cost 0.95 to
// 1.14 of its cost without this package.
package socket

import "time"

const (
	// MaxThreads bounds the connections that threads read at a time, each its own or one
	// several; there are fewer if the process may not have so many threads. Go's poller
	// watches the others.
	MaxThreads = 64

	// idle is the quiet time after which a thread is given back; busy is how many
	// consecutive shorter reads earn one: one call is up to three.
	idle = 10 * time.Millisecond
	busy = 8

	// firstApart is how long a connection that held up others has its own thread at
	// least; twice as long each time, up to mostApart times.
	firstApart = time.Second
	mostApart  = 6
)
