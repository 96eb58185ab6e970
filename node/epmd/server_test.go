package epmd

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// Names returns the lines of an EPMD's NAMES_RESP.
func Names(ctx context.Context, addr string) ([]string, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if _, err := conn.Write([]byte{0, 1, tagNamesReq}); err != nil {
		return nil, err
	}
	resp, err := io.ReadAll(conn)
	if err != nil {
		return nil, err
	}
	port := conn.RemoteAddr().(*net.TCPAddr).Port
	if len(resp) < 4 || int(binary.BigEndian.Uint32(resp)) != port {
		return nil, fmt.Errorf("%q does not begin with port %d", resp, port)
	}
	return slices.Collect(strings.Lines(string(resp[4:]))), nil
}

func TestRegisterLookupNames(t *testing.T) {
	noLeak(t)
	ctx := testContext(t)
	_, addr := startServer(t, anyPort, nil)
	reg, err := Register(ctx, addr, Node{Name: "flake", Port: 4711, Extra: []byte("extra")})
	if err != nil {
		t.Fatal(err)
	}
	defer reg.Close()
	n, err := Lookup(ctx, addr, "flake")
	if err != nil || n.Port != 4711 || n.Type != Normal || n.Highest != 6 || n.Lowest != 5 || string(n.Extra) != "extra" {
		t.Errorf("Lookup = %+v, %v", n, err)
	}
	long := strings.Repeat("é", maxName/2) + "n" // the longest allowed, as are its extra bytes
	other, err := Register(ctx, addr, Node{Name: long, Port: 1, Type: Hidden, Extra: make([]byte, maxExtra)})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if n, err := Lookup(ctx, addr, long); err != nil || n.Name != long || n.Type != Hidden || len(n.Extra) != maxExtra {
		t.Errorf("Lookup = %+v, %v", n, err)
	}
	names, err := Names(ctx, addr)
	if err != nil || !slices.Equal(names, []string{"name " + long + " at port 1\n", "name flake at port 4711\n"}) {
		t.Errorf("Names = %v, %v", names, err)
	}
	_, err = Register(ctx, addr, Node{Name: "flake", Port: 2})
	want := `epmd: register "flake" at ` + addr + ": a node of that name is already registered"
	if !errors.Is(err, ErrNameTaken) || err.Error() != want {
		t.Errorf("second registration: %v, want %s", err, want)
	}
	reg.Close()
	await(t, "the name is free", func() bool {
		_, err := Lookup(ctx, addr, "flake")
		return errors.Is(err, ErrNotFound)
	})
	again, err := Register(ctx, addr, Node{Name: "flake", Port: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
}

func TestServerCloseEndsRegistrations(t *testing.T) {
	noLeak(t)
	s, addr := startServer(t, anyPort, nil)
	reg, err := Register(testContext(t), addr, Node{Name: "flake", Port: 1})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	ctx := testContext(t)
	if awaitEnd(ctx, reg); ctx.Err() != nil {
		t.Error("the registration has not ended")
	}
	if _, err := net.Dial("tcp", addr); err == nil {
		t.Error("the port is open")
	}
}

func TestCreationFitsTheVersion(t *testing.T) {
	_, addr := startServer(t, anyPort, func(s *Server) { s.creation = ^uint32(0) - 1 })
	for _, tt := range []struct{ req, want string }{
		{"x\x00\x01M\x00\x00\x06\x00\x05\x00\x01a\x00\x00", "v\x00\xff\xff\xff\xff"},
		{"x\x00\x01M\x00\x00\x06\x00\x05\x00\x01b\x00\x00", "v\x00\x00\x00\x00\x04"},
		{"x\x00\x01M\x00\x00\x05\x00\x05\x00\x01c\x00\x00", "y\x00\x00\x03"},
		{"x\x00\x01M\x00\x00\x05\x00\x05\x00\x01d\x00\x00", "y\x00\x00\x01"},
		{"x\x00\x01M\x00\x00\x05\x00\x05\x00\x01a\x00\x00", "y\x01\x00\x63"},
		{"x\x00\x01M\x00\x00\x06\x00\x05\x00\x01a\x00\x00", "v\x01\x00\x00\x00\x63"},
	} {
		conn := dialTest(t, addr)
		if _, err := io.WriteString(conn, frame(tt.req)); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(tt.want))
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != tt.want {
			t.Errorf("%q: %q, %v, want %q", tt.req, got, err, tt.want)
		}
	}
}

func TestBadRequestsCloseTheConnection(t *testing.T) {
	noLeak(t)
	_, addr := startServer(t, anyPort, nil)
	for _, tt := range []struct{ req, want string }{
		{"\x00\x00", ""},
		{"\xff\xff", ""},
		{frame("?"), ""},
		{frame("a\x12\x67flake"), ""}, // ALIVE of R2
		{frame("d"), ""},
		{frame("sflake"), ""},
		{frame("k"), "NO"},
		{frame("z"), ""},
		{frame("z\xff"), ""},
		{frame("znobody"), "w\x01"},
		{frame("x\x00\x01M\x00\x00\x06\x00\x05\x00\x09a\x00\x00"), ""},
		{frame("x\x00\x01M\x00\x00\x06\x00\x05\x00\x00\x00\x00"), ""},
	} {
		if got := talk(t, addr, tt.req); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.req, got, tt.want)
		}
	}
	if _, err := Names(testContext(t), addr); err != nil {
		t.Errorf("the server has ended: %v", err)
	}
}

