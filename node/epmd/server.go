package epmd

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/flake-go/flake/node/host"
	"github.com/flake-go/flake/node/reserve"
)

// What the server grants its peers. A host is what [host.Of] tells apart: the loopback is none.
const (
	maxRegistered = 1024                  // nodes
	maxWaiting    = 1024                  // connections besides; one more has another hung up on
	maxPerHost    = 256                   // of these, of one host
	maxRequest    = 2048                  // bytes; the largest ALIVE2_REQ has 1288
	answerTime    = 5 * time.Second       // until a request is complete and answered
	grace         = 50 * time.Millisecond // in which nobody is hung up on; the next one waits
	acceptPause   = 100 * time.Millisecond
)

// Server is an EPMD. Only peers on its own host can register; all can look up.
type Server struct {
	log        *slog.Logger
	answerTime time.Duration
	table      table
	maxWaiting int

	mu         sync.Mutex
	closed     bool
	waiting    []*visit           // not answered yet, in the order in which they came
	hosts      map[netip.Addr]int // how many of them, the loopback being one here
	registered map[*visit]bool
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

// NewServer makes a server that logs to log. The first creation it returns follows the clock,
// so that a node which registers anew after a restart of the server gets another one.
func NewServer(log *slog.Logger) *Server {
	return &Server{
		log:        log,
		answerTime: answerTime,
		table:      table{creation: uint32(time.Now().Unix())},
		maxWaiting: reserve.Share(maxWaiting),
		hosts:      make(map[netip.Addr]int),
		registered: make(map[*visit]bool),
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
	for _, v := range s.waiting {
		v.Close()
	}
	for v := range s.registered {
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

// accept serves conn in a goroutine of its own. If there are too many, another has to go.
func (s *Server) accept(conn net.Conn) {
	v := &visit{conn, host.Of(conn.RemoteAddr()), isLocal(conn), time.Now()}
	out, ok := s.enter(v)
	if !ok {
		conn.Close()
		return
	}
	if out != nil {
		s.log.Warn("epmd: connection hung up on: too many have not said what they want", "peer", out.RemoteAddr())
		out.Close()
	}
	s.wg.Go(func() {
		defer s.forget(v)
		s.serve(v)
	})
}

// enter counts a connection in. If there are too many, it returns the one to hang up on,
// when that has had the time to say what it wants.
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
	s.leave(out)
	s.waiting = append(s.waiting, v)
	s.hosts[v.host]++
	return out, true
}

// tooMany finds who has waited the longest of a host that has too many connections, or
// else of the one that has the most if there are too many in all. A peer that means well
// says what it wants at once.
func (s *Server) tooMany(host netip.Addr) (out *visit) {
	if host.IsValid() && s.hosts[host] >= maxPerHost {
		return s.waiting[slices.IndexFunc(s.waiting, func(v *visit) bool { return v.host == host })]
	}
	if len(s.waiting) >= s.maxWaiting {
		for _, v := range s.waiting {
			if out == nil || s.hosts[v.host] > s.hosts[out.host] {
				out = v
			}
		}
	}
	return out
}

// leave counts a connection out of those that wait, and reports whether it did.
func (s *Server) leave(v *visit) bool {
	i := slices.Index(s.waiting, v)
	if i < 0 {
		return false
	}
	s.waiting = slices.Delete(s.waiting, i, i+1)
	if s.hosts[v.host]--; s.hosts[v.host] == 0 {
		delete(s.hosts, v.host)
	}
	return true
}

var (
	errHungUp = errors.New("hung up on")
	errFull   = errors.New("as many nodes are registered as may be")
)

// stay counts a connection among the registrations, which are never hung up on.
func (s *Server) stay(v *visit) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.registered) >= maxRegistered {
		return errFull
	}
	if !s.leave(v) {
		return errHungUp
	}
	s.registered[v] = true
	return nil
}

func (s *Server) forget(v *visit) {
	v.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave(v)
	delete(s.registered, v)
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
