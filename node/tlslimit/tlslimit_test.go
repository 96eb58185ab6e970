package tlslimit

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"testing"

	"github.com/flake-go/flake/internal/certstest"
)

// endless is a connection on which data always arrives.
type endless struct{ net.Conn }

func (endless) Read(b []byte) (int, error) { return len(b), nil }

func TestRead(t *testing.T) {
	c := New(endless{})
	for range 2 {
		n, err := io.Copy(io.Discard, io.LimitReader(c, 1<<20))
		if n != MaxRaw || !errors.Is(err, errTooLong) {
			t.Errorf("%d bytes, %v; want %d", n, err, MaxRaw)
		}
		c.Used()
	}
}

// A handshake with a chain of certificates succeeds; a much longer handshake fails.
func TestHandshake(t *testing.T) {
	ca := certstest.NewCA(t, "ca")
	for name, tt := range map[string]struct {
		protocols, certificates int // counts; 100 bytes per protocol, about 500 per certificate
		want                    error
	}{
		"usual":             {1, 1, nil},
		"long chain":        {1, 20, nil},
		"long hello":        {300, 1, errTooLong},
		"many certificates": {1, 120, errTooLong},
	} {
		t.Run(name, func(t *testing.T) {
			server, client := ca.Client("server", "localhost"), ca.Client("client", "localhost")
			server.ClientAuth, server.ClientCAs = tls.RequireAndVerifyClientCert, ca.Pool
			client.ServerName = "localhost"
			client.NextProtos = slices.Repeat([]string{string(make([]byte, 100))}, tt.protocols)
			chain := &client.Certificates[0].Certificate
			*chain = slices.Repeat(*chain, tt.certificates)
			ours, theirs := net.Pipe()
			go func() {
				c := tls.Client(theirs, client)
				c.Handshake()
				io.Copy(io.Discard, c)
				theirs.Close()
			}()
			if err := tls.Server(New(ours), server).Handshake(); !errors.Is(err, tt.want) {
				t.Errorf("Handshake returned %v, want %v", err, tt.want)
			}
			ours.Close()
		})
	}
}
