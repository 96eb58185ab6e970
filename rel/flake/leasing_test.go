package main

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/flake"
)

// TestLeasingKilled kills the command with SIGKILL at random moments while a Go client
// leases ids ahead and takes others singly, and restarts it. No id may repeat, and each
// caller's ids must ascend.
func TestLeasingKilled(t *testing.T) {
	t.Parallel()
	port, addr := freePort(t), "127.0.0.1:"+freePort(t)
	config := configFile(t, fmt.Sprintf("cookie = %q\nlisten = %q\nepmd = \"off\"", cookie, addr))
	node := client.NewNode(nodeName, client.Dialer{Cookie: cookie, Addr: addr})
	defer node.Close()
	ids := client.NewIDs[flake.ID](node, "flake")
	leased, err := ids.Leased(client.LeaseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer leased.Close()

	var (
		taken   atomic.Int64
		stop    atomic.Bool
		callers sync.WaitGroup
		all     [8]struct{ leased, got []flake.ID }
	)
	for i := range all {
		callers.Go(func() {
			mine := &all[i]
			for !stop.Load() {
				for range 10 {
					if id, err := leased.Next(t.Context()); err == nil {
						mine.leased = append(mine.leased, id)
					}
				}
				if id, err := ids.Next(t.Context()); err == nil {
					mine.got = append(mine.got, id)
					taken.Add(1)
				}
			}
		})
	}
	for range max(*kills/3, 1) {
		n := spawn(t, port, command, "-noinput", "-config", config)
		before := taken.Load()
		await(t, "callers get ids", func() bool { return taken.Load() > before })
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond) // kill at a random moment
		n.signal(syscall.SIGKILL)
		n.wait()
	}
	stop.Store(true)
	leased.Close()
	node.Close()
	callers.Wait()

	seen := make(map[flake.ID]bool)
	for i := range all {
		for _, mine := range [][]flake.ID{all[i].leased, all[i].got} {
			for j, id := range mine {
				if seen[id] {
					t.Fatalf("%v was returned twice", id)
				}
				if seen[id] = true; j > 0 && id.Compare(mine[j-1]) <= 0 {
					t.Fatalf("%v was returned after %v", id, mine[j-1])
				}
			}
		}
	}
	t.Logf("%d ids", len(seen))
}
