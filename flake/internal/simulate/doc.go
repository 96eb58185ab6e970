// Package simulate lives the lives of id servers on machines that fail: their
// clock steps, drifts, freezes and repeats seconds, their disk fills, loses and
// tears what was not made durable, and they are killed or lose power between
// any two things they do to the disk.
//
// All of a life follows from its seed, in virtual time and on a virtual disk,
// so that one that goes wrong is lived again exactly. [Run] lives one, [Many]
// a number of them. What is simulated is a [Node]: with [Kept] generators of
// any format and their durable marks, in that format's tests; and [Original], a
// model of the Erlang server's rules, which has to be caught repeating ids, or
// the lives are too easy.
//
// Type ledger lists the four rules that a node must keep.
package simulate

import "time"

// Node is an id server on a [Machine]. It is used by one goroutine, but calls
// of IDs may come while the clock is read for another (see [Machine.Clock]).
type Node interface {
	// Start begins a new process, with nothing but the disk to remember.
	Start(allowableDowntime time.Duration) error
	// IDs makes n ids and gives got each as it is made: when its tick began, and
	// what tells it from the others of the tick.
	IDs(n int, got Got) error
	// BadCall is a call that no server knows.
	BadCall()
	// Tick is called each second.
	Tick()
	// Stop ends the process cleanly.
	Stop()
}

// Got takes an id: milliseconds since 1970, and what else there is in it.
type Got func(milli uint64, sequence uint32)

// Config is what is to be simulated.
type Config struct {
	New func(*Machine) Node

	// Path is the file that Mark reads the node's durable mark from, the one that
	// an id of the sequence is to keep to; a nil Mark means that the node has none.
	Path string
	Mark func(file []byte, sequence uint32) (milli uint64, err error)

	// Unit is how long a tick of the node's is, in milliseconds; 0 means 1.
	Unit uint64

	// PerTick is how many ids a tick has; 0 means 65,536.
	PerTick int

	// Unordered says that a caller's ids need not ascend.
	Unordered bool

	// Drifts says that the node's clock may differ from the machine's once that is
	// stepped, so that ids may be of another time, and the next start find no time for any.
	Drifts bool

	// The original falls to these two at once. Without them it has to be
	// caught by crashes and clocks.
	NoBursts, NoBadCalls bool

	// LyingDisk makes fsync do nothing, which a node cannot survive.
	LyingDisk bool
}
