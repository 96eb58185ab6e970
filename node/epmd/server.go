package epmd

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/flake-go/flake/node/host"
	"github.com/flake-go/flake/node/reserve"
)

// Limits of the server. A host is what [host.Of] returns: the loopback is none.
const (
	maxRegistered = 1024                  // nodes
	maxWaiting    = 1024                  // other connections; for one more, another is closed
	maxPerHost    = 256                   // of these, of one host
	maxRequest    = 2048                  // bytes; the largest ALIVE2_REQ has 1288
	answerTime    = 5 * time.Second       // until a request is complete and answered
	grace         = 50 * time.Millisecond // nobody is hung up on within it; the next one waits
)

// Server is an EPMD. Only peers on its own host can register; all can look up.
type Server struct {
	log        *slog.Logger
	answerTime time.Duration
	table      table

	mu         sync.Mutex
	closed     bool
	waiting    host.Line[*visit]  // not answered yet
	hosts      map[netip.Addr]int // of those that wait, while tooMany counts
	registered host.Line[*visit]
	lis        []net.Listener
	wg         sync.WaitGroup
}

// visit is a connection.
type visit struct {
	net.Conn
	host  netip.Addr
	local bool // the peer is on this host
	since time.Time
}

func (v *visit) Host() netip.Addr { return v.host }

// NewServer makes a server that logs to log. The first creation it returns follows the clock,
// so a node that registers again after the server restarts gets a new one.
func NewServer(log *slog.Logger) *Server {
	return &Server{
		log:        log,
		answerTime: answerTime,
		table:      table{creation: uint32(time.Now().Unix())},
		waiting:    host.Line[*visit]{Most: reserve.Share(maxWaiting), PerHost: maxPerHost},
		hosts:      make(map[netip.Addr]int),
		registered: host.Line[*visit]{Most: maxRegistered},
	}
}

// Serve answers the connections of l until that fails or Close closes it; then it returns nil.
// It may be called for several listeners.
func (s *Server) Serve(l net.Listener) error {
	if !s.listen(l) {
		return l.Close()
	}
	defer s.wg.Done()
	for {
		conn, err := l.Accept()
		if err != nil {
			if s.isClosed() {
				err = nil
			}
			return err
		}
		s.accept(conn)
	}
}

// Close ends all registrations and returns when nothing of the server runs any more.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	for _, l := range s.lis {
		l.Close()
	}
	for _, v := range slices.Concat(s.waiting.All, s.registered.All) {
		v.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
	return nil
}

func (s *Server) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

func (s *Server) listen(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.lis = append(s.lis, l)
	s.wg.Add(1)
	return true
}

// accept serves conn on its own goroutine. If there are too many, another must go.
func (s *Server) accept(conn net.Conn) {
	v := &visit{conn, host.Of(conn.RemoteAddr()), isLocal(conn), time.Now()}
	out, ok := s.enter(v)
	if !ok {
		conn.Close()
		return
	}
	if out != nil {
		s.log.Warn("epmd: too many connections have sent no request: the one that has waited longest is closed", "address", out.RemoteAddr())
		out.Close()
	}
	s.wg.Go(func() {
		defer s.forget(v)
		s.serve(v)
	})
}

// enter counts a connection in. If there are too many, it returns the one to close, once
// that has had time to send its request.
func (s *Server) enter(v *visit) (out *visit, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for out = s.tooMany(v.host); out != nil && time.Since(out.since) < grace; out = s.tooMany(v.host) {
		s.mu.Unlock()
		time.Sleep(grace - time.Since(out.since))
		s.mu.Lock()
	}
	if s.closed {
		return nil, false
	}
	s.waiting.Remove(out)
	s.waiting.Add(v)
	return out, true
}

// tooMany finds the longest waiting connection of a host that has too many, or of the host
// with most if there are too many in all. A friendly peer sends its request at once.
func (s *Server) tooMany(host netip.Addr) (out *visit) {
	ofHost, inAll := s.waiting.Full(host)
	if !ofHost && !inAll {
		return nil
	}
	clear(s.hosts)
	for _, v := range s.waiting.All {
		s.hosts[v.host]++
	}
	for _, v := range s.waiting.All {
		if (!ofHost || v.host == host) && (out == nil || s.hosts[v.host] > s.hosts[out.host]) {
			out = v
		}
	}
	return out
}

var (
	errHungUp = errors.New("too many connections had sent no request")
	errFull   = fmt.Errorf("%d nodes are registered, and no more are allowed: stop one of them", maxRegistered)
)

// stay counts a connection as a registration, which is never closed for another.
func (s *Server) stay(v *visit) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, full := s.registered.Full(v.host); full {
		return errFull
	}
	if !s.waiting.Remove(v) {
		return errHungUp
	}
	s.registered.Add(v)
	return nil
}

func (s *Server) forget(v *visit) {
	v.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting.Remove(v)
	s.registered.Remove(v)
}

// isLocal reports whether the peer is on this host: on the loopback, or at the very address it
// called.
func isLocal(conn net.Conn) bool {
	peer, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return false
	}
	if peer.Addr().Unmap().IsLoopback() {
		return true
	}
	own, err := netip.ParseAddrPort(conn.LocalAddr().String())
	return err == nil && own.Addr() == peer.Addr()
}
