package node

import (
	"os"
	"testing"
)

// A caller that is not connected yet uses one descriptor of the node.
func TestHandshakeFiles(t *testing.T) {
	const callers = 10
	files := func() int {
		all, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	n := start(t, Options{})
	dial(t, n, "a@127.0.0.1").get() // files that are opened only once are open now
	before := files()
	for range callers {
		dialRaw(t, n)
	}
	await(t, "all are counted", func() bool { return atGate(n) == callers })
	if got := files() - before; got != 2*callers {
		t.Errorf("%d callers use %d descriptors at both ends, want 2 each", callers, got)
	}
}
