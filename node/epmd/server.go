package epmd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/flake-go/flake/node/host"
	"github.com/flake-go/flake/node/reserve"
)

// Limits of the server. Hosts are those of [host.Of]; loopback does not count as one.
const (
	maxRegistered = 1024                  // nodes
	maxWaiting    = 1024                  // connections without a registration; a further one replaces another
	maxPerHost    = 256                   // connections of one host without a registration
	maxRequest    = 2048                  // bytes; the largest ALIVE2_REQ takes 1288
	answerTime    = 5 * time.Second       // bounds a request with its reply
	grace         = 50 * time.Millisecond // a connection younger than this is not closed to make room
)

// Server is an EPMD. Only nodes on its host can register; all hosts can look up nodes.
type Server struct {
	log        *slog.Logger
	answerTime time.Duration
	wg         sync.WaitGroup

	mu         sync.Mutex // guards the fields below
	closed     bool
	waiting    host.Line[*client] // clients not answered yet
	registered host.Line[*client]
	creation   uint32 // the latest creation assigned
	number     uint64 // of the latest registration
	lis        []net.Listener
}

// client is a connection to the server.
type client struct {
	net.Conn
	host  netip.Addr
	local bool // the peer is on this host
	since time.Time

	node   *Node  // the node that it has registered, or nil
	number uint64 // of that registration; later ones have higher numbers
}

func (v *client) Host() netip.Addr { return v.host }

// NewServer returns a server that logs to log. Its first creation comes from the clock, so that
// a node gets a new creation when it registers after the server has restarted.
func NewServer(log *slog.Logger) *Server {
	return &Server{
		log:        log,
		answerTime: answerTime,
		creation:   uint32(time.Now().Unix()),
		waiting:    host.Line[*client]{Most: reserve.Quarter(maxWaiting), PerHost: maxPerHost},
		registered: host.Line[*client]{Most: maxRegistered},
	}
}

// Serve starts answering connections to l, and continues until Close. It may be called for several
// listeners, but not after Close.
func (s *Server) Serve(l net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lis = append(s.lis, l)
	s.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // closed by Close
			}
			s.accept(conn)
		}
	})
}

// Close ends all registrations and waits until all goroutines of the server have ended.
func (s *Server) Close() {
	s.hangUp()
	s.wg.Wait()
}

func (s *Server) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, l := range s.lis {
		l.Close()
	}
	for _, v := range slices.Concat(s.waiting.All, s.registered.All) {
		v.Close()
	}
}

// accept serves conn on a new goroutine. If there are too many connections, it first closes
// another.
func (s *Server) accept(conn net.Conn) {
	v := &client{Conn: conn, host: host.Of(conn.RemoteAddr()), local: isLocal(conn), since: time.Now()}
	out, ok := s.enter(v)
	if !ok {
		conn.Close()
		return
	}
	if out != nil {
		s.log.Warn("epmd: closed the longest-waiting connection: too many connections have sent no request",
			"address", out.RemoteAddr())
		out.Close()
	}
	s.wg.Go(func() {
		defer s.forget(v)
		s.serve(v)
	})
}

// enter adds a connection. If there are too many, it returns the one to close, after waiting until
// that one has had time to send its request.
func (s *Server) enter(v *client) (out *client, ok bool) {
	for {
		out, ok := s.tryEnter(v)
		if ok || out == nil {
			return out, ok
		}
		time.Sleep(grace - time.Since(out.since))
	}
}

// tryEnter is like enter, but returns the connection to wait for, and false, instead of waiting.
func (s *Server) tryEnter(v *client) (out *client, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, false
	}
	if out = s.tooMany(v.host); out != nil && time.Since(out.since) < grace {
		return out, false
	}
	s.waiting.Remove(out)
	s.waiting.Add(v)
	return out, true
}

// tooMany returns nil if one more connection is within the limits. Otherwise it returns the
// longest-waiting connection of the given host, if that host has too many, or else of the host with
// the most. That connection rarely belongs to a well-behaved peer, because such peers send their
// request immediately.
func (s *Server) tooMany(host netip.Addr) (out *client) {
	ofHost, inAll := s.waiting.Full(host)
	if !ofHost && !inAll {
		return nil
	}
	if !ofHost {
		host, _ = s.waiting.Crowd(func(*client) bool { return true })
	}
	return s.waiting.First(func(v *client) bool { return v.host == host })
}

var (
	errHungUp = errors.New("too many connections have sent no request")
	errFull   = fmt.Errorf("the limit of %d registered nodes is reached", maxRegistered)
)

// add turns a waiting connection into the registration of n. Registrations are never closed to make
// room for other connections. add returns n's creation, or 0 if the name is taken. Consecutive
// creations differ in every form in which they are sent.
func (s *Server) add(v *client, n *Node) (creation uint32, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, full := s.registered.Full(v.host); full {
		return 0, errFull
	}
	if s.find(n.Name) != nil {
		return 0, nil
	}
	if !s.waiting.Remove(v) {
		return 0, errHungUp
	}
	s.number++
	v.node, v.number = n, s.number
	s.registered.Add(v)
	s.creation++
	if s.creation <= maxOldCreation {
		s.creation = maxOldCreation + 1 // 0 means no creation, and 1 to 3 are those of old nodes
	}
	return s.creation, nil
}

// maxOldCreation is the maximum creation of old nodes, whose pids have two bits for it.
const maxOldCreation = 3

