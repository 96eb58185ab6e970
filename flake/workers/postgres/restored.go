package postgres

import (
	"fmt"

	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/internal/answers"
)

// place is where the answers come from.
type place struct {
	system                    uint64 // the server's system identifier, which copies of it share
	database, table, timeline uint32 // the oids; the table's is 0 if it is missing
}

func (p place) String() string {
	return fmt.Sprintf("%d.%d.%d.%d", p.system, p.database, p.table, p.timeline)
}

// ends says how far a server is.
type ends struct {
	lsn uint64 // of the end of its log, in which each record before is complete
	xid uint64 // of the next transaction, or less
}

type (
	history = answers.History[facts]
	seen    = answers.Seen[facts]
)

// facts are what the answers since the last restore showed.
type facts struct {
	place   place           // from the latest answer; zero before the first
	used    map[string]bool // hosts that have answered from the server, or a copy of it
	durable ends            // a server that has lost no commit is as far, or farther
}

// Restored returns a sign that commits may have been lost, if there is one: a new timeline, which a
// promoted standby or a recovered backup has; a table with another oid, from a dump or made anew; a
// log that ends before a commit did, or a transaction that is used again, from a copy of the disk;
// or a host that has become another server. After a sign, all calls fail until Restored has
// returned the sign. Restored returns each sign once, so use a Store for only one [workers.Owner].
//
// There is no sign of these:
//
//   - A copy of the disk was put in place, without recovery from an archive, and by the next call
//     the server has made as many transactions and as much log as before.
//   - A standby was opened by removing standby.signal, which begins no timeline.
//   - Rows were replaced, but not the table, for example from a dump of only the data.
//
// In these cases an owner still notices that its own value is older, but a node that starts does
// not.
func (s *Store) Restored() (sign string, ok bool) { return s.history.Restored() }

// note adds an answer to the history. If the answer must not be used, note returns an error. An
// answer to a write that happened is durable.
func (s *Store) note(before seen, host string, got answer, durable bool) error {
	least := before.Facts.durable
	return s.history.Note(before, func(f *facts) (sign string, err error) {
		was, now := f.place, got.place
		switch {
		case was == place{}:
			f.used = map[string]bool{}
		case was.system != now.system && !f.used[host]:
			return "", fmt.Errorf("%w: its system identifier is %d, and that of the others is %d: set the hosts of one cluster",
				workers.ErrRefused, now.system, was.system)
		case was.system != now.system:
			sign = fmt.Sprintf("the system identifier at %s was %d, but is now %d", host, was.system, now.system)
		case was.database != now.database:
			sign = fmt.Sprintf("the oid of the database at %s was %d, but is now %d", host, was.database, now.database)
		case was.table != now.table && was.table > 0:
			sign = fmt.Sprintf("the oid of the table at %s was %d, but is now %d", host, was.table, now.table)
		case was.timeline != now.timeline:
			sign = fmt.Sprintf("the timeline at %s is %d, but was %d", host, now.timeline, was.timeline)
		case got.ends.lsn < least.lsn:
			sign = fmt.Sprintf("the log at %s ends at %s, but ended at %s", host, lsn(got.ends.lsn), lsn(least.lsn))
		case got.ends.xid < least.xid:
			sign = fmt.Sprintf("the next transaction at %s is %d, but was %d", host, got.ends.xid, least.xid)
		}
		f.place, f.used[host] = now, true
		if durable { // the commit is later in the log, and its transaction is the next, or a later one
			f.durable = ends{max(f.durable.lsn, got.ends.lsn), max(f.durable.xid, got.ends.xid+1)}
		}
		return sign, nil
	})
}

// lsn formats a position in the log as PostgreSQL does.
func lsn(n uint64) string { return fmt.Sprintf("%X/%X", n>>32, uint32(n)) }
