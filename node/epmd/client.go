package epmd

import (
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
)

const (
	requestTimeout = 5 * time.Second // bounds a dial, and a request with its reply
	keepAlive      = 15 * time.Second
)

// message is any request or reply of this package.
type message interface {
	Append(dst []byte) ([]byte, error)
	Decode(src []byte) error
}

// Lookup asks the EPMD at addr for the node called name. It returns ErrNotFound if the node is
// not registered.
func Lookup(ctx context.Context, addr, name string) (Node, error) {
	var resp Port2Resp
	err := request(ctx, addr, &PortPlease2Req{name}, &resp, readPort2Resp)
	if err == nil && resp.Result != ResultOK {
		err = ErrNotFound
	}
	if err != nil {
		return Node{}, fmt.Errorf("epmd: look up %q at %s: %w", name, addr, err)
	}
	return resp.Node, nil
}

// request makes a request on a new connection, because EPMD answers only one per connection.
func request(ctx context.Context, addr string, req, resp message, read readFunc) error {
	conn, err := dial(ctx, addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	return exchange(ctx, conn, req, resp, read)
}

func dial(ctx context.Context, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: requestTimeout, KeepAlive: keepAlive}
	return d.DialContext(ctx, "tcp", addr)
}

// readFunc reads one reply. Replies have no length prefix; their fields determine their end.
type readFunc func(io.Reader) ([]byte, error)

// exchange writes req and reads resp. On success, conn is left without a deadline.
func exchange(ctx context.Context, conn net.Conn, req, resp message, read readFunc) error {
	buf, err := appendRequest(nil, req)
	if err != nil {
		return err
	}
	if err := conn.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	_, err = conn.Write(buf)
	if err == nil {
		buf, err = read(conn)
	}
	if !stop() {
		return context.Cause(ctx)
	}
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("connection closed before the end of the reply: %w", err)
		}
		return err
	}
	if err := resp.Decode(buf); err != nil {
		return err
	}
	return conn.SetDeadline(time.Time{})
}

// appendRequest appends req, preceded by its length.
func appendRequest(dst []byte, req message) ([]byte, error) {
	at := len(dst)
	dst, err := req.Append(append(dst, 0, 0))
	if err != nil {
		return dst[:at], err
	}
	binary.BigEndian.PutUint16(dst[at:], uint16(len(dst)-at-2))
	return dst, nil
}

func readAlive2Resp(r io.Reader) ([]byte, error) {
	buf, err := more(r, nil, 4)
	if err == nil && Tag(buf[0]) == TagAlive2XResp {
		buf, err = more(r, buf, 2)
	}
	return buf, err
}

// readPort2Resp does not wait for the end of the connection, because not every EPMD closes it.
func readPort2Resp(r io.Reader) ([]byte, error) {
	buf, err := more(r, nil, 2)
	if err != nil || Tag(buf[0]) != TagPort2Resp || Result(buf[1]) != ResultOK {
		return buf, err
	}
	if buf, err = more(r, buf, 10); err != nil {
		return buf, err
	}
	if buf, err = more(r, buf, int(binary.BigEndian.Uint16(buf[10:]))+2); err != nil {
		return buf, err
	}
	return more(r, buf, int(binary.BigEndian.Uint16(buf[len(buf)-2:])))
}

// more reads n more bytes into buf. n is at most 64 KiB, because lengths are 16 bits long.
func more(r io.Reader, buf []byte, n int) ([]byte, error) {
	at := len(buf)
	buf = append(buf, make([]byte, n)...)
	_, err := io.ReadFull(r, buf[at:])
	return buf, err
}

// Registration is a node's entry in an EPMD. It lasts as long as its connection.
type Registration struct {
	Creation uint32 // assigned by the EPMD, not 0

	conn net.Conn
	done chan struct{}
}

// Register registers n with the EPMD at addr. It returns ErrNameTaken if the name is in use. A
// zero Type means Normal, and a zero Highest means versions 5 to 6.
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
		err = errors.New("EPMD returned creation 0")
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	r := &Registration{Creation: resp.Creation, conn: conn, done: make(chan struct{})}
	go r.watch()
	return r, nil
}

// watch waits for the end of the connection. EPMD sends nothing on it, so receiving a byte also
// ends it.
func (r *Registration) watch() {
	defer close(r.done)
	defer r.conn.Close()
	var b [1]byte
	r.conn.Read(b[:])
}

// Done returns a channel that is closed when the registration ends, because of Close or because
// the EPMD ended.
func (r *Registration) Done() <-chan struct{} { return r.done }

// Close unregisters the node. It may be called again.
func (r *Registration) Close() {
	r.conn.Close()
	<-r.done
}
