//go:build unix

package postgres

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/postgres/postgrestest"
	"github.com/flake-go/flake/flake/workers/storetest"
)

var contend = flag.Duration("contract.contend", 0, "how long two clients of TestContract write the same keys")

func open(t *testing.T, c Config) *Store {
	t.Helper()
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func limited(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// url returns the URL of the database postgres at addresses.
func url(addrs string) string {
	return fmt.Sprintf("postgres://postgres@%s/postgres?sslmode=disable", addrs)
}

func TestContract(t *testing.T) {
	// Without what each transaction sets, a kill would lose commits, and writers would fail each
	// other.
	server := postgrestest.Start(t, "synchronous_commit=off", "wal_writer_delay=10s", "wal_writer_flush_after=1GB")
	server.SQL(`CREATE ROLE nothing LOGIN;
		ALTER DATABASE postgres SET default_transaction_isolation = serializable;
		ALTER DATABASE postgres SET standard_conforming_strings = off;
		CREATE SCHEMA before;
		CREATE FUNCTION before.pg_control_system(OUT system_identifier bigint) RETURN 1;
		ALTER DATABASE postgres SET search_path = before, pg_catalog`)
	config := Config{URL: server.URL("postgres")}
	saved := server.Folder("saved")
	storetest.Test(t, storetest.Config{
		Open: func() workers.Store { return open(t, config) },
		Link: func() (workers.Store, storetest.Link) {
			p := server.Proxy()
			return open(t, Config{URL: url(p.Addrs[0])}), p
		},
		Refused: map[string]func(context.Context) error{
			"no role": func(ctx context.Context) error {
				_, err := open(t, Config{URL: server.URL("nobody")}).List(ctx, "p/")
				return err
			},
			"no grant": func(ctx context.Context) error {
				_, err := open(t, Config{URL: server.URL("nothing")}).List(ctx, "p/")
				return err
			},
		},
		Kill: func() {
			server.Kill()
			server.Start()
		},
		Restore: func(change func()) {
			server.Copy(saved)
			change()
			server.Put(saved)
		},
		Contend: *contend,
	})
}
