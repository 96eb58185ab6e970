package epmd

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

var (
	// ErrNameTaken means that a running node has the name.
	ErrNameTaken = errors.New("a node of that name is already registered")
	// ErrNotFound means that no node has registered the name.
	ErrNotFound = errors.New("no node of that name is registered")

	// errNoAnswer means that a connection was accepted, but a request not answered as an EPMD does.
	errNoAnswer = errors.New("no EPMD answers, perhaps because another program uses its port: " +
		"set node.epmd or ERL_EPMD_PORT")
)

// requestTimeout bounds a dial, and a request with its reply.
const requestTimeout = 5 * time.Second

// message is any request or reply of this package.
type message interface {
	Append(dst []byte) []byte
	Decode(src []byte) error
}

// Lookup asks the EPMD at addr for the node called name. It returns ErrNotFound if the node is
// not registered.
func Lookup(ctx context.Context, addr, name string) (Node, error) {
	var resp port2Resp
	conn, err := request(ctx, addr, name, &portPlease2Req{name}, &resp)
	if err == nil {
		conn.Close()
		if resp.result != 0 {
			err = ErrNotFound
		}
	}
	if err != nil {
		return Node{}, fmt.Errorf("epmd: look up %q at %s: %w", name, addr, err)
	}
	return resp.node, nil
}

// probe returns nil if an EPMD answers at addr. It makes a request, because OTP's daemon logs an error about
// a connection without one.
func probe(ctx context.Context, addr string) error {
	_, err := Lookup(ctx, addr, "epmd")
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// request makes a request about a name on a new connection, because EPMD answers only one request
// per connection. On success it returns the connection, without a deadline.
func request(ctx context.Context, addr, name string, req, resp message) (net.Conn, error) {
	if cause := badName(name); cause != "" {
		return nil, fmt.Errorf("name: %s", cause)
	}
	buf := req.Append(make([]byte, 2)) // the length
	binary.BigEndian.PutUint16(buf, uint16(len(buf)-2))
	d := net.Dialer{Timeout: requestTimeout}
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(requestTimeout))
	if _, err = conn.Write(buf); err == nil {
		err = receive(conn, resp)
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	conn.SetDeadline(time.Time{})
	return conn, nil
}

// receive reads a reply. Replies have no length prefix; their fields determine their end. receive
// does not wait for the end of the connection, because not every EPMD closes it.
func receive(r io.Reader, resp message) error {
	var src []byte
	for buf := make([]byte, 512); ; {
		n, err := r.Read(buf)
		src = append(src, buf[:n]...)
		failure := resp.Decode(src)
		_, truncated := errors.AsType[truncatedError](failure)
		switch {
		case !truncated:
			return failure
		case errors.Is(err, io.EOF):
			return fmt.Errorf("connection closed before the end of the reply: %w", err)
		case err != nil:
			return err
		}
	}
}

// Register registers n with the EPMD at addr, as a node that supports versions 5 and 6. A zero Type
// means Normal. The registration lasts as long as the connection that Register returns. The error is
// ErrNameTaken if the name is in use. A node chooses its own creation, so Register ignores the one
// that the EPMD assigns.
func Register(ctx context.Context, addr string, n Node) (net.Conn, error) {
	n.Type = cmp.Or(n.Type, Normal)
	n.Highest, n.Lowest = version6, version5
	var resp alive2Resp
	conn, err := request(ctx, addr, n.Name, &alive2Req{n}, &resp)
	if err == nil && resp.result != 0 {
		err = ErrNameTaken
		conn.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("epmd: register %q at %s: %w", n.Name, addr, err)
	}
	return conn, nil
}

// awaitEnd returns when the EPMD has ended a registration. If ctx ends first, it ends the registration itself.
// An EPMD sends nothing to a registered node, so a byte from it also ends the registration.
func awaitEnd(ctx context.Context, registration net.Conn) {
	defer registration.Close()
	stop := context.AfterFunc(ctx, func() { registration.Close() })
	defer stop()
	registration.Read(make([]byte, 1))
}
