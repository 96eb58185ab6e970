// Package distribution speaks the protocol between two connected Erlang nodes: frames, control
// messages, ticks, monitors and links.
//
// It implements the chapter "Protocol between Connected Nodes" of
// https://www.erlang.org/doc/apps/erts/erl_dist_protocol.html. Start at [Proto] and
// [Conn].
//
// One goroutine reads each connection. It handles frames in the order of their arrival, appends
// the answers to the connection's output, and writes all of them together when no more frames
// have arrived. So signals from one sender keep their order, as Erlang promises, and many calls
// share one write. The reader does not read while it writes: a peer that does not read its
// answers is not served, and the write deadline ends its connection. Timers send ticks, and
// other goroutines write the output that the reader did not append.
//
// Most of the cost of a call is waking up for it and writing its answer; decoding it and
// making an id cost little. So a busy connection is read by a thread near its callers, as
// package socket explains, and a call needs no goroutine, channel or timer. A message is
// parsed once, by its receiver: see [Process].
//
// A [Message] is answered immediately or later. An answer that is built on another goroutine does
// not delay the reader. Later requests from the same process to the same server wait for that
// answer, so that a process gets answers in the order of its calls: see [Message.Later]. If the peer
// forwarded a call from another node, the answer is sent to that node, which is dialed first if
// necessary.
//
// References, and pids in answers, are returned byte for byte. A malformed frame ends
// its connection; a message that cannot be decoded is logged and dropped.
//
// A process that a peer spawns on this node is a goroutine that calls [Proto.Spawn].
//
// One pool counts the memory that connections hold beyond the needs of an ordinary call;
// each part of a connection has an account: see [MaxShared].
//
// Distribution headers, the atom cache and fragments are neither supported nor offered in the
// handshake.
package distribution

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/latency"
)

// Proto makes connections and serves them.
type Proto struct {
	// Node and Creation belong to the local node.
	Node     string
	Creation uint32

	Processes   Processes
	NetTicktime time.Duration // a peer silent for this long is down
	Log         *slog.Logger

	// Spawn runs the function of a process that a peer spawned, and returns its exit reason.
	Spawn func(module, function etf.Atom, args []etf.Term) (reason etf.Term)

	// Refuse returns the error for a spawn, or "" to allow it.
	Refuse func(module, function etf.Atom, args []etf.Term) etf.Atom

	Connection func(node string) *Conn // returns the connection to a node, or nil
	Connect    func(node string) error // connects to a node

	// Down is called with each connection after it has ended. If the peer is to blame, blame says
	// why in one word.
	Down func(c *Conn, blame string)

	spawned    atomic.Uint32 // number of the last spawned process
	running    sync.WaitGroup
	pool       pool
	served     sync.Map // the connections being served
	deliveries deliveries
	made       atomic.Uint32 // number of connections made
	took       [histograms]latency.Histogram
}

// Limit reduces [MaxShared], [MaxSmall] and [MaxSpare] to percent of their values. Call it
// before the first connection is made.
func (p *Proto) Limit(percent int) { p.pool.percent = percent }

// Held returns how many bytes count against [MaxShared], [MaxSmall] and [MaxSpare].
func (p *Proto) Held() int64 { return p.pool.held.Load() + p.pool.spare.Load() }

// Go runs f on a new goroutine. Call it before [Proto.Wait], or from a function that Go runs.
func (p *Proto) Go(f func()) { p.running.Go(f) }

// Wait returns when all goroutines started by [Proto.Go] have ended.
func (p *Proto) Wait() { p.running.Wait() }

// Ended reports the end of a process to the processes that monitor it or are linked to it.
// Before Ended is called, [Processes] must stop finding the process.
func (p *Proto) Ended(id uint64, reason etf.Term) {
	for c := range p.served.Range {
		c.(*Conn).ended(id, reason)
	}
}

// Process is a local process as peers see it.
type Process struct {
	ID uint64 // the ID of the pid, with the Serial in the upper 32 bits

	// Receive handles a message to the process, on the goroutine that read it. An error
	// is logged.
	Receive func(*Message) error

	// Kill ends the process, as exit(Pid, kill) does. If Kill is nil, peers cannot kill it.
	Kill func()
}

// Processes finds living local processes. Its methods are called concurrently.
type Processes interface {
	// Whereis returns the process registered as name, or nil.
	Whereis(name []byte) *Process
	// ByID returns the process with the ID, or nil.
	ByID(id uint64) *Process
}
