//go:build unix

package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/internal/answers"
	"github.com/flake-go/flake/flake/workers/postgres/postgrestest"
	"github.com/flake-go/flake/flake/workers/storetest"
)

func wantSign(t *testing.T, s *Store, want string) {
	t.Helper()
	if sign, ok := s.Restored(); !strings.Contains(sign, want) || ok != (want != "") || sign == "" && ok {
		t.Errorf("sign %q, %v; want %q", sign, ok, want)
	}
}

func TestNote(t *testing.T) {
	type step struct {
		host            string
		system          uint64
		table, timeline uint32
		lsn, xid        uint64
		durable         bool
		want            string // the sign
	}
	for name, steps := range map[string][]step{
		"nothing":  {{"a", 1, 5, 1, 10, 10, true, ""}, {"b", 1, 5, 1, 10, 11, false, ""}, {"a", 1, 5, 1, 11, 11, true, ""}},
		"a crash":  {{"a", 1, 5, 1, 10, 10, true, ""}, {"a", 1, 5, 1, 20, 20, false, ""}, {"a", 1, 5, 1, 11, 11, true, ""}},
		"no write": {{"a", 1, 5, 1, 10, 10, false, ""}, {"a", 1, 5, 1, 9, 9, true, ""}},
		"a copy": {{"a", 1, 5, 1, 10, 10, true, ""}, {"a", 1, 5, 1, 9, 20, false, "the log at a"},
			{"a", 1, 5, 1, 8, 8, true, ""}},
		"a copy, a longer log": {{"a", 1, 5, 1, 10, 10, true, ""},
			{"a", 1, 5, 1, 11, 10, false, "the next transaction at a is 10, but was 11"}},
		"a failover": {{"a", 1, 5, 1, 10, 10, true, ""}, {"b", 1, 5, 2, 20, 20, true, "the timeline at b is 2, but was 1"}},
		"two failovers": {{"a", 1, 5, 1, 10, 10, true, ""}, {"b", 1, 5, 2, 9, 9, true, "is 2"},
			{"b", 1, 5, 2, 9, 9, true, ""}, {"a", 1, 5, 3, 9, 9, true, "is 3, but was 2"}},
		"a former primary": {{"b", 1, 5, 2, 10, 10, true, ""}, {"a", 1, 5, 1, 20, 20, true, "the timeline at a"}},
		"a dump":           {{"a", 1, 5, 1, 10, 10, true, ""}, {"a", 1, 6, 1, 20, 20, true, "the oid of the table"}},
		"a missing table": {{"a", 1, 5, 1, 10, 10, true, ""}, {"a", 1, 0, 1, 20, 20, false, "oid of the table"},
			{"a", 1, 6, 1, 20, 20, true, ""}},
		"a first start": {{"a", 1, 0, 1, 10, 10, false, ""}, {"a", 1, 6, 1, 20, 20, false, ""}},
		"another server": {{"a", 1, 5, 1, 10, 10, true, ""},
			{"a", 2, 5, 1, 20, 20, true, "the system identifier at a was 1, but is now 2"}},
	} {
		s := &Store{}
		for i, step := range steps {
			before, err := s.history.Before()
			if err != nil {
				t.Fatal(err)
			}
			got := answer{place: place{step.system, 1, step.table, step.timeline}, ends: ends{step.lsn, step.xid}}
			err = s.note(before, step.host, got, step.durable)
			if errors.Is(err, answers.ErrRestored) != (step.want != "") || errors.Is(err, workers.ErrRefused) {
				t.Errorf("%s: step %d: %v", name, i, err)
			}
			if step.want != "" {
				if _, err := s.history.Before(); !errors.Is(err, answers.ErrRestored) {
					t.Errorf("%s: step %d: before Restored returned the sign: %v", name, i, err)
				}
				if err := s.note(before, step.host, got, false); !errors.Is(err, answers.ErrRestored) {
					t.Errorf("%s: step %d: another answer: %v", name, i, err)
				}
			}
			wantSign(t, s, step.want)
			wantSign(t, s, "")
			if step.want != "" {
				if err := s.note(before, step.host, got, false); !errors.Is(err, answers.ErrRestored) {
					t.Errorf("%s: step %d: the answer to an earlier request: %v", name, i, err)
				}
			}
		}
	}
	s := &Store{}
	for host, system := range map[string]uint64{"a": 1, "b": 2} { // in any order, the second is refused
		before, _ := s.history.Before()
		err := s.note(before, host, answer{place: place{system, 1, 1, 1}}, true)
		if refused := before.Facts.place.system != 0; errors.Is(err, workers.ErrRefused) != refused {
			t.Error(host, err)
		}
	}
	wantSign(t, s, "")
	s = &Store{}
	for _, database := range []uint32{1, 2} {
		before, _ := s.history.Before()
		err := s.note(before, "a", answer{place: place{1, database, 1, 1}}, true)
		if errors.Is(err, answers.ErrRestored) != (database == 2) {
			t.Error(database, err)
		}
	}
	wantSign(t, s, "the oid of the database at a was 1, but is now 2")
}

