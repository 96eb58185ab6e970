package remote

import (
	"strings"
	"testing"

	"github.com/flake-go/flake/config"
)

// Without EPMD, only a fixed port can be dialed.
func TestDialer(t *testing.T) {
	for listen, ok := range map[string]bool{"": false, "127.0.0.1:0": false, "127.0.0.1:4370": true} {
		_, err := Dialer(config.Node{Name: "flake@127.0.0.1", EPMD: "off", Listen: listen})
		if (err == nil) != ok {
			t.Errorf("%q: %v", listen, err)
		}
	}
}

// Dialing another machine without TLS prints a warning that says who gets the digest.
func TestSayDigest(t *testing.T) {
	for _, tt := range []struct {
		name      string
		tls, says bool
	}{
		{"flake@127.0.0.1", false, false},
		{"flake@localhost", false, false},
		{"flake@10.0.0.1", true, false},
		{"flake@10.0.0.1", false, true},
	} {
		var said strings.Builder
		SayDigest(&said, config.Node{Name: tt.name, TLS: config.TLS{On: tt.tls}})
		if (said.Len() > 0) != tt.says {
			t.Errorf("%+v: %q", tt, said.String())
		}
	}
}
