package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/postgres"
	"github.com/flake-go/flake/flake/workers/postgres/postgrestest"
	"github.com/flake-go/flake/flake/workers/storetest"
)

// rigConnections is how many connections a server accepts.
const rigConnections = 20

// rigPostgres is a real PostgreSQL server and its asynchronous standby, or only a server.
type rigPostgres struct {
	t       *testing.T
	primary *postgrestest.Server
	standby *postgrestest.Server // or nil
	stream  *storetest.Proxy     // by which the standby follows
}

func newRigPostgres(t *testing.T) rigStore {
	p := startPostgres(t)
	p.stream = p.primary.Proxy()
	p.standby = p.primary.StandbyAt(p.stream.Addrs[0])
	return p
}

func startPostgres(t *testing.T) *rigPostgres {
	s := postgrestest.Start(t, fmt.Sprint("max_connections=", rigConnections))
	s.SQL("CREATE ROLE flake LOGIN; GRANT CREATE ON SCHEMA public TO flake")
	return &rigPostgres{t: t, primary: s}
}

// servers returns all servers, in an order that does not depend on which of them is the primary.
func (p *rigPostgres) servers() []*postgrestest.Server {
	switch {
	case p.standby == nil:
		return []*postgrestest.Server{p.primary}
	case p.primary.Addr < p.standby.Addr:
		return []*postgrestest.Server{p.primary, p.standby}
	}
	return []*postgrestest.Server{p.standby, p.primary}
}

func postgresURL(addrs []string) string {
	return fmt.Sprintf("postgres://flake@%s/postgres?sslmode=disable", strings.Join(addrs, ","))
}

func postgresTables(addrs []string) string {
	return fmt.Sprintf("store = \"postgres\"\n[postgres]\nurl = %q\n", postgresURL(addrs))
}

func (p *rigPostgres) addrs() (all []string) {
	for _, s := range p.servers() {
		all = append(all, s.Addr)
	}
	return all
}

func (p *rigPostgres) link(m *machine) (storetest.Link, string) {
	l := postgrestest.NewProxy(p.t)
	for _, s := range p.servers() {
		l.To(m.listen("127.0.0.1:0"), s.Addr)
	}
	return l, postgresTables(l.Addrs)
}

func (p *rigPostgres) open() (workers.Store, error) {
	return postgres.New(postgres.Config{URL: postgresURL(p.addrs())})
}

func (p *rigPostgres) remove(key string) error {
	_, err := p.primary.Try(fmt.Sprintf("DELETE FROM public.flake_workers WHERE key = '%s'", key))
	return err
}

// save copies the primary's disk.
func (p *rigPostgres) save(folder string) {
	own := p.primary.Folder("saved") // where its processes may write
	p.primary.Copy(own)
	p.move(own, folder)
}

// restore returns to a copy of the primary's disk, and starts it as it was.
func (p *rigPostgres) restore(folder string) {
	own := p.primary.Folder("saved")
	p.move(folder, own)
	p.primary.Put(own)
	if err := os.RemoveAll(own); err != nil {
		p.t.Fatal(err)
	}
	p.follow()
}

// move moves a folder, perhaps to another file system.
func (p *rigPostgres) move(from, to string) {
	if out, err := exec.Command("mv", from, to).CombinedOutput(); err != nil {
		p.t.Fatalf("mv: %v: %s", err, out)
	}
}

// follow makes the standby a new copy of the primary, which it follows.
func (p *rigPostgres) follow() { p.standby.Follow(p.primary, p.stream.Addrs[0]) }

func (p *rigPostgres) another() rigStore { return startPostgres(p.t) }