func TestByteEndsRegistration(t *testing.T) {
	s, addr := startServer(t, anyPort, nil)
	if got := talk(t, addr,
		frame("x\x00\x01M\x00\x00\x06\x00\x05\x00\x01a\x00\x00")+"?"); !strings.HasPrefix(got, "v\x00") {
		t.Errorf("answer %q", got)
	}
	await(t, "unregistered", func() bool { return len(s.nodes()) == 0 })
}

func TestIdlePeerIsClosed(t *testing.T) {
	_, addr := startServer(t, anyPort, func(s *Server) { s.answerTime = time.Millisecond })
	if got := talk(t, addr, "\x00"); got != "" {
		t.Errorf("answer %q", got)
	}
}

// farListener gives the peer of each connection the next address from hosts.
type farListener struct {
	net.Listener
	hosts func() net.IP
}

type farConn struct {
	net.Conn
	host net.IP
}

func (l farListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return farConn{conn, l.hosts()}, nil
}

func (c farConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: c.host, Port: 9} }

// serveFar starts another listener of s, whose callers appear to be on other hosts. It returns the
// listener's address.
func serveFar(t *testing.T, s *Server, hosts func() net.IP) string {
	t.Helper()
	l, err := net.Listen("tcp", anyPort)
	if err != nil {
		t.Fatal(err)
	}
	s.Serve(farListener{l, hosts})
	return l.Addr().String()
}

func oneHost(last byte) func() net.IP {
	return func() net.IP { return net.IPv4(192, 0, 2, last) }
}

