// Package simulate runs id servers on simulated machines that fail: the clock steps, drifts,
// freezes and repeats seconds; the disk fills, and loses or tears what is not durable; and the
// process is killed, or the power fails, between any two operations on the disk.
//
// Time and disk are virtual, and everything follows from a seed, so a failure can be repeated
// exactly. [Run] runs one life, [Many] runs several. The simulated server is a [Node]: [Kept] for
// generators of any format with their durable marks, in the format's tests; and [Original], a
// model of the Erlang server's rules. The simulation must find that the latter repeats ids;
// otherwise it is too lenient.
//
// Type ledger lists the rules that a node must keep. [RunFleet] simulates several nodes with
// numbers from a store.
package simulate

import "time"

// Node is an id server on a [Machine]. One goroutine uses it, but IDs may be called
// again while another call of IDs reads the clock (see [Machine.Clock]).
type Node interface {
	// Start starts a new process, which knows only what is on the disk.
	Start(allowableDowntime time.Duration) error
	// IDs makes n ids, and calls got for each.
	IDs(n int, got Got) error
	// BadCall makes a call that no server knows.
	BadCall()
	// Tick is called each second.
	Tick()
	// Stop stops the process cleanly.
	Stop()
}

// Got receives an id: the start of its tick in milliseconds since 1970, and a number that
// distinguishes it from other ids of the tick.
type Got func(milli uint64, sequence uint32)

// Config configures a simulation.
type Config struct {
	New func(*Machine) Node

	// Mark returns the durable mark for ids with sequence from the content of the file at
	// [Path]; nil: the node has no mark.
	Mark func(file []byte, sequence uint32) (milli uint64, err error)

	// Unit is the length of a tick in milliseconds; 0 means 1.
	Unit uint64

	// PerTick is the number of ids of a tick; 0 means 65,536.
	PerTick int

	// Unordered means that the ids of a caller need not ascend.
	Unordered bool

	// Drifts means that the node's clock may differ from the machine's after a step. So
	// ids may have another time, and the next start may fail.
	Drifts bool

	// NoBursts and NoBadCalls leave out what makes the original repeat ids at once, so that
	// crashes and clocks must.
	NoBursts, NoBadCalls bool

	// LyingDisk makes fsync do nothing, which no node can survive.
	LyingDisk bool
}
