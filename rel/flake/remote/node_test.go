package remote

import (
	"strings"
	"testing"

	"github.com/flake-go/flake/config"
)

// Whoever dials beyond this machine without TLS is told who gets the digest.
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