// Each way to lose commits is noticed by a store that had seen them, and gives another cluster to
// one that starts, unless the server continues from a copy of its disk. A clean restart and a crash
// are not noticed.
func TestRestored(t *testing.T) {
	server := postgrestest.Start(t)
	ctx := limited(t, patience)
	for _, tt := range []struct {
		name    string
		want    string
		another bool // whether the cluster is another one
		save    func(*postgrestest.Server, string)
		restore func(*postgrestest.Server, string)
	}{
		{"a clean restart", "", false, nil, func(s *postgrestest.Server, _ string) { s.Stop(); s.Start() }},
		{"a crash", "", false, nil, func(s *postgrestest.Server, _ string) { s.Kill(); s.Start() }},
		{"a vacuum", "", false, nil, func(s *postgrestest.Server, _ string) { s.SQL("VACUUM FULL public.flake_workers") }},
		{"a copy of the disk", " at 127", false, (*postgrestest.Server).Copy, (*postgrestest.Server).Put},
		{"a base backup", "the timeline at", true, (*postgrestest.Server).Backup, (*postgrestest.Server).Recover},
		{"a dump", "the oid of the table", true,
			func(s *postgrestest.Server, f string) { s.Run("pg_dump", "-Fc", "-f", f, "postgres") },
			func(s *postgrestest.Server, f string) { s.Run("pg_restore", "-c", "-d", "postgres", f) }},
		{"a dump into another database", "the oid of the database", true,
			func(s *postgrestest.Server, f string) { s.Run("pg_dump", "-Fc", "-f", f, "postgres") },
			func(s *postgrestest.Server, f string) {
				s.Run("dropdb", "--maintenance-db=template1", "-f", "postgres")
				s.Run("createdb", "--maintenance-db=template1", "postgres")
				s.Run("pg_restore", "-d", "postgres", f)
			}},
	} {
		s := open(t, Config{URL: server.URL("postgres")})
		if err := swap(ctx, s); err != nil {
			t.Fatal(tt.name, err)
		}
		before, err := s.Cluster(ctx)
		if err != nil {
			t.Error(err)
		}
		folder := server.Folder("saved")
		if tt.save != nil {
			tt.save(server, folder)
		}
		if err := swap(ctx, s); err != nil {
			t.Error(tt.name, err)
		}
		tt.restore(server, folder)
		if tt.want != "" {
			if err := list(ctx, s); !errors.Is(err, answers.ErrRestored) {
				t.Error(tt.name, err)
			}
		}
		if err := swap(ctx, s); (err != nil) != (tt.want != "") {
			t.Error(tt.name, err)
		}
		wantSign(t, s, tt.want)
		if err := errors.Join(swap(ctx, s), list(ctx, s)); err != nil {
			t.Error(tt.name, err)
		}
		after, err := open(t, Config{URL: server.URL("postgres")}).Cluster(ctx)
		if (after != before) != tt.another || err != nil {
			t.Errorf("%s: the cluster was %s and is %s: %v", tt.name, before, after, err)
		}
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	}
}

