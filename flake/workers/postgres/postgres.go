// Package postgres lets package workers use PostgreSQL, 14 or later, as its store. The store is one
// table, which it makes if the role may.
//
// Each call opens a connection, sends one message of the simple query protocol, and closes the
// connection. So the server executes the whole message or nothing, in one transaction; nothing is
// left to be cut by proxies or to survive a failover; passwords, certificates, and the server that
// is the primary may change between calls; and PgBouncer may pool transactions. A node makes a call
// each third of its hold, so an open connection would be idle, and the server has few of them.
//
// Writers take turns, with an advisory lock, so that a comparison with a missing key is atomic.
// Each transaction sets what it depends on, because a role, a database, or another client of a pool
// may have set it: the isolation level; synchronous_commit, unless it is remote_apply; the search
// path; and time limits, so that the server drops what the node no longer waits for.
//
// An error from a write does not say whether PostgreSQL wrote: the answer may be lost, or the wait
// for a synchronous standby canceled. So a write is sent to another host only if the first did not
// execute it.
//
// # What may be lost
//
// A commit survives a crash of the server unless fsync is off. It survives a failover only if the
// standby had it: with asynchronous replication, a standby may lag. See [Store.Restored] and
// [Store.Cluster] for how that is noticed.
//
// A primary that was replaced, but still runs and accepts writes, assigns numbers that the new
// one does not know of. Only fencing it, or synchronous replication, prevents that.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/internal/answers"
	"github.com/flake-go/flake/internal/escape"
)

const (
	longest = 15 * time.Second // time limit of a call without an earlier deadline

	maxAnswer   = 64 << 10      // bytes of a message, and of all that arrives until the role is logged in
	maxList     = 32 << 20      // bytes of a connection
	maxMessages = 1<<16 + 1<<10 // of a connection; a row is one, and numbers have 16 bits
	maxText     = 1 << 10       // bytes of a key or a value in a list
	shownBytes  = 400           // bytes of a server's text that an error shows
)

// DefaultTable is the name of the table if [Config] has none.
const DefaultTable = "public.flake_workers"

// Config says how to connect.
type Config struct {
	// URL is a URL, or keywords and values, as libpq reads them. libpq's environment variables and
	// files supply what is missing. All are read again for each call. If several hosts are listed,
	// one after another is asked until one accepts writes, whatever target_session_attrs is.
	URL string

	// Password, if not nil, returns the password. It is called for each call.
	Password func() (string, error)

	Table string // SCHEMA.TABLE; empty means [DefaultTable]
	Peek  bool   // make no table, for a program that claims no number; a missing one counts as empty
}

// Store is a PostgreSQL table.
type Store struct {
	config        Config
	schema, table string
	first         atomic.Int64 // the host to ask first
	history       history
}

// New returns a store. It does not connect yet.
func New(c Config) (*Store, error) {
	if c.Table == "" {
		c.Table = DefaultTable
	}
	schema, table, _ := strings.Cut(c.Table, ".")
	if schema == "" || table == "" || strings.Contains(table, ".") || len(schema) > 63 || len(table) > 63 ||
		!escape.Safe(c.Table) {
		return nil, fmt.Errorf("flake: the table %q must be SCHEMA.TABLE, each with up to 63 bytes", c.Table)
	}
	if _, err := c.parse(); err != nil {
		return nil, err
	}
	return &Store{config: c, schema: schema, table: table}, nil
}

// name returns the table's name in SQL.
func (s *Store) name() string { return identifier(s.schema) + "." + identifier(s.table) }

func identifier(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// literal returns text in SQL, whatever standard_conforming_strings is.
func literal(text string) string {
	return "E'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(text) + "'"
}

// literals returns lists of values in SQL.
func literals(all map[string]string) string {
	var rows []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		rows = append(rows, "("+literal(key)+", "+literal(all[key])+")")
	}
	return strings.Join(rows, ", ")
}

// List implements [workers.Store].
func (s *Store) List(ctx context.Context, prefix string) (map[string]string, error) {
	below, ok := strings.CutSuffix(prefix, "/")
	if !ok {
		return nil, fmt.Errorf("flake: the prefix %q does not end with a slash", prefix)
	}
	got, err := s.call(ctx, reads, "SELECT key, value FROM "+s.name()+
		` WHERE key >= `+literal(prefix)+` COLLATE "C" AND key < `+literal(below+"0")+` COLLATE "C"`) // 0 follows /
	if err != nil {
		return nil, err
	}
	for key, value := range got.pairs {
		if max(len(key), len(value)) > maxText {
			return nil, fmt.Errorf("%w: a key or a value of more than %d bytes", errLong, maxText)
		}
	}
	return got.pairs, nil
}

// Get implements [workers.Store].
func (s *Store) Get(ctx context.Context, keys ...string) ([]string, error) {
	var list []string
	for _, key := range keys {
		list = append(list, literal(key))
	}
	got, err := s.call(ctx, reads,
		`SELECT key, value FROM `+s.name()+` WHERE key COLLATE "C" IN (`+strings.Join(list, ", ")+")")
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(keys))
	for i, key := range keys {
		texts[i] = got.pairs[key]
	}
	return texts, nil
}

// lock is the advisory lock that writers hold.
const lock = "SELECT pg_advisory_xact_lock(7380081823116718967)" // random

