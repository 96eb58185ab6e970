package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/flake-go/flake/internal/testenv"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/socket"
)

// fewThreads returns a command that runs flake as a user with at most n threads.
func fewThreads(t *testing.T, n int) string {
	t.Helper()
	needRoot(t)
	testenv.Need(t, "chown", "setpriv", "prlimit")
	user := 20000 + os.Getpid()%1000*40 + n // a user that runs nothing else
	return script(t, `PATH=%q
chown -R %[2]d "${3%%/*/*}"
PATH= exec $(PATH=%[1]q; command -v setpriv) --reuid=%[2]d --regid=%[2]d --clear-groups \
	$(PATH=%[1]q; command -v prlimit) --nproc=%[3]d %[4]q "$@"`,
		os.Getenv("PATH"), user, n, command)
}

// All callers are served, however few threads there are and however many nodes are busy.
func TestFewThreads(t *testing.T) {
	t.Parallel()
	n := startCommand(t, fewThreads(t, socket.ThreadsKept+runtime.GOMAXPROCS(0)+2), "",
		fmt.Sprintf("cookie = %q", cookie))
	var all sync.WaitGroup
	defer all.Wait()
	for range socket.ThreadsKept {
		c, err := n.connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			defer c.Close()
			for range 1000 {
				if _, err := c.Call(t.Context(), "flake", etf.Atom("get")); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
}

// The node refuses to start if it might later run out of threads.
func TestTooFewThreads(t *testing.T) {
	t.Parallel()
	p := spawn(t, freePort(t), fewThreads(t, socket.ThreadsKept-2), "-noinput", "-config", configFile(t, ""))
	if code := p.wait(); code != exitFailure {
		t.Errorf("exit status %d, want %d", code, exitFailure)
	}
	want := fmt.Sprintf("flake: the limit of %d threads is below the %d that the node needs (",
		socket.ThreadsKept-2, socket.ThreadsKept+runtime.GOMAXPROCS(0))
	if !strings.HasPrefix(p.output(), want) {
		t.Errorf("got  %swant %s", p.output(), want)
	}
}
