package epmd

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// Registration is a node's entry in an EPMD. It lasts as long as its connection.
type Registration struct {
	Creation uint32 // from the EPMD, never 0

	conn net.Conn
	done chan struct{}
}

// Register registers n with the EPMD at addr, or returns ErrNameTaken. A zero Type or Highest
// stands for this node's: Normal, versions 5 to 6.
func Register(ctx context.Context, addr string, n Node) (*Registration, error) {
	n.fill()
	reg, err := register(ctx, addr, n)
	if err != nil {
		return nil, fmt.Errorf("epmd: register %q at %s: %w", n.Name, addr, err)
	}
	return reg, nil
}

func register(ctx context.Context, addr string, n Node) (*Registration, error) {
	conn, err := dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	var resp Alive2Resp
	err = exchange(ctx, conn, &Alive2Req{n}, &resp, readAlive2Resp)
	switch {
	case err != nil:
	case resp.Result != ResultOK:
		err = ErrNameTaken
	case resp.Creation == 0:
		err = errors.New("EPMD gave creation 0")
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	r := &Registration{Creation: resp.Creation, conn: conn, done: make(chan struct{})}
	go r.watch()
	return r, nil
}

// watch waits for the connection to end. EPMD has nothing to say on it: a byte ends it too.
func (r *Registration) watch() {
	defer close(r.done)
	defer r.conn.Close()
	var b [1]byte
	r.conn.Read(b[:])
}

// Done is closed when the registration has ended, by Close or because the EPMD is gone.
func (r *Registration) Done() <-chan struct{} { return r.done }

// Close unregisters the node. It may be called again.
func (r *Registration) Close() {
	r.conn.Close()
	<-r.done
}
