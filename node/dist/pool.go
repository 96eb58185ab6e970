package dist

import (
	"errors"
	"sync/atomic"

	"github.com/flake-go/flake/node/etf"
)

// MaxShared bounds the octets that all connections of a node together hold
// beyond what each may have of its own: frames and answers that are large,
// monitors and links by the thousand, messages while they are terms. Without it
// every limit of a connection would have to be multiplied by their number.
// What an ordinary call needs is never taken of it, so that a peer which uses it
// up keeps nobody from being served.
const MaxShared = 32 << 20

// What a connection may hold of its own.
const (
	ownInput   = fullBuffer
	ownOutput  = fullOutput
	ownWatches = 256 << 10 // about a thousand monitors
	ownLines   = 64 << 10  // about 150 calls

	// ownLarge is the size of an answer that Turn makes way for without asking.
	ownLarge = 64 << 10

	// ownMessage is the size of a message that is made terms of without asking:
	// any call of a server or function that is there, whatever the nodes' names.
	ownMessage = 4 << 10

	// ownArguments is the same for the arguments of a function, which may wait
	// for its turn with them.
	ownArguments = 512
)

var errShared = errors.New("no room: the connections hold too much as it is")

// pool is what is held of MaxShared. To take or give less than nothing is nothing.
type pool struct{ held atomic.Int64 }

func (p *pool) take(n int) bool {
	if n > 0 && p.held.Add(int64(n)) > MaxShared {
		p.give(n)
		return false
	}
	return true
}

func (p *pool) give(n int) {
	if n > 0 {
		p.held.Add(-int64(n))
	}
}

// account is what one part of a connection holds. Whoever guards that part
// guards it.
type account struct {
	pool  *pool // nil: there is no bound
	own   int   // octets that are not of the pool
	taken int   // of the pool
}

// hold changes the octets held to n, or reports that the pool has not as many.
func (a *account) hold(n int) bool {
	n = max(n-a.own, 0)
	if a.pool == nil {
		return true
	}
	if !a.pool.take(n - a.taken) {
		return false
	}
	a.pool.give(a.taken - n)
	a.taken = n
	return true
}

// weight is what a message may take as terms: the smallest element is two
// octets, a term of no more than 40, and half of that again is for what is made on the way.
func weight(message []byte, own int) int {
	const perOctet, most = 30, 60 * etf.MaxElements
	if len(message) <= own {
		return 0
	}
	return len(message) + min(perOctet*len(message), most)
}

// weigh takes room for a message as terms. What it gives has to be given back.
func (c *Conn) weigh(message []byte, own int) (taken int, err error) {
	taken = weight(message, own)
	if !c.proto.shared.take(taken) {
		return 0, errShared
	}
	return taken, nil
}
