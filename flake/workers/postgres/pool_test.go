//go:build unix

package postgres

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/postgres/postgrestest"
	"github.com/flake-go/flake/flake/workers/storetest"
	"github.com/flake-go/flake/internal/testenv"
)

// The contract holds through PgBouncer, which gives each transaction any of two connections of the
// server.
func TestPgBouncer(t *testing.T) {
	testenv.Need(t, "pgbouncer")
	server := postgrestest.Start(t)
	addr := server.Bouncer("pool_mode = transaction", "default_pool_size = 2")
	hurt := func() { // as another client may leave a connection of the pool
		psql := exec.Command("psql", "-XqAt", url(addr), "-c", "SET search_path = none; SET synchronous_commit = off; "+
			"SET default_transaction_isolation = serializable; SET statement_timeout = 60000")
		if out, err := psql.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	hurt()
	storetest.Test(t, storetest.Config{
		Open: func() workers.Store { hurt(); return open(t, Config{URL: url(addr)}) },
		Link: func() (workers.Store, storetest.Link) {
			p := postgrestest.NewProxy(t).To(nil, addr)
			return open(t, Config{URL: url(p.Addrs[0])}), p
		},
	})
	server.Await("SELECT count(*) <= 2 FROM pg_stat_activity WHERE backend_type = 'client backend' "+
		"AND pid <> pg_backend_pid()", "t")
}

// While the disk is full, calls fail and are not refused; no acknowledged write is lost.
func TestFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		testenv.Missing(t, errors.New("to mount a small disk needs root"))
	}
	server := postgrestest.StartSmall(t, "160m")
	s := open(t, Config{URL: server.URL("postgres")})
	ctx := limited(t, patience)
	values := map[string]string{}
	var last string // the key of the last write, which may have happened or not
	write := func(n int) error {
		last = fmt.Sprintf("p/n/%012x", n%20)
		value := fmt.Sprint(n)
		ok, err := s.Swap(ctx, map[string]string{last: values[last]}, map[string]string{last: value})
		switch {
		case ok:
			values[last] = value
		case err == nil:
			t.Fatalf("%s is not %q", last, values[last])
		}
		return err
	}
	for n := range 50 {
		if err := write(n); err != nil {
			t.Fatal(err)
		}
	}
	ballast := filepath.Join(server.Dir, "ballast")
	exec.Command("dd", "if=/dev/zero", "of="+ballast, "bs=8k").Run()
	var failed error
	for n := 100; failed == nil && ctx.Err() == nil; n++ {
		server.Try("SELECT pg_switch_wal()") // needs a new file
		failed = write(n)
	}
	t.Log(failed)
	if ctx.Err() != nil || errors.Is(failed, workers.ErrRefused) {
		t.Fatal(failed, ctx.Err())
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	server.Start()
	var all map[string]string
	for err := errors.New(""); err != nil; all, err = s.List(ctx, "p/n/") {
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
	wantSign(t, s, "")
	all[last] = values[last]
	if !maps.Equal(all, values) {
		t.Errorf("the store has %q, not %q", all, values)
	}
}
