package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/flake-go/flake/node/etf"
)

const (
	dialTime = 10 * time.Second // for one attempt to connect

	// The wait before the next attempt after a failed one, doubled each time.
	minPause = 10 * time.Millisecond
	maxPause = time.Second
)

// Node is a node called over one connection, kept as long as it lasts. The first call
// opens it; after a loss the next call does. Any number of goroutines may call at
// once.
//
// A call makes at most one attempt to connect, and shares it with others. After failed
// attempts the next one comes after a pause of up to a second, so a program that keeps
// calling does the node no harm. [ErrLost] explains what an error says about a call.
type Node struct {
	name   string
	dialer Dialer
	ctx    context.Context // of the attempts
	cancel context.CancelFunc
	dials  sync.WaitGroup

	mu      sync.Mutex
	conn    *Conn    // the last one, or nil
	attempt *attempt // that is under way, or nil
	pause   time.Duration
	failed  time.Time // the last attempt, if pause is not 0
}

// attempt is an attempt to connect.
type attempt struct {
	done chan struct{} // closed when one of the others is set
	conn *Conn
	err  error
}

// NewNode returns the node named name@host, without connecting to it.
func NewNode(name string, d Dialer) *Node {
	n := &Node{name: name, dialer: d}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	return n
}

// Close ends the connection and the waiting calls.
func (n *Node) Close() error {
	n.mu.Lock()
	n.cancel() // no attempt starts after that
	n.mu.Unlock()
	n.dials.Wait()
	n.mu.Lock()
	conn := n.conn
	n.mu.Unlock()
	if conn != nil {
		conn.Close()
	}
	return nil
}

// Call is gen_server:call({Name, Node}, Request). The end of ctx ends only the call,
// which may have been carried out by then.
func (n *Node) Call(ctx context.Context, name etf.Atom, request etf.Term) (reply etf.Term, err error) {
	return decoded(n.call(ctx, name, request))
}

// Apply calls a function of the node, as rpc:call does. An exception comes back as
// {badrpc, Reason}.
func (n *Node) Apply(ctx context.Context, module, function etf.Atom, args []etf.Term) (etf.Term, error) {
	return n.Call(ctx, "rex", applyRequest(module, function, args))
}

func (n *Node) call(ctx context.Context, name etf.Atom, request etf.Term) ([]byte, error) {
	for {
		conn, err := n.connected(ctx)
		if err != nil {
			return nil, err
		}
		answer, err := conn.call(ctx, name, request)
		if ended := (endedError{}); errors.As(err, &ended) {
			continue // not sent: the connection has just ended
		}
		if err != nil {
			err = fmt.Errorf("node %s: %w", n.name, err)
		}
		return answer, err
	}
}

// connected returns the connection, waiting for it if there is none.
func (n *Node) connected(ctx context.Context) (*Conn, error) {
	n.mu.Lock()
	if n.conn.lasts() {
		defer n.mu.Unlock()
		return n.conn, nil
	}
	a := n.attempt
	if a == nil {
		if n.ctx.Err() != nil {
			defer n.mu.Unlock()
			return nil, fmt.Errorf("node %s: %w", n.name, net.ErrClosed)
		}
		a = &attempt{done: make(chan struct{})}
		n.attempt = a
		wait := time.Until(n.failed.Add(n.pause))
		n.dials.Go(func() { n.dial(a, wait) })
	}
	n.mu.Unlock()
	select {
	case <-a.done:
		return a.conn, a.err
	case <-ctx.Done():
		return nil, fmt.Errorf("node %s: %w", n.name, context.Cause(ctx))
	}
}

func (n *Node) dial(a *attempt, wait time.Duration) {
	defer close(a.done)
	select {
	case <-time.After(wait):
	case <-n.ctx.Done():
	}
	ctx, cancel := context.WithTimeout(n.ctx, dialTime)
	defer cancel()
	a.conn, a.err = n.dialer.Dial(ctx, n.name)

	n.mu.Lock()
	defer n.mu.Unlock()
	n.attempt = nil
	if a.err != nil {
		n.pause, n.failed = min(max(2*n.pause, minPause), maxPause), time.Now()
		return
	}
	n.conn, n.pause = a.conn, 0
}

// lasts reports whether there is a connection that has not ended.
func (c *Conn) lasts() bool {
	if c == nil {
		return false
	}
	select {
	case <-c.ended:
		return false
	default:
		return true
	}
}