// unchanged is the tag of a write that did not happen, because the comparison failed.
const unchanged = "INSERT 0 0"

// Swap implements [workers.Store].
func (s *Store) Swap(ctx context.Context, have, write map[string]string) (bool, error) {
	same := ""
	if len(have) > 0 {
		same = " WHERE NOT EXISTS (SELECT FROM (VALUES " + literals(have) + ") h(key, value) LEFT JOIN " + s.name() +
			` t ON t.key = h.key COLLATE "C" WHERE coalesce(t.value, '') <> h.value COLLATE "C")`
	}
	got, err := s.call(ctx, writes, lock+"; INSERT INTO "+s.name()+" (key, value) SELECT * FROM (VALUES "+
		literals(write)+") w(key, value)"+same+" ON CONFLICT (key) DO UPDATE SET value = excluded.value RETURNING key")
	switch {
	case err != nil:
		return false, err
	case got.tag == fmt.Sprint("INSERT 0 ", len(write)):
		return true, nil
	case got.tag == unchanged:
		return false, nil
	}
	return false, fmt.Errorf("PostgreSQL answered %q to a write of %d keys", got.tag, len(write))
}

// Cluster returns the server's system identifier, the oids of the database and the table, and the
// timeline. A copy of the server has the same identifier, but a standby that is promoted, or a
// backup that is recovered, begins a new timeline; and a dump is restored into a table with another
// oid. So a node that starts after any of these writes the floor before it claims a number.
func (s *Store) Cluster(ctx context.Context) (string, error) {
	got, err := s.call(ctx, reads, "")
	if err != nil {
		return "", err
	}
	return got.place.String(), nil
}

// Clocks asks all hosts in parallel, standbys too, and returns, for each that answers, how far now
// (in milliseconds since 1970) is certainly ahead of the host's clock; negative means behind.
func (s *Store) Clocks(ctx context.Context, now func() uint64) []time.Duration {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	hosts, _ := s.hosts()
	return answers.Clocks(hosts, time.Millisecond, now, func(h host) (date time.Time) {
		c, err := connect(ctx, h)
		if err != nil {
			return date
		}
		defer c.close()
		got, err := c.ask("SELECT " + clock)
		if milli, bad := strconv.ParseInt(got.first[0], 10, 64); err == nil && bad == nil {
			date = time.UnixMilli(milli)
		}
		return date
	})
}

const clock = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint"

type kind int

const (
	reads kind = iota
	writes
)

// EndpointError is the error of a call to one host.
type EndpointError struct {
	Endpoint string
	Err      error
}

func (e *EndpointError) Error() string { return fmt.Sprintf("PostgreSQL at %s: %v", e.Endpoint, e.Err) }
func (e *EndpointError) Unwrap() error { return e.Err }

// call asks one host after another until one that accepts writes answers. Each host gets half of
// the remaining time, and the last gets all of it.
func (s *Store) call(ctx context.Context, kind kind, statements string) (answer, error) {
	if !utf8.ValidString(statements) || strings.ContainsRune(statements, 0) {
		return answer{}, errors.New("flake: a key or a value is not text that PostgreSQL can keep")
	}
	all, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	until, _ := all.Deadline()
	hosts, err := s.hosts()
	if err != nil {
		return answer{}, err
	}
	count, begin := len(hosts), int(s.first.Load())
	var failed error
	for tried := range count {
		i := (begin + tried) % count
		before, err := s.history.Before()
		if err != nil {
			return answer{}, err
		}
		left := time.Until(until)
		if tried < count-1 {
			left /= 2
		}
		ctx, cancel := context.WithTimeout(all, left)
		got, sent, err := s.ask(ctx, before, hosts[i], kind, statements)
		cancel()
		if err == nil {
			s.first.Store(int64(i))
			return got, nil
		}
		s.first.Store(int64(i+1) % int64(count))
		failed = errors.Join(failed, &EndpointError{hosts[i].name, escape.Err(err)})
		if sent && (kind == writes || errors.Is(err, workers.ErrRefused)) || all.Err() != nil {
			break
		}
	}
	return answer{}, failed
}

// ask asks one host. If the table is missing, ask makes it. After an error, sent reports whether
// the host may have executed the statements.
func (s *Store) ask(
	ctx context.Context, before seen, h host, kind kind, statements string,
) (got answer, sent bool, err error) {
	for again := false; ; again = true {
		got, sent, err = s.post(ctx, h, statements)
		if got.place.system == 0 { // the server did not say what it is
			return got, sent, err
		}
		durable := kind == writes && err == nil && got.tag != unchanged
		if bad := s.note(before, h.name, got, durable); bad != nil {
			return got, true, bad
		}
		if got.place.table > 0 || again {
			return got, sent, err
		}
		if s.config.Peek {
			if p, ok := errors.AsType[*pgconn.PgError](err); ok && p.Code == "42P01" && kind == reads { // no such table
				err = nil
			}
			return got, sent, err
		}
		if _, _, err = s.post(ctx, h, lock+"; CREATE TABLE IF NOT EXISTS "+s.name()+
			` (key text COLLATE "C" PRIMARY KEY, value text NOT NULL) WITH (fillfactor = 50)`); err != nil {
			return got, true, err
		}
	}
}
