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
	dials  sync.WaitGroup

	mu      sync.Mutex
	conn    *Conn    // the latest connection, or nil
	attempt *attempt // the current attempt, or nil
	pause   time.Duration
	failed  time.Time // when the latest attempt failed, if pause is not 0
}

// attempt is an attempt to connect.
type attempt struct {
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

// Call is gen_server:call({Name, Node}, Request). When ctx ends, the call ends, but the
// connection does not; the node may have performed the call by then.
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
		if ended := (endedError{}); errors.As(err, &ended) {
			continue // the call was not sent, because the connection has just ended
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
	if n.conn != nil && n.conn.ctx.Err() == nil {
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

// The calls to a generator, and the answers.
var _ Door = (*Node)(nil)

func (n *Node) get(ctx context.Context, generator string) (id []byte, err error) {
	err = n.ask(ctx, generator, etf.Atom("get"), func(r *etf.Reader) { id = r.Binary() })
	return id, err
}

func (n *Node) texts(ctx context.Context, generator string, count, base int) (texts []string, err error) {
	request := etf.Tuple{etf.Atom("get_many"), int64(count), int64(base)}
	if base < 0 {
		request[2] = etf.Atom(nameOf(base))
	}
	err = n.ask(ctx, generator, request, func(r *etf.Reader) {
		for range r.ListHeader() {
			texts = append(texts, string(r.StringExt()))
		}
		r.Nil()
	})
	return texts, err
}

func (n *Node) lease(ctx context.Context, generator string, count, _ int) (runs []run, err error) {
	err = n.ask(ctx, generator, etf.Tuple{etf.Atom("lease"), int64(count)}, func(r *etf.Reader) {
		for range r.ListHeader() {
			r.Tuple()
			runs = append(runs, run{r.Binary(), int(r.Int())})
		}
		r.Nil()
	})
	return runs, err
}

func (n *Node) notional(ctx context.Context, generator string, milli uint64) (id []byte, err error) {
	request := etf.Tuple{etf.Atom("notional"), int64(milli)}
	err = n.ask(ctx, generator, request, func(r *etf.Reader) { id = r.Binary() })
	return id, err
}

func (n *Node) span(ctx context.Context, generator string, first, last uint64) (lowest, highest []byte, err error) {
	request := etf.Tuple{etf.Atom("notional"), int64(first), int64(last)}
	err = n.ask(ctx, generator, request, func(r *etf.Reader) {
		r.Tuple()
		lowest, highest = r.Binary(), r.Binary()
	})
	return lowest, highest, err
}

func (n *Node) decompose(ctx context.Context, generator string, id []byte) (fields []Field, err error) {
	request := etf.Tuple{etf.Atom("decompose"), id}
	err = n.ask(ctx, generator, request, func(r *etf.Reader) {
		for range r.ListHeader() {
			r.Tuple()
			fields = append(fields, Field{string(r.Atom()), r.Uint64()})
		}
		r.Nil()
	})
	return fields, err
}

// ask calls a generator, and read to decode Term in the answer {ok, Term}.
func (n *Node) ask(ctx context.Context, generator string, request etf.Term, read func(*etf.Reader)) error {
	answer, err := n.call(ctx, etf.Atom(generator), request)
	if err != nil {
		return err
	}
	if err := readAnswer(answer, read); err != nil {
		return fmt.Errorf("node %s: %s: %s: %w", n.name, generator, etf.Format(nil, request), err)
	}
	return nil
}

func readAnswer(answer []byte, read func(*etf.Reader)) error {
	r := etf.NewReader(answer)
	r.Tuple()
	switch word := r.Atom(); {
	case bytes.Equal(word, []byte("ok")):
		read(&r)
		if r.Finish() != nil {
			return unexpected(answer)
		}
		return nil
	case bytes.Equal(word, []byte("error")) && r.Peek().IsAtom():
		return refusal(string(r.Atom()))
	}
	return unexpected(answer)
}

func unexpected(answer []byte) error {
	const shown = 200
	text := etf.FormatRaw(nil, answer, shown)
	if string(text) == "ok" { // the answer to unknown calls
		return ErrUnknown
	}
	return fmt.Errorf("the node answered %s", text)
}