func TestOtherHostsMayOnlyLookUp(t *testing.T) {
	noLeak(t)
	ctx := testContext(t)
	s, near := startServer(t, anyPort, nil)
	far := serveFar(t, s, oneHost(9))
	if _, err := Register(ctx, far, Node{Name: "far", Port: 1}); !errors.Is(err, io.EOF) {
		t.Errorf("Register: %v, want the connection closed", err)
	}
	reg, err := Register(ctx, near, Node{Name: "near", Port: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer reg.Close()
	if n, err := Lookup(ctx, far, "near"); err != nil || n.Port != 1 {
		t.Errorf("Lookup = %+v, %v", n, err)
	}
}

// Silent connections, however many and from any hosts, neither keep other peers from being answered
// nor end registrations.
func TestSilentPeers(t *testing.T) {
	for name, test := range map[string]struct {
		hosts func() net.IP // nil means this host
		kept  int           // connections that are not closed
	}{
		"of this host":     {nil, maxWaiting},
		"of another host":  {oneHost(9), maxPerHost},
		"of an IPv6 /64":   {manyHosts("2001:db8::", 15), maxPerHost},
		"of hosts of IPv4": {manyHosts("198.18.0.0", 3), maxWaiting},
		"of hosts of IPv6": {manyHosts("2001:db8::", 7), maxWaiting},
	} {
		t.Run(name, func(t *testing.T) {
			noLeak(t)
			ctx := testContext(t)
			s, near := startServer(t, anyPort, func(s *Server) { s.answerTime = testPatience })
			far, silent := serveFar(t, s, oneHost(8)), near
			if test.hosts != nil {
				silent = serveFar(t, s, test.hosts)
			}
			reg, err := Register(ctx, near, Node{Name: "first", Port: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer reg.Close()
			var conns []net.Conn
			for range test.kept + 100 {
				conns = append(conns, dialTest(t, silent))
			}
			for i, conn := range conns[:100] {
				if got, err := io.ReadAll(conn); len(got) > 0 || err != nil {
					t.Fatalf("silent connection %d: %q, %v", i, got, err)
				}
			}
			for from, addr := range map[string]string{"here": near, "another host": far, "the same host": silent} {
				if _, err := Lookup(ctx, addr, "first"); err != nil {
					t.Errorf("from %s: %v", from, err)
				}
			}
			second, err := Register(ctx, near, Node{Name: "second", Port: 2})
			if err != nil {
				t.Fatal(err)
			}
			second.Close()
		})
	}
}

// manyHosts returns a function that returns a different address on each call: it counts in the
// given byte and the byte before it.
func manyHosts(first string, octet int) func() net.IP {
	ip := net.ParseIP(first)
	if four := ip.To4(); four != nil {
		ip = four
	}
	return func() net.IP {
		if ip[octet]++; ip[octet] == 0 {
			ip[octet-1]++
		}
		return slices.Clone(ip)
	}
}

// At the limit of registered nodes, registrations are refused, but lookups are answered.
func TestTooManyRegistered(t *testing.T) {
	noLeak(t)
	ctx := testContext(t)
	_, addr := startServer(t, anyPort, nil)
	var last net.Conn
	for i := range maxRegistered {
		reg, err := Register(ctx, addr, Node{Name: fmt.Sprint("node", i), Port: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer reg.Close()
		last = reg
	}
	if _, err := Register(ctx, addr, Node{Name: "more", Port: 1}); !errors.Is(err, io.EOF) {
		t.Errorf("beyond the limit: %v", err)
	}
	if names, err := Names(ctx, addr); err != nil || len(names) != maxRegistered {
		t.Errorf("%d names, %v", len(names), err)
	}
	last.Close()
	await(t, "there is room again", func() bool {
		reg, err := Register(ctx, addr, Node{Name: "more", Port: 1})
		if err == nil {
			reg.Close()
		}
		return err == nil
	})
}

// Callers that ask for the longest list of names, and do not read it, take little memory.
func TestNamesNotRead(t *testing.T) {
	const callers, most = 500, 10 << 20
	s := NewServer(quiet)
	defer s.Close()
	for i := range maxRegistered {
		v := &client{}
		s.waiting.Add(v)
		if _, err := s.add(v, &Node{Name: fmt.Sprintf("%0*d", maxName, i)}); err != nil {
			t.Fatal(err)
		}
		v.Conn, _ = net.Pipe()
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range callers {
		peer, conn := net.Pipe()
		defer peer.Close()
		s.accept(conn)
		if _, err := peer.Write([]byte{0, 1, tagNamesReq}); err != nil {
			t.Fatal(err)
		}
		if _, err := peer.Read(make([]byte, 1)); err != nil { // the server now waits for the rest to be read
			t.Fatal(err)
		}
	}
	runtime.GC()
	if runtime.ReadMemStats(&after); after.HeapAlloc > before.HeapAlloc+most {
		t.Errorf("%d callers take %d bytes", callers, after.HeapAlloc-before.HeapAlloc)
	}
}

func FuzzServer(f *testing.F) {
	for _, tt := range messages {
		f.Add([]byte(frame(tt.wire)))
	}
	f.Fuzz(func(t *testing.T, noise []byte) {
		s := NewServer(quiet)
		peer, conn := net.Pipe()
		go func() {
			peer.Write(noise)
			peer.Close()
		}()
		go io.Copy(io.Discard, peer)
		v := &client{Conn: conn, local: true}
		s.enter(v)
		s.serve(v)
		s.forget(v)
		if names := s.nodes(); len(names) > 0 {
			t.Errorf("still registered: %v", names)
		}
	})
}