func (p *rigPostgres) actions() []rigAction {
	return []rigAction{
		{3, "a failover with writes lost", func(r *rig, n *rigNode, x *rand.Rand) {
			r.passed()
			p.failover(r, n, x)
		}, true},
		{2, "two failovers with writes lost", func(r *rig, n *rigNode, x *rand.Rand) {
			r.passed()
			p.failover(r, n, x)
			p.failover(r, r.other(n, x), x)
		}, true},
		{1, "a switchover without writes lost", func(r *rig, _ *rigNode, _ *rand.Rand) {
			r.unseen(func() {
				p.primary.Stop()
				p.promote()
			})
			p.follow()
		}, true},
		{2, "a base backup recovered", func(r *rig, n *rigNode, x *rand.Rand) {
			folder := p.primary.Folder("saved")
			r.passed()
			p.forgotten(r, n, x, func() { p.primary.Backup(folder) }, func(*rigNode) { p.primary.Recover(folder) })
			os.RemoveAll(folder)
		}, true},
		{2, "a dump restored, the table made anew", func(r *rig, n *rigNode, x *rand.Rand) {
			r.passed()
			var dump string
			p.forgotten(r, n, x, func() { dump = p.primary.Run("pg_dump", "-c", "-t", "public.flake_workers", "postgres") },
				func(*rigNode) { // some calls begin before, and wait for the lock
					p.primary.SQL("BEGIN; LOCK TABLE public.flake_workers; SELECT pg_sleep(0.3);" + dump + "COMMIT")
				})
		}, true},
		{2, "kill -9 of the server", func(_ *rig, _ *rigNode, x *rand.Rand) {
			p.primary.Kill()
			time.Sleep(lasts(x, 0.1, 1.5)) // how long the fault lasts
			p.primary.Start()
		}, false},
		{1, "the server paused", func(_ *rig, _ *rigNode, x *rand.Rand) {
			p.primary.Pause()
			time.Sleep(lasts(x, 0.3, 2)) // how long the fault lasts
			p.primary.Resume()
		}, false},
		{1, "the standby killed", func(_ *rig, _ *rigNode, x *rand.Rand) {
			p.standby.Kill()
			time.Sleep(lasts(x, 0.3, 2)) // how long the fault lasts
			p.standby.Start()
		}, false},
		{2, "the table locked", func(_ *rig, _ *rigNode, x *rand.Rand) {
			p.primary.SQL(fmt.Sprintf("BEGIN; LOCK TABLE public.flake_workers; SELECT pg_sleep(%f); COMMIT",
				lasts(x, 0.3, 2.5).Seconds()))
		}, false},
		{2, "the connections used up", func(_ *rig, _ *rigNode, x *rand.Rand) {
			var all sync.WaitGroup
			sleep := fmt.Sprintf("SELECT pg_sleep(%f)", lasts(x, 0.5, 2.5).Seconds())
			for range rigConnections {
				all.Go(func() { p.primary.Try(sleep) }) // the last fail
			}
			all.Wait()
		}, false},
		{2, "the connections cut again and again", func(_ *rig, _ *rigNode, x *rand.Rand) {
			p.primary.SQL(fmt.Sprintf("DO $$ BEGIN FOR i IN 1..%d LOOP PERFORM pg_stat_clear_snapshot(), "+
				"pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'flake'; PERFORM pg_sleep(0.005); "+
				"END LOOP; END $$", lasts(x, 0.3, 2)/(5*time.Millisecond)))
		}, false},
	}
}

// forgotten is like [rig.forgotten], but nodes must notice without a command. Sometimes the node that starts reaches
// the server first, while others hand out ids up to their marks.
func (p *rigPostgres) forgotten(r *rig, n *rigNode, x *rand.Rand, save func(), restore func(other *rigNode)) {
	first := x.IntN(2) == 0
	r.forgotten(n, x, save, func(other *rigNode) {
		other.link.Cut()
		other.start()
		other.said("waiting for a worker id") // so that it claims one at once
		r.unseen(func() {
			if first {
				r.link(storetest.Link.Cut)
			}
			restore(other)
			other.link.Join()
			if first {
				time.Sleep(lasts(x, 0.2, 0.5)) // how much sooner
			}
			r.link(storetest.Link.Join)
		})
	})
	p.follow()
}

// failover kills the primary, and promotes the standby, which lacks the last writes.
func (p *rigPostgres) failover(r *rig, n *rigNode, x *rand.Rand) {
	p.forgotten(r, n, x, func() {
		written := p.primary.SQL("SELECT pg_current_wal_lsn()")
		p.standby.Await(fmt.Sprintf("SELECT pg_last_wal_replay_lsn() >= '%s'", written), "t")
		p.stream.Cut()
	}, func(other *rigNode) {
		p.primary.Kill()
		other.link.Join() // it claims once the standby accepts writes
		p.promote()
	})
}

// promote makes the standby the primary. The former primary has ended, and can follow it.
func (p *rigPostgres) promote() {
	p.standby.Promote()
	p.primary, p.standby = p.standby, p.primary
	p.stream = p.primary.Proxy()
}
