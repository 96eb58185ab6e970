package loadgen

import (
	"testing"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/idserver"
)

// The library's errors are counted under the words that the id server uses for them.
func TestWords(t *testing.T) {
	for _, err := range []error{flake.ErrClockBackwards, flake.ErrTimestampNotSaved, flake.ErrClosed} {
		word := ""
		for _, k := range kinds {
			if k.err == err {
				word = k.word
			}
		}
		if want := idserver.Reason(err); word != want {
			t.Errorf("%v: %q, want %q", err, word, want)
		}
	}
}
