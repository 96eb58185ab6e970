package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/flake-go/flake/node/etf"
)

const (
	dialTime = 10 * time.Second // limits one attempt to connect

	// The pause after a failed attempt; it doubles with each failure.
	minPause = 10 * time.Millisecond
	maxPause = time.Second
)

// Node is a node that is called over one connection. The first call opens the connection; after
// a connection is lost, the next call opens a new one. A Node is safe for concurrent use.
//
// A call makes at most one attempt to connect, which concurrent calls share. A failed attempt is
// followed by a pause of up to a second, so that a program that calls in a loop does not
// overload the node. See [ErrLost] for calls that may have been performed.
type Node struct {
	name   string
	dialer Dialer
	ctx    context.Context // for the attempts
	cancel context.CancelFunc

	mu     sync.Mutex // guards the fields below
	latest *dialing   // or nil
	pause  time.Duration
	failed time.Time // when the latest attempt failed, if pause is not 0
}

// dialing is an attempt to connect.
type dialing struct {
	done chan struct{} // closed after conn or err is set
	conn *Conn
	err  error
}

// NewNode returns the node named name@host. It does not connect to it.
func NewNode(name string, d Dialer) *Node {
	n := &Node{name: name, dialer: d}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	return n
}

// Close closes the connection. Calls waiting for an answer fail.
func (n *Node) Close() error {
	n.mu.Lock()
	n.cancel() // after this, no attempt starts
	a := n.latest
	n.mu.Unlock()
	if a == nil {
		return nil
	}
	if <-a.done; a.conn != nil {
		a.conn.Close()
	}
	return nil
}

// Call performs gen_server:call({Name, Node}, Request). When ctx is done, the call ends, but the
// connection stays open; the node may have performed the call by then.
func (n *Node) Call(ctx context.Context, name etf.Atom, request etf.Term) (reply etf.Term, err error) {
	return decoded(n.call(ctx, name, request))
}

// Apply calls a function on the node, as rpc:call does. For an exception it returns
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
		if errors.Is(err, errEnded) || errors.Is(err, errAlone) {
			continue
		}
		if err != nil {
			err = fmt.Errorf("node %s: %w", n.name, err)
		}
		return answer, err
	}
}

// connected returns the connection. If there is none, it connects first.
func (n *Node) connected(ctx context.Context) (*Conn, error) {
	n.mu.Lock()
	a := n.latest
	if a != nil && a.conn != nil && a.conn.ctx.Err() == nil {
		defer n.mu.Unlock()
		return a.conn, nil
	}
	if a == nil || a.conn != nil || a.err != nil {
		if n.ctx.Err() != nil {
			defer n.mu.Unlock()
			return nil, fmt.Errorf("node %s: %w", n.name, net.ErrClosed)
		}
		a = &dialing{done: make(chan struct{})}
		n.latest = a
		go n.dial(a, time.Until(n.failed.Add(n.pause)))
	}
	n.mu.Unlock()
	select {
	case <-a.done:
		return a.conn, a.err
	case <-ctx.Done():
		return nil, fmt.Errorf("node %s: %w", n.name, context.Cause(ctx))
	}
}

func (n *Node) dial(a *dialing, wait time.Duration) {
	defer close(a.done)
	select {
	case <-time.After(wait):
	case <-n.ctx.Done():
	}
	ctx, cancel := context.WithTimeout(n.ctx, dialTime)
	defer cancel()
	conn, err := n.dialer.Dial(ctx, n.name)

	n.mu.Lock()
	defer n.mu.Unlock()
	if a.conn, a.err = conn, err; err == nil {
		n.pause = 0
		return
	}
	n.pause, n.failed = min(max(2*n.pause, minPause), maxPause), time.Now()
}

var _ Door = (*Node)(nil)

func (n *Node) ask(ctx context.Context, r request) (answer, error) {
	if r.verb == askOne {
		id, err := n.next(ctx, r.generator)
		return answer{runs: []run{{id, 1}}}, err
	}
	var a answer
	call := r.term()
	b, err := n.call(ctx, etf.Atom(r.generator), call)
	if err != nil {
		return a, err
	}
	if err := readAnswer(b, func(b *etf.Reader) { a = r.read(b) }); err != nil {
		return a, fmt.Errorf("node %s: %s: %s: %w", n.name, r.generator, etf.Format(nil, call), err)
	}
	return a, nil
}

// next returns the next id of a generator.
func (n *Node) next(ctx context.Context, generator string) ([]byte, error) {
	return n.call(ctx, etf.Atom(generator), nextID{})
}

// readIDs returns the n ids in {ok, Binary}, or the error in {error, Reason}.
func readIDs(answer []byte, n int) (ids []byte, err error) {
	err = readAnswer(answer, func(b *etf.Reader) { ids = b.Binary() })
	if err == nil && len(ids)%n != 0 {
		err = fmt.Errorf("requested %d ids, but the node answered with %d bytes", n, len(ids))
	}
	return ids, err
}

// term returns the Request for gen_server:call.
func (r request) term() etf.Term {
	name := etf.Atom(r.verb)
	switch r.verb {
	case askTexts:
		if r.base < 0 {
			return etf.Tuple{name, int64(r.n), etf.Atom(nameOf(r.base))}
		}
		return etf.Tuple{name, int64(r.n), int64(r.base)}
	case askLease:
		return etf.Tuple{name, int64(r.n)}
	case askNotional:
		call := etf.Tuple{name}
		for _, milli := range r.millis {
			call = append(call, int64(milli))
		}
		return call
	case askDecompose:
		return etf.Tuple{name, r.id}
	}
	return name
}

// read reads Term in the reply {ok, Term}.
func (r request) read(b *etf.Reader) (a answer) {
	if r.verb == askNotional {
		if len(r.millis) > 1 {
			b.Tuple()
		}
		for range r.millis {
			a.ids = append(a.ids, b.Binary())
		}
		return a
	}
	for range b.ListHeader() {
		switch r.verb {
		case askTexts:
			a.texts = append(a.texts, string(b.StringExt()))
		case askLease:
			b.Tuple()
			a.runs = append(a.runs, run{b.Binary(), int(b.Int())})
		case askDecompose:
			b.Tuple()
			a.fields = append(a.fields, Field{string(b.Atom()), b.Uint64()})
		}
	}
	b.Nil()
	return a
}

// readAnswer reads {ok, Term}, calling read for the Term, or returns the error in {error, Reason}.
func readAnswer(answer []byte, read func(*etf.Reader)) error {
	r := etf.NewReader(answer)
	r.Tuple()
	switch word := r.Atom(); {
	case bytes.Equal(word, []byte("ok")):
		if read(&r); r.Finish() == nil {
			return nil
		}
	case bytes.Equal(word, []byte("error")) && r.Peek().IsAtom():
		return refusal(string(r.Atom()))
	}
	const shown = 200
	text := etf.FormatRaw(nil, answer, shown)
	if string(text) == "ok" { // the answer to unknown calls
		return ErrUnknown
	}
	return fmt.Errorf("the node answered %s", text)
}