// oldCreation returns a creation from 1 to 3 for nodes of version 5.
func oldCreation(c uint32) uint32 { return c%maxOldCreation + 1 }

// node returns the registered node called name, or nil.
func (s *Server) node(name string) *Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.find(name)
}

// find is node for callers that hold mu.
func (s *Server) find(name string) *Node {
	for _, v := range s.registered.All {
		if v.node.Name == name {
			return v.node
		}
	}
	return nil
}

// nodes returns the registered nodes, the latest first.
func (s *Server) nodes() (all []*Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range slices.Backward(s.registered.All) {
		all = append(all, v.node)
	}
	return all
}

// namesPart is about how many bytes of NAMES_RESP each caller has in memory at a time, because the
// whole may have 280 kB, and callers may not read it.
const namesPart = 4 << 10

// part appends a part of NAMES_RESP: lines of nodes that registered before the registration with the
// given number, the latest first, as the real daemon lists them. It returns the number for the next
// part.
func (s *Server) part(dst []byte, before uint64) ([]byte, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range slices.Backward(s.registered.All) {
		if len(dst) >= namesPart {
			break
		}
		if v.number < before {
			dst = fmt.Appendf(dst, "name %s at port %d\n", v.node.Name, v.node.Port)
			before = v.number
		}
	}
	return dst, before
}

func (s *Server) forget(v *client) {
	defer v.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting.Remove(v)
	s.registered.Remove(v)
}

// isLocal reports whether the peer is on this host: its address is a loopback address or the
// address that it connected to.
func isLocal(conn net.Conn) bool {
	peer, ok1 := conn.RemoteAddr().(*net.TCPAddr)
	own, ok2 := conn.LocalAddr().(*net.TCPAddr)
	return ok1 && ok2 && (peer.IP.IsLoopback() || peer.IP.Equal(own.IP) && peer.Zone == own.Zone)
}

// serve answers the request on a connection. A registration lasts until the connection is closed.
func (s *Server) serve(v *client) {
	v.SetDeadline(time.Now().Add(s.answerTime))
	req, err := readRequest(v)
	if err == nil {
		err = s.answer(v, req)
	}
	switch {
	case errors.Is(err, errFull):
		s.log.Warn("epmd: registration refused", "address", v.RemoteAddr(), "err", err)
	case err != nil:
		s.log.Debug("epmd: connection closed", "address", v.RemoteAddr(), "err", err)
	}
}

func readRequest(r io.Reader) ([]byte, error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint16(head[:])
	if size < 1 || size > maxRequest {
		return nil, fmt.Errorf("request of %d bytes: must be 1 to %d", size, maxRequest)
	}
	req := make([]byte, size)
	_, err := io.ReadFull(r, req)
	return req, err
}

func (s *Server) answer(v *client, req []byte) error {
	switch req[0] {
	case tagAlive2Req:
		if !v.local {
			return errors.New("registration from another host")
		}
		return s.register(v, req)
	case tagPortPlease2Req:
		return s.lookup(v, req)
	case tagNamesReq:
		return s.names(v)
	case tagKillReq:
		// The real daemon's answer while nodes are registered, which epmd -kill reports.
		_, err := io.WriteString(v, "NO")
		return err
	default:
		return fmt.Errorf("request %q is not served", req[0])
	}
}

func (s *Server) register(v *client, req []byte) error {
	var alive alive2Req
	if err := alive.Decode(req); err != nil {
		return err
	}
	n := &alive.node
	resp := alive2Resp{extended: n.Highest >= version6}
	creation, err := s.add(v, n)
	switch {
	case err != nil:
		return err
	case creation == 0:
		resp.result, resp.creation = refused, refusedCreation
		return send(v, &resp)
	case resp.extended:
		resp.creation = creation
	default:
		resp.creation = oldCreation(creation)
	}
	if err := send(v, &resp); err != nil {
		return err
	}
	s.log.Debug("epmd: registered", "node", n.Name, "port", n.Port)
	// A registered node sends nothing more, so receiving a byte also ends the registration.
	v.SetDeadline(time.Time{})
	v.Read(make([]byte, 1))
	s.log.Debug("epmd: unregistered", "node", n.Name)
	return nil
}

// refusedCreation is the creation in a refusal, the same as in the real daemon's refusals.
const refusedCreation = 99

func (s *Server) lookup(conn net.Conn, req []byte) error {
	var please portPlease2Req
	if err := please.Decode(req); err != nil {
		return err
	}
	resp := port2Resp{result: refused}
	if n := s.node(please.name); n != nil {
		resp = port2Resp{node: *n}
	}
	return send(conn, &resp)
}

// names sends NAMES_RESP: this EPMD's port, and a line per node. The reply ends when the connection
// is closed.
func (s *Server) names(conn net.Conn) error {
	port := 0
	if addr, ok := conn.LocalAddr().(*net.TCPAddr); ok {
		port = addr.Port
	}
	resp, before := s.part(binary.BigEndian.AppendUint32(nil, uint32(port)), math.MaxUint64)
	for len(resp) > 0 {
		if _, err := conn.Write(resp); err != nil {
			return err
		}
		resp, before = s.part(resp[:0], before)
	}
	return nil
}

func send(conn net.Conn, m message) error {
	_, err := conn.Write(m.Append(nil))
	return err
}
