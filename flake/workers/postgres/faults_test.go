//go:build unix

package postgres

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/postgres/postgrestest"
	"github.com/flake-go/flake/flake/workers/storetest"
)

var failovers = flag.Int("failovers", 2, "how many failovers TestFailovers causes")

// fleet is nodes that claim numbers, and the times for which they could make ids.
type fleet struct {
	t     *testing.T
	addrs atomic.Pointer[string]

	mu       sync.Mutex
	ids      map[id]*workers.Claim // by whom an id was made
	repeated int
	claims   map[*workers.Claim]bool
}

// id is a number and a millisecond. A node can make many ids in it, but no other node may make one.
type id struct{ number, milli uint64 }

// node is one node: while it lives, it keeps a number. It starts again and again, as another node
// with the same name or with none.
func (f *fleet) node(ctx context.Context, name string, life func() time.Duration, made *atomic.Int64) {
	for ctx.Err() == nil {
		o, err := workers.Open(ctx, workers.Config{Store: open(f.t, Config{URL: url(*f.addrs.Load())}), Prefix: "flake",
			First: 1, Last: 12, Hold: hold, Name: name, Wait: true})
		if err != nil {
			if ctx.Err() == nil {
				f.t.Errorf("%s: %v", name, err)
			}
			return
		}
		end := time.Now().Add(life())
		for ctx.Err() == nil && time.Now().Before(end) {
			f.make(o, made)
			time.Sleep(time.Millisecond)
		}
		// A crash: the number is not returned, and the owner takes no further step.
		dead, cancel := context.WithCancel(ctx)
		cancel()
		o.Close(dead)
	}
}

// make makes the ids that the node may make now.
func (f *fleet) make(o *workers.Owner, made *atomic.Int64) {
	c, _ := o.Claim()
	now := uint64(time.Now().UnixMilli())
	if now <= c.After() || now > c.Milli() || c.IsLost() && !c.Clean() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.claims[c] = true
	i := id{c.Number(), now}
	if other := f.ids[i]; other != nil && other != c {
		f.repeated++
		f.t.Errorf("two claims of number %d have the time %d", i.number, i.milli)
	}
	f.ids[i] = c
	made.Add(1)
}

const hold = 3 * time.Second

// A primary is killed again and again, and its standby, which has not received its last commits,
// is promoted. No id repeats, although marks and claims are lost.
func TestFailovers(t *testing.T) {
	primary := postgrestest.Start(t)
	f := &fleet{t: t, ids: map[id]*workers.Claim{}, claims: map[*workers.Claim]bool{}}
	f.addrs.Store(&primary.Addr)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	counter := open(t, Config{URL: primary.URL("postgres")})
	if err := swap(ctx, counter); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var standby *postgrestest.Server
	var link *storetest.Proxy
	follow := func() {
		link = primary.Proxy()
		standby = primary.StandbyAt(link.Addrs[0])
		addrs := primary.Addr + "," + standby.Addr
		f.addrs.Store(&addrs)
	}
	follow()
	// Nodes that live long know only the first two servers, whose addresses are kept.
	made := map[string]*atomic.Int64{}
	for i := range 4 {
		name, n := fmt.Sprint("node", i), new(atomic.Int64)
		made[name] = n
		wg.Go(func() { f.node(ctx, name, func() time.Duration { return time.Hour }, n) })
	}
	short := new(atomic.Int64)
	for i := range 3 { // those that come and go
		wg.Go(func() {
			f.node(ctx, fmt.Sprint("short", i), func() time.Duration { return 2 * time.Second }, short)
		})
	}
	goOn := func(what string) {
		t.Helper()
		for name, n := range maps.All(made) {
			for start, before := time.Now(), n.Load(); n.Load() == before; time.Sleep(time.Millisecond) {
				if time.Since(start) > patience {
					t.Fatalf("%s: %s makes no ids", what, name)
				}
			}
		}
	}
	lost := 0
	for n := range *failovers {
		goOn("before the failover")
		link.Cut()
		// Claims and marks that the standby does not receive.
		written := 0
		key := fmt.Sprintf("lost/n/%012x", n)
		f.mu.Lock()
		claims := len(f.claims)
		f.mu.Unlock()
		for more := 0; written < 10 || more == 0; {
			ok, err := counter.Swap(ctx, nil, map[string]string{key: fmt.Sprint(written + 1)})
			if err != nil {
				if _, noticed := counter.Restored(); !noticed {
					t.Fatal(err)
				}
				continue
			}
			if ok {
				written++
			}
			f.mu.Lock()
			more = len(f.claims) - claims
			f.mu.Unlock()
			time.Sleep(20 * time.Millisecond)
		}
		primary.Kill()
		standby.Promote()
		dead := primary
		primary = standby
		counter = open(t, Config{URL: primary.URL("postgres")})
		for start := time.Now(); ; {
			texts, err := counter.Get(ctx, key)
			if err == nil {
				have := 0
				fmt.Sscan(texts[0], &have)
				lost += written - have
				break
			}
			if time.Since(start) > patience {
				t.Fatal(err)
			}
		}
		goOn("after the failover")
		link = primary.Proxy()
		dead.Follow(primary, link.Addrs[0])
		standby = dead
	}
	goOn("at the end")
	stop()
	wg.Wait()
	t.Logf("%d failovers lost %d writes of a counter; %d claims, %d ids by long-lived nodes, %d by others, %d repeated",
		*failovers, lost, len(f.claims), sum(made), short.Load(), f.repeated)
	if lost == 0 {
		t.Error("no write was lost")
	}
}

func sum(all map[string]*atomic.Int64) (n int64) {
	for _, one := range all {
		n += one.Load()
	}
	return n
}
