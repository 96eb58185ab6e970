//go:build unix

package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/postgres/postgrestest"
	"github.com/flake-go/flake/internal/certstest"
)

// patience is how long a server may take on a busy machine.
const patience = 5 * time.Minute

func list(ctx context.Context, s *Store) error { _, err := s.List(ctx, "p/"); return err }
func swap(ctx context.Context, s *Store) error {
	_, err := s.Swap(ctx, nil, map[string]string{"p/a": "1"})
	return err
}

func TestNew(t *testing.T) {
	for table, ok := range map[string]bool{
		"": true, "a.b": true, `A".B"`: true, "a": false, "a.": false, ".b": false, "a.b.c": false, "a.b\n": false,
		"a." + strings.Repeat("b", 64): false,
	} {
		if _, err := New(Config{Table: table}); (err == nil) != ok {
			t.Errorf("%q: %v", table, err)
		}
	}
	if _, err := New(Config{URL: "postgres://a b:c"}); err == nil {
		t.Error("an invalid URL is accepted")
	}
}

// The least grants suffice for all calls. An error names each that is missing.
func TestGrants(t *testing.T) {
	server := postgrestest.Start(t)
	server.SQL(`CREATE ROLE plain LOGIN; CREATE ROLE "Odd ""role" LOGIN; CREATE SCHEMA ids;
		REVOKE ALL ON SCHEMA ids FROM PUBLIC`)
	ctx := limited(t, patience)
	for _, role := range []string{"plain", `Odd%20%22role`} {
		s := open(t, Config{URL: server.URL(role), Table: "ids.numbers"})
		quoted := map[string]string{"plain": "plain"}[role]
		if quoted == "" {
			quoted = `"Odd ""role"`
		}
		for range 2 { // a grant at a time, as the errors say
			for grants := 0; ; grants++ {
				err := errors.Join(list(ctx, s), swap(ctx, s))
				if err == nil {
					break
				}
				_, grant, _ := strings.Cut(err.Error(), "what is missing: ")
				grant, _, _ = strings.Cut(grant, "\n")
				if !errors.Is(err, workers.ErrRefused) || grants > 2 || !strings.HasPrefix(grant, "GRANT ") ||
					!strings.Contains(grant, quoted) {
					t.Fatal(err)
				}
				server.SQL(grant)
			}
			server.SQL(`DROP TABLE ids.numbers; REVOKE CREATE ON SCHEMA ids FROM PUBLIC, ` + quoted + `;
				CREATE TABLE ids.numbers (key text COLLATE "C" PRIMARY KEY, value text NOT NULL)`)
			s = open(t, Config{URL: server.URL(role), Table: "ids.numbers"})
		}
		if id, err := s.Cluster(ctx); err != nil || len(s.Clocks(ctx, func() uint64 { return 0 })) != 1 {
			t.Error(id, err)
		}
		server.SQL("DROP TABLE ids.numbers")
	}
}

// A store that only peeks makes no table. A missing one counts as empty.
func TestPeek(t *testing.T) {
	server := postgrestest.Start(t)
	ctx := limited(t, patience)
	s := open(t, Config{URL: server.URL("postgres"), Peek: true})
	all, err := s.List(ctx, "p/")
	texts, getErr := s.Get(ctx, "p/a", "p/b")
	id, idErr := s.Cluster(ctx)
	err = errors.Join(err, getErr, idErr)
	if err != nil || len(all) > 0 || !slices.Equal(texts, []string{"", ""}) || id == "" {
		t.Errorf("%q, %q, %q, %v", all, texts, id, err)
	}
	if err := swap(ctx, s); err == nil {
		t.Error("the store has written")
	}
	if made := server.SQL("SELECT to_regclass('" + DefaultTable + "') IS NULL"); made != "t" {
		t.Errorf("there is no table: %q", made)
	}
}