// A number was claimed just before the claim was lost. A node that then starts, and cannot know of
// it, gets only later times with the number. So does one that was running, once the former owner
// has found out.
func TestLostClaim(t *testing.T) {
	dump := func(s *postgrestest.Server) { s.Run("pg_dump", "-Fc", "-f", s.Folder("saved"), "postgres") }
	for name, tt := range map[string]struct {
		save func(s, standby *postgrestest.Server, link *storetest.Proxy)
		lose func(s, standby *postgrestest.Server)
	}{
		"a failover": {
			func(s, standby *postgrestest.Server, link *storetest.Proxy) {
				standby.Await("SELECT pg_last_wal_replay_lsn() >= '"+s.SQL("SELECT pg_current_wal_lsn()")+"'", "t")
				link.Cut()
			},
			func(s, standby *postgrestest.Server) { s.Kill(); standby.Promote() },
		},
		"a base backup": {
			func(s, _ *postgrestest.Server, _ *storetest.Proxy) { s.Backup(s.Folder("saved")) },
			func(s, _ *postgrestest.Server) { s.Recover(s.Folder("saved")) },
		},
		"a dump": {
			func(s, _ *postgrestest.Server, _ *storetest.Proxy) { dump(s) },
			func(s, _ *postgrestest.Server) { s.Run("pg_restore", "-c", "-d", "postgres", s.Folder("saved")) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := postgrestest.Start(t)
			link := server.Proxy()
			standby := server.StandbyAt(link.Addrs[0])
			ctx := limited(t, patience)
			node := func(number uint64) *workers.Owner {
				o, err := workers.New(workers.Config{Store: open(t, Config{URL: url(server.Addr + "," + standby.Addr)}),
					Prefix: "flake", First: number, Last: number})
				if err != nil {
					t.Fatal(err)
				}
				return o
			}
			step := func(o *workers.Owner) (*workers.Claim, error) {
				t.Helper()
				err := errors.New("not yet")
				for err != nil && ctx.Err() == nil && !errors.Is(err, workers.ErrNoneFree) {
					err = o.Step(ctx)
				}
				c, _ := o.Claim()
				return c, err
			}
			if _, err := step(node(2)); err != nil {
				t.Fatal(err)
			}
			tt.save(server, standby, link)
			former := node(1)
			was, err := step(former)
			if err != nil {
				t.Fatal(err)
			}
			tt.lose(server, standby)
			now, err := step(node(1))
			if err != nil {
				t.Fatal(err)
			}
			if now.After() < was.Milli() {
				t.Errorf("the times up to %d may repeat, after %d", was.Milli(), now.After())
			}
			mark := was.Milli()
			if c, err := step(former); c != was || !was.IsLost() || was.Milli() != mark {
				t.Errorf("the former owner has %v: %v", c, err)
			}
		})
	}
}

// A call may wait while the table is made anew, and then meet the new one. That is noticed, since the rows that the
// call compares may be older.
func TestTableReplacedDuringCall(t *testing.T) {
	server := postgrestest.Start(t)
	ctx := limited(t, patience)
	for name, call := range map[string]func(context.Context, *Store) error{"a write": swap, "a list": list,
		"a read": func(ctx context.Context, s *Store) error { _, err := s.Get(ctx, "p/a"); return err }} {
		s := open(t, Config{URL: server.URL("postgres")})
		if err := swap(ctx, s); err != nil {
			t.Fatal(err)
		}
		psql := server.Psql()
		in, _ := psql.StdinPipe()
		if err := psql.Start(); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(in, "BEGIN; LOCK TABLE public.flake_workers;")
		locks := "SELECT count(*) FROM pg_locks WHERE relation = 'public.flake_workers'::regclass AND granted = "
		server.Await(locks+"true", "1")
		done := make(chan error)
		go func() { done <- call(ctx, s) }()
		server.Await(locks+"false", "1")
		fmt.Fprintln(in, "CREATE TABLE anew (LIKE public.flake_workers INCLUDING ALL);",
			"INSERT INTO anew SELECT * FROM public.flake_workers;",
			"DROP TABLE public.flake_workers; ALTER TABLE anew RENAME TO flake_workers; COMMIT;")
		if err := <-done; !errors.Is(err, answers.ErrRestored) {
			t.Errorf("%s: %v", name, err)
		}
		wantSign(t, s, "the oid of the table")
		in.Close()
		if err := psql.Wait(); err != nil {
			t.Error(err)
		}
	}
}
