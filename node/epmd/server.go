package epmd

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"
)

// What the server grants its peers.
const (
	maxConns    = 1024             // open at once, registrations among them
	maxRemote   = 256              // of them from other hosts, so that these leave room for the own one
	maxRequest  = 2048             // bytes; the largest ALIVE2_REQ has 1288
	idleTimeout = 60 * time.Second // until a request is complete
	acceptPause = 100 * time.Millisecond
)

// Server is an EPMD. Only peers on its own host can register; all can look up.
type Server struct {
	log   *slog.Logger
	idle  time.Duration
	table table

	mu     sync.Mutex
	closed bool
	open   map[net.Conn]bool // value: from another host
	remote int
	lis    []net.Listener
	wg     sync.WaitGroup
}

// NewServer makes a server that logs to log. The first creation it gives follows the clock,
// so that a node which registers anew after a restart of the server gets another one.
func NewServer(log *slog.Logger) *Server {
	return &Server{
		log:   log,
		idle:  idleTimeout,
		table: table{creation: uint32(time.Now().Unix())},
		open:  make(map[net.Conn]bool),
	}
}

// Serve answers the connections of l until Close, which closes l and makes it return nil.
// It may be called for several listeners.
func (s *Server) Serve(l net.Listener) error {
	if !s.listen(l) {
		return l.Close()
	}
	defer s.wg.Done()
	for {
		conn, err := l.Accept()
		switch {
		case err == nil:
			s.accept(conn)
		case s.isClosed():
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		default:
			// Out of descriptors, say: registrations must outlive it.
			s.log.Warn("epmd: accept", "err", err)
			time.Sleep(acceptPause)
		}
	}
}

// Close ends all registrations and returns when nothing of the server runs any more.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	for _, l := range s.lis {
		l.Close()
	}
	for conn := range s.open {
		conn.Close()
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

// accept serves conn in a goroutine of its own, or closes it if there are too many.
func (s *Server) accept(conn net.Conn) {
	local := isLocal(conn)
	s.mu.Lock()
	full := len(s.open) >= maxConns || !local && s.remote >= maxRemote
	ok := !s.closed && !full
	if ok {
		s.open[conn] = !local
		if !local {
			s.remote++
		}
		s.wg.Add(1)
	}
	s.mu.Unlock()
	if !ok {
		conn.Close()
		return
	}
	go func() {
		defer s.wg.Done()
		defer s.forget(conn)
		s.serve(conn, local)
	}()
}

func (s *Server) forget(conn net.Conn) {
	conn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[conn] {
		s.remote--
	}
	delete(s.open, conn)
}

// isLocal tells whether the peer is on this host: on the loopback, or at the very address it
// has called.
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