// The statements of the manual suffice for a role that may not make tables.
func TestManual(t *testing.T) {
	page, err := os.ReadFile("../../../docs/operating/postgres.md")
	if err != nil {
		t.Fatal(err)
	}
	_, statements, _ := strings.Cut(string(page), "```sql\n")
	statements, _, _ = strings.Cut(statements, "```")
	server := postgrestest.Start(t)
	ctx := limited(t, patience)
	server.SQL(statements + "REVOKE CREATE ON SCHEMA public FROM PUBLIC, flake")
	s := open(t, Config{URL: server.URL("flake")})
	if err := errors.Join(swap(ctx, s), swap(ctx, s), list(ctx, s)); err != nil {
		t.Error(err)
	}
}

// What an operator must correct is refused.
func TestRefused(t *testing.T) {
	server := postgrestest.Start(t)
	server.SQL(`SET password_encryption = 'scram-sha-256'; CREATE ROLE user1 LOGIN PASSWORD 'right';
		CREATE VIEW v AS SELECT 1;
		CREATE UNLOGGED TABLE u (key text PRIMARY KEY, value text); CREATE TABLE k (key text, value text);
		CREATE TABLE rows (key text PRIMARY KEY, value text); ALTER TABLE rows ENABLE ROW LEVEL SECURITY;
		GRANT ALL ON ALL TABLES IN SCHEMA public TO user1; GRANT CREATE ON SCHEMA public TO user1`)
	hba := filepath.Join(server.Dir, "pg_hba.conf")
	rules := "local all all trust\nhost all user1 127.0.0.1/32 scram-sha-256\n"
	if err := os.WriteFile(hba, []byte(rules), 0o644); err != nil {
		t.Fatal(err)
	}
	server.SQL("SELECT pg_reload_conf()")
	server.Await("SELECT count(*) FROM pg_hba_file_rules", "2")
	file := filepath.Join(t.TempDir(), "password")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx := limited(t, patience)
	right := fmt.Sprintf("postgres://user1:right@%s/postgres", server.Addr)
	for what, c := range map[string]Config{
		"password": {URL: fmt.Sprintf("postgres://user1:wrong@%s/postgres", server.Addr)},
		"hba":      {URL: fmt.Sprintf("postgres://other:wrong@%s/postgres", server.Addr)},
		"database": {URL: fmt.Sprintf("postgres://user1:right@%s/none", server.Addr)},
		"schema":   {URL: right, Table: "none.a"},
		"view":     {URL: right, Table: "public.v"},
		"unlogged": {URL: right, Table: "public.u"},
		"no key":   {URL: right, Table: "public.k"},
		"policies": {URL: right, Table: "public.rows"},
	} {
		s := open(t, c)
		err := swap(ctx, s)
		if what == "policies" { // a list would have no rows
			err = list(ctx, s)
		}
		if !errors.Is(err, workers.ErrRefused) || !strings.Contains(err.Error(), "PostgreSQL at "+server.Addr) {
			t.Errorf("%s: %v", what, err)
		}
	}
	s := open(t, Config{URL: fmt.Sprintf("host=%s port=%s user=user1 dbname=postgres", "127.0.0.1",
		server.Addr[len("127.0.0.1:"):]), Password: func() (string, error) {
		text, err := os.ReadFile(file)
		return strings.TrimSpace(string(text)), err
	}})
	if err := list(ctx, s); err == nil || errors.Is(err, workers.ErrRefused) {
		t.Errorf("without the file: %v", err)
	}
	for _, text := range []string{"right\n", "wrong", "right"} {
		write(text)
		if err := list(ctx, s); errors.Is(err, workers.ErrRefused) != (text == "wrong") || err != nil && text != "wrong" {
			t.Errorf("%q: %v", text, err)
		}
	}
	t.Setenv("PGPASSFILE", file) // libpq's
	s = open(t, Config{URL: fmt.Sprintf("postgres://user1@%s/postgres", server.Addr)})
	for _, text := range []string{"*:*:*:*:right", "*:*:*:*:wrong", "*:*:*:*:right"} {
		write(text)
		if err := list(ctx, s); (err == nil) != strings.HasSuffix(text, "right") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Calls go to the host that accepts writes, wherever it is in the list.
func TestHosts(t *testing.T) {
	server := postgrestest.Start(t)
	standby := server.Standby()
	ctx := limited(t, patience)
	for addrs, clocks := range map[string]int{standby.Addr + "," + server.Addr: 2, server.Addr + "," + standby.Addr: 2,
		"127.0.0.1:1," + server.Addr: 1} {
		s := open(t, Config{URL: url(addrs)})
		for range 2 {
			if err := errors.Join(swap(ctx, s), list(ctx, s)); err != nil {
				t.Errorf("%s: %v", addrs, err)
			}
		}
		if n := len(s.Clocks(ctx, func() uint64 { return 0 })); n != clocks {
			t.Errorf("%s: %d clocks", addrs, n)
		}
	}
	s := open(t, Config{URL: url(standby.Addr)})
	for _, call := range []func(context.Context, *Store) error{list, swap} {
		if err := call(ctx, s); !errors.Is(err, errReadOnly) || errors.Is(err, workers.ErrRefused) {
			t.Error(err)
		}
	}
	if n := len(s.Clocks(ctx, func() uint64 { return 0 })); n != 1 {
		t.Errorf("%d clocks of a standby", n)
	}
	server.SQL("ALTER DATABASE postgres SET default_transaction_read_only = on") // as a fence
	s = open(t, Config{URL: server.URL("postgres")})
	for _, call := range []func(context.Context, *Store) error{list, swap} {
		if err := call(ctx, s); !errors.Is(err, errReadOnly) || errors.Is(err, workers.ErrRefused) {
			t.Error(err)
		}
	}
}

// idle waits until the server has no connection of a store.
func idle(server *postgrestest.Server) {
	server.Await("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'flake'", "0")
}

// If somebody holds a lock, calls fail in time, and the server drops them.
func TestLocked(t *testing.T) {
	server := postgrestest.Start(t)
	s := open(t, Config{URL: server.URL("postgres")})
	if err := swap(limited(t, patience), s); err != nil {
		t.Fatal(err)
	}
	psql := server.Psql()
	in, err := psql.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := psql.Start(); err != nil {
		t.Fatal(err)
	}
	defer psql.Wait()
	defer in.Close()
	fmt.Fprintln(in, "BEGIN; LOCK TABLE public.flake_workers;")
	server.Await("SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted", "1")
	for _, call := range []func(context.Context, *Store) error{list, swap} {
		err := call(limited(t, 3*time.Second), s)
		if err == nil || errors.Is(err, workers.ErrRefused) || !strings.Contains(err.Error(), "lock timeout") {
			t.Error(err)
		}
	}
	idle(server)
	fmt.Fprintln(in, "ROLLBACK;")
	if err := errors.Join(swap(limited(t, patience), s), list(limited(t, patience), s)); err != nil {
		t.Error(err)
	}
}

// A server without a free connection is not one that refuses.
func TestTooManyConnections(t *testing.T) {
	server := postgrestest.Start(t, "max_connections=5", "superuser_reserved_connections=3", "max_wal_senders=0")
	server.SQL("CREATE ROLE plain LOGIN; GRANT CREATE ON SCHEMA public TO plain")
	s := open(t, Config{URL: server.URL("plain")})
	ctx := limited(t, patience)
	works := func() { // backends that have just ended may still count
		t.Helper()
		for err := errors.New("not tried"); err != nil; err = errors.Join(swap(ctx, s), list(ctx, s)) {
			if ctx.Err() != nil {
				t.Fatal(err)
			}
		}
	}
	works()
	hosts, err := s.hosts()
	if err != nil {
		t.Fatal(err)
	}
	var taken []*conn
	for len(taken) < 2 {
		if c, err := connect(ctx, hosts[0]); err == nil {
			taken = append(taken, c)
		} else if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
	for _, call := range []func(context.Context, *Store) error{list, swap} {
		if err := call(ctx, s); err == nil || errors.Is(err, workers.ErrRefused) || !strings.Contains(err.Error(), "53300") {
			t.Error(err)
		}
	}
	for _, c := range taken {
		c.close()
	}
	works()
}

// A write that a synchronous standby may not have is not reported as done.
func TestSynchronous(t *testing.T) {
	server := postgrestest.Start(t)
	s := open(t, Config{URL: server.URL("postgres")})
	if err := swap(limited(t, patience), s); err != nil {
		t.Fatal(err)
	}
	server.SQL("ALTER DATABASE postgres SET synchronous_commit = local")
	server.SQL("ALTER DATABASE postgres SET client_min_messages = error")
	server.SQL("ALTER SYSTEM SET synchronous_standby_names = 'none'")
	server.SQL("SELECT pg_reload_conf()")
	server.Await("SHOW synchronous_standby_names", "none")
	done := make(chan error)
	go func() { done <- swap(limited(t, patience), s) }()
	const waiting = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
	server.Await("SELECT count(*) "+waiting, "1")
	// Others do not wait for longer than they say.
	if err := swap(limited(t, time.Second), s); err == nil || errors.Is(err, workers.ErrRefused) {
		t.Error(err)
	}
	server.SQL("SELECT pg_cancel_backend(pid) " + waiting)
	if err := <-done; err == nil || errors.Is(err, workers.ErrRefused) || !strings.Contains(err.Error(), "replicat") {
		t.Error(err)
	}
	server.SQL("ALTER SYSTEM RESET synchronous_standby_names")
	server.SQL("SELECT pg_reload_conf()")
	idle(server)
	if err := swap(limited(t, patience), s); err != nil {
		t.Error(err)
	}
}

// TLS is as the URL says. The files that it names are read again for each call.
func TestTLS(t *testing.T) {
	ca := certstest.NewCA(t, "ca")
	cert, key := ca.Issue("server", "127.0.0.1")
	server := postgrestest.Start(t)
	for from, to := range map[string]string{cert: "server.crt", key: "server.key", ca.File: "ca.crt"} {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		server.Write(to, string(text))
	}
	server.SQL("ALTER SYSTEM SET ssl = on")
	server.SQL("SELECT pg_reload_conf()")
	server.Await("SHOW ssl", "on")
	trusted := filepath.Join(t.TempDir(), "ca.pem")
	trust := func(file string) {
		text, err := os.ReadFile(file)
		if err := errors.Join(err, os.WriteFile(trusted, text, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	trust(ca.File)
	s := open(t, Config{URL: strings.ReplaceAll(server.URL("postgres"), "disable", "verify-full&sslrootcert="+trusted)})
	ctx := limited(t, patience)
	for i, from := range []string{ca.File, certstest.NewCA(t, "other").File, ca.File} {
		trust(from)
		for _, call := range []func(context.Context, *Store) error{swap, list} {
			if err := call(ctx, s); (err == nil) != (i != 1) || errors.Is(err, workers.ErrRefused) != (i == 1) {
				t.Errorf("%d: %v", i, err)
			}
		}
	}
	if err := os.Remove(trusted); err != nil {
		t.Fatal(err)
	}
	if err := list(ctx, s); err == nil || errors.Is(err, workers.ErrRefused) {
		t.Errorf("without the file: %v", err)
	}

	// The server wants TLS and a client's certificate. Whether the client tries without TLS, and when, depends on the mode.
	server.SQL("ALTER SYSTEM SET ssl_ca_file = 'ca.crt'")
	server.Write("pg_hba.conf", "local all all trust\nhostssl all all all trust clientcert=verify-ca\n")
	server.SQL("SELECT pg_reload_conf()")
	server.Await("SHOW ssl_ca_file", "ca.crt")
	for _, mode := range []string{"allow", "prefer", "require"} {
		url := strings.ReplaceAll(server.URL("postgres"), "disable", mode)
		if err := list(ctx, open(t, Config{URL: url})); err == nil {
			t.Errorf("%s: no certificate was asked for", mode)
		}
		if err := list(ctx, open(t, Config{URL: url + "&sslcert=" + cert + "&sslkey=" + key})); err != nil {
			t.Errorf("%s: %v", mode, err)
		}
	}
}
