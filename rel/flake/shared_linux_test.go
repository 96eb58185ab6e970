package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/flake-go/flake/internal/testenv"
)

// TestSharedFile runs nodes with the same worker and the same file of marks, on a file system whose
// lock has no effect: each sees another lock file, and another network, as on two machines. No id
// repeats: a node whose file another one has written ends its ids, and a node does not start while
// another one makes ids.
func TestSharedFile(t *testing.T) {
	t.Parallel()
	needRoot(t)
	testenv.Need(t, "unshare", "mount", "ip")
	config := configFile(t, fmt.Sprintf("cookie = %q\nepmd = \"off\"\n[http]\nlisten = \"127.0.0.1:0\"", cookie))
	start := func() *process {
		return spawn(t, freePort(t), "unshare", "-m", "-n", "sh", "-c", fmt.Sprintf(
			"ip link set lo up && touch %[1]s && mount --bind $(mktemp -p %[2]s) %[1]s && exec %[3]s -noinput -config %[4]s",
			filepath.Join(filepath.Dir(config), "timestamp.lock"), t.TempDir(), command, config))
	}
	first := start()
	firstURL := first.await("  HTTP ") // it has made no id, so the mark does not move
	second := start()
	secondURL := second.await("  HTTP ")

	const enough = 20_000
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	var made [2][]string
	var callers sync.WaitGroup
	for i, url := range []string{firstURL, secondURL} {
		client := clientIn([]*process{first, second}[i])
		for range 2 {
			callers.Go(func() {
				for ctx.Err() == nil {
					ids, err := idsAt(ctx, client, url+"v1/ids?n=20&base=16")
					mu.Lock()
					made[i] = append(made[i], ids...)
					mu.Unlock()
					if err != nil {
						return
					}
				}
			})
		}
	}
	await(t, "one ends its ids, or both have made many", func() bool {
		mu.Lock()
		defer mu.Unlock()
		ended := strings.Contains(first.output(), "no more ids are made") && len(made[1]) >= enough
		return ended || len(made[0]) >= enough && len(made[1]) >= enough
	})
	if status, body := fetch(t, clientIn(first), firstURL+"readyz", ""); status != http.StatusServiceUnavailable ||
		!strings.Contains(body, "timestamp_not_saved") {
		t.Errorf("/readyz of the first: %d, %s", status, body)
	}
	third := start()
	await(t, "the third starts, or ends", func() bool {
		return strings.Contains(third.output(), "  HTTP ") || strings.Contains(third.output(), "may have run with it")
	})
	cancel()
	callers.Wait()
	if n := strings.Count(first.output(), "no more ids are made"); n != 1 {
		t.Errorf("the first logs its end %d times", n)
	}
	all := slices.Concat(made[:]...)
	slices.Sort(all)
	twice := len(all) - len(slices.Compact(all))
	t.Logf("%d and %d ids, %d twice", len(made[0]), len(made[1]), twice)
	if twice > 0 {
		t.Fatalf("%d of %d ids are there twice", twice, len(all))
	}
	if status := third.wait(); status != exitFailure {
		t.Errorf("the third: exit status %d", status)
	}
}

// clientIn returns a client that connects from within the network of a process.
func clientIn(p *process) *http.Client {
	dial := func(ctx context.Context, network, address string) (c net.Conn, err error) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread() // and never unlocked, so that the thread ends with the goroutine
			var of *os.File
			if of, err = os.Open(fmt.Sprintf("/proc/%d/ns/net", p.cmd.Process.Pid)); err != nil {
				return
			}
			defer of.Close()
			if err = unix.Setns(int(of.Fd()), unix.CLONE_NEWNET); err == nil {
				c, err = new(net.Dialer).DialContext(ctx, network, address)
			}
		}()
		<-done
		return c, err
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
}
