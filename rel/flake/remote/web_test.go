package remote

import (
	"testing"

	"github.com/flake-go/flake/config"
)

// The URL that is made from a configuration works on the node's machine.
func TestURLOf(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:8465": "http://127.0.0.1:8465", "0.0.0.0:1": "http://127.0.0.1:1", ":1": "http://127.0.0.1:1",
		"[::]:1":  "http://127.0.0.1:1",
		"[::1]:1": "http://[::1]:1", "localhost:1": "http://localhost:1", "10.0.0.1:1": "http://10.0.0.1:1",
		"127.0.0.1:0": "", "": "",
	} {
		if got, err := urlOf(config.HTTP{Listen: listen}); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v, want %q", listen, got, err, want)
		}
	}
}

func TestHereOnly(t *testing.T) {
	for host, want := range map[string]bool{"a.Localhost": true, "localhost.localdomain": true, "::1": true, "::": true,
		"10.0.0.1": false, "localhost.example": false} {
		if hereOnly(host) != want {
			t.Errorf("%s: %t", host, !want)
		}
	}
}
