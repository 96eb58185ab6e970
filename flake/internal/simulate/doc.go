// Package simulate runs id servers on simulated machines that fail: the clock steps, drifts,
// freezes and repeats seconds; the disk fills, and loses or tears what is not durable; and the
// process is killed, or the power fails, between any two operations on the disk.
//
// Time and disk are virtual, and everything follows from a seed, so a failure can be repeated
// exactly. [Run] runs one life, [Many] several. The simulated server is a [Node]. The tests of
// each format use [Kept] to run its generators with durable marks. The tests of package flake also
// use nodes that must repeat ids, such as a model of the Erlang server. If those nodes repeat no
// id, the simulation is too lenient.
//
// Type ledger lists the rules that a node must obey. The tests of this package also simulate
// fleets: several nodes with numbers from a store.
package simulate

import "time"

// Node is an id server on a [Machine]. One goroutine uses it, but that goroutine may call IDs
// again while another call to IDs reads the clock (see [Machine.Clock]).
type Node interface {
	// Start starts a new process, which knows only what is on the disk.
	Start(allowableDowntime time.Duration) error
	// IDs makes n ids and calls got for each.
	IDs(n int, got Got) error
	// BadCall makes a call that the server does not know.
	BadCall()
	// Tick is called once a second.
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

	// Marks parses the durable content of the file at [Path]. It returns a function that returns
	// the mark for ids with the given sequence. Marks is nil if the node has no marks.
	Marks func(file []byte) func(sequence uint32) (milli uint64, err error)

	// Unit is the length of a tick in milliseconds; 0 means 1.
	Unit uint64

	// PerTick is the number of ids in a tick; 0 means 65,536.
	PerTick int

	// If Unordered is set, the ids of a caller need not ascend.
	Unordered bool

	// If Drifts is set, the node's clock may differ from the machine's after a step. Then the
	// time of ids may differ too, and the next start may fail.
	Drifts bool

	// NoBursts and NoBadCalls leave out the events that make the original repeat ids
	// immediately. Then only crashes and clocks can make it repeat ids.
	NoBursts, NoBadCalls bool

	// If LyingDisk is set, fsync does nothing. No node can survive that.
	LyingDisk bool
}
