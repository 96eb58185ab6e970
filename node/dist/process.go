package dist

import (
	"context"

	"github.com/flake-go/flake/node/etf"
)

// Process is a local process as peers see it.
type Process struct {
	ID uint64 // of its pid, with the Serial in the upper 32 bits

	// Handler answers what is sent to the process, on the goroutine that read it.
	Handler Handler

	// Kill ends the process, as exit(Pid, kill) does. If nil, peers cannot.
	Kill func()
}

// Processes finds the local processes that are alive. Its methods are called by
// many connections at once.
type Processes interface {
	// Whereis gives the process registered as name, or nil.
	Whereis(name []byte) *Process
	// ByID gives the process with the ID, or nil.
	ByID(id uint64) *Process
}

// IDOf is the ID of the process of a pid.
func IDOf(p etf.Pid) uint64 { return uint64(p.Serial())<<32 | uint64(p.ID()) }

// Handler answers messages.
type Handler interface {
	// Receive takes one message, which is to be one external term: that is for
	// Receive to check, so that each message is gone through once. It is valid
	// until Receive returns. Answers go out by way of c. An error is logged.
	Receive(message []byte, c Caller) error
}

// Caller is the way back to who sent a message: the methods of a [Conn], which
// tells what they do.
type Caller interface {
	Caps() etf.Caps
	Serial() int
	Context() context.Context
	Buffer() []byte
	Answer(pid, alias, message []byte)
	Post(pid, alias, message []byte)
	Go(f func()) bool
	GoInOrder(f func()) bool
	Turn(size int) (done func(), ok bool)
}
