package clienttest_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/client/clienttest"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/flake/snowflake"
)

// Ids ascend as documented, whichever methods return them.
func TestOrder(t *testing.T) {
	node := clienttest.New()
	defer node.Close()
	ids := client.NewIDs[flake.ID](node, "flake")
	leased, err := ids.Leased(client.LeaseOptions{Size: 10})
	if err != nil {
		t.Fatal(err)
	}
	defer leased.Close()
	var mu sync.Mutex
	seen := make(map[flake.ID]bool)
	take := func(next func(context.Context) (flake.ID, error)) {
		var last flake.ID
		for range 1000 {
			id, err := next(t.Context())
			mu.Lock()
			if err != nil || seen[id] || id.Compare(last) <= 0 {
				t.Errorf("%v after %v, seen before: %t, %v", id, last, seen[id], err)
			}
			seen[id], last = true, id
			mu.Unlock()
		}
	}
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() { take(ids.Next) })
		callers.Go(func() { take(leased.Next) })
	}
	callers.Wait()
	many := make([]flake.ID, 100_000)
	if n, err := ids.NextN(t.Context(), many); err != nil || n != len(many) || seen[many[0]] {
		t.Errorf("%d ids, %v", n, err)
	}
	if other, err := client.NewIDs[flake.ID](clienttest.New(), "flake").Next(t.Context()); err != nil ||
		other.Worker() == many[0].Worker() {
		t.Errorf("another node also has the worker %v, %v", other.Worker(), err)
	}
}

func TestFailures(t *testing.T) {
	node := clienttest.New()
	ids := client.NewIDs[flake.ID](node, "flake")
	get := func() error {
		_, err := ids.Next(t.Context())
		return err
	}
	if err := get(); err != nil {
		t.Fatal(err)
	}
	node.Step(-time.Hour)
	if err := get(); !errors.Is(err, flake.ErrClockBackwards) {
		t.Errorf("after the clock is set back: %v", err)
	}
	node.Step(2 * time.Hour)
	id, err := ids.Next(t.Context())
	if err != nil || time.Until(id.Time()) < time.Minute {
		t.Errorf("after the clock is set ahead: an id from %v, %v", id.Time(), err)
	}
	for _, want := range []error{errors.New("why"), client.ErrBusy, client.ErrLost, flake.ErrTimestampNotSaved} {
		node.Fail(want)
		if err := get(); !errors.Is(err, want) || errors.Is(err, client.ErrLost) != (want == client.ErrLost) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	node.Fail(nil)
	if err := get(); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ids.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("with a canceled context: %v", err)
	}
	if _, err := ids.Leased(client.LeaseOptions{Size: -1}); !errors.Is(err, client.ErrBadArgument) {
		t.Error(err)
	}
	if _, _, err := ids.Span(t.Context(), time.Now(), time.Unix(0, 0)); !errors.Is(err, client.ErrBadArgument) {
		t.Error(err)
	}
	node.Close()
	if err := get(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a call after Close: %v", err)
	}
}

func TestAdd(t *testing.T) {
	orders, err := snowflake.Twitter.NewGenerator(7, snowflake.Options{})
	if err != nil {
		t.Fatal(err)
	}
	node := clienttest.New()
	node.Add("orders", formats.Snowflake(orders))
	id, err := client.NewIDs[snowflake.ID](node, "orders").Next(t.Context())
	if parts, err2 := snowflake.Twitter.Decompose(id); err != nil || err2 != nil || parts.Machine != 7 {
		t.Errorf("%+v, %v, %v", parts, err, err2)
	}
	if _, err := client.NewIDs[flake.ID](node, "flake").Next(t.Context()); err != nil {
		t.Error(err)
	}
}
