package postgres

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/flake-go/flake/flake/workers"
)

var errLong = errors.New("its answer is too long")

// host is a server in the configuration.
type host struct {
	name   string
	config *pgconn.Config
}

// parse reads the configuration, but not the password.
func (c Config) parse() (*pgconn.Config, error) {
	whole, err := pgconn.ParseConfig(c.URL)
	if err != nil {
		return nil, fmt.Errorf("flake: %w", err)
	}
	return whole, nil
}

// hosts returns the servers in the configuration.
func (s *Store) hosts() (hosts []host, err error) {
	whole, err := s.config.parse()
	if err != nil {
		return nil, err
	}
	if s.config.Password != nil {
		if whole.Password, err = s.config.Password(); err != nil {
			return nil, err
		}
	}
	whole.MaxProtocolMessageBodyLen = maxAnswer
	whole.ValidateConnect = nil // each transaction checks that it may write
	whole.RuntimeParams["client_encoding"] = "UTF8"
	if whole.RuntimeParams["application_name"] == "" {
		whole.RuntimeParams["application_name"] = "flake"
	}
	// A host has several entries, with and without TLS, if sslmode is allow or prefer. All are those of one copy,
	// because pgconn finds a client's certificate by the address of its TLS configuration.
	for i := 0; i <= len(whole.Fallbacks); {
		c := whole.Copy()
		all := append([]*pgconn.FallbackConfig{{Host: c.Host, Port: c.Port, TLSConfig: c.TLSConfig}}, c.Fallbacks...)
		at, name := all[i], nameOf(all[i])
		c.Host, c.Port, c.TLSConfig, c.Fallbacks = at.Host, at.Port, at.TLSConfig, nil
		for i++; i < len(all) && nameOf(all[i]) == name; i++ {
			c.Fallbacks = append(c.Fallbacks, all[i])
		}
		hosts = append(hosts, host{name, c})
	}
	return hosts, nil
}

func nameOf(c *pgconn.FallbackConfig) string {
	_, name := pgconn.NetworkAddress(c.Host, c.Port)
	return name
}

// counted is a connection from which only left bytes can be read, where each read counts as leastRead bytes or more.
// left is atomic, because after a slow write pgconn reads in the background.
type counted struct {
	net.Conn
	left atomic.Int64
}

// leastRead limits the memory for reads of few bytes: in the background, pgconn keeps 8 KiB for each.
const leastRead = 512

func (l *counted) Read(b []byte) (n int, err error) {
	left := l.left.Load()
	if left <= 0 {
		return 0, errLong
	}
	n, err = l.Conn.Read(b[:min(int64(len(b)), left)])
	l.left.Add(-int64(max(n, leastRead)))
	return n, err
}

// conn is a connection on which the role is logged in.
type conn struct {
	ctx  context.Context
	net  net.Conn // below TLS
	to   *pgproto3.Frontend
	stop func() bool
}

func connect(ctx context.Context, h host) (*conn, error) {
	c := &conn{ctx: ctx}
	var arriving *counted
	h.config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		dialed, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		arriving = &counted{Conn: dialed}
		arriving.left.Store(maxAnswer)
		return arriving, nil
	}
	connected, err := pgconn.ConnectConfig(ctx, h.config)
	if err != nil {
		return nil, explain(ctx, err, "no connection in time")
	}
	hijacked, err := connected.Hijack()
	if err != nil {
		return nil, err
	}
	arriving.left.Store(maxList)
	c.net, c.to = arriving, hijacked.Frontend
	c.stop = context.AfterFunc(ctx, func() { arriving.SetDeadline(time.Unix(1, 0)) })
	return c, nil
}

func (c *conn) close() {
	if c.stop() {
		c.net.SetDeadline(time.Now().Add(time.Second))
		c.to.Send(&pgproto3.Terminate{})
		c.to.Flush()
	}
	c.net.Close()
}

// answer is what a server answered.
type answer struct {
	first [10]string // the values of the first row
	place place
	ends  ends
	pairs map[string]string // the rows of the other results
	table uint32            // the oid of their table, or 0
	tag   string            // of the last statement
}

// ask sends a message, and waits for the end of its transaction.
func (c *conn) ask(message string) (got answer, err error) {
	got.pairs = map[string]string{}
	c.to.Send(&pgproto3.Query{String: message})
	if err := c.to.Flush(); err != nil {
		return got, explain(c.ctx, err, "no answer in time")
	}
	results := 0
	var failed error
	for messages := 0; ; messages++ {
		arrived, err := c.to.Receive()
		switch {
		case err != nil:
			return got, explain(c.ctx, errors.Join(failed, err), "no answer in time")
		case messages == maxMessages:
			return got, fmt.Errorf("%w: more than %d messages", errLong, maxMessages)
		}
		switch m := arrived.(type) {
		case *pgproto3.RowDescription:
			if results++; results > 1 && len(m.Fields) > 0 {
				got.table = m.Fields[0].TableOID
			}
		case *pgproto3.DataRow:
			switch {
			case results == 1:
				for i := range min(len(m.Values), len(got.first)) {
					got.first[i] = string(m.Values[i])
				}
			case len(m.Values) == 2:
				got.pairs[string(m.Values[0])] = string(m.Values[1])
			}
		case *pgproto3.CommandComplete:
			got.tag = string(m.CommandTag)
		case *pgproto3.ErrorResponse:
			failed = cmp.Or(failed, refusal(pgconn.ErrorResponseToPgError(m)))
		case *pgproto3.NoticeResponse:
			// The wait for a synchronous standby was canceled: the standby may not have the commit.
			if m.SeverityUnlocalized == "WARNING" {
				failed = cmp.Or(failed, fmt.Errorf("it warns: %.*s", shownBytes, m.Message))
			}
		case *pgproto3.ReadyForQuery:
			if failed == nil && m.TxStatus != 'I' {
				failed = errors.New("it has not ended the transaction")
			}
			return got, failed
		case *pgproto3.ParameterStatus, *pgproto3.EmptyQueryResponse:
		default:
			return got, fmt.Errorf("an answer that is not PostgreSQL's: %T", arrived)
		}
	}
}

// begin returns the statements that begin each transaction. The first row of the answer is what
// place reads. They fail on a standby. Without row_security, a policy would hide rows instead of
// failing.
func (s *Store) begin(left time.Duration) string {
	milli := max(left.Milliseconds(), 2)
	return fmt.Sprintf("SET TRANSACTION ISOLATION LEVEL READ COMMITTED; SET LOCAL search_path = pg_catalog; "+
		"SET LOCAL client_min_messages = warning; SET LOCAL row_security = off; "+
		"SET LOCAL statement_timeout = %d; SET LOCAL lock_timeout = %d; "+
		"SELECT s.system_identifier, d.oid, coalesce(c.oid, 0), coalesce(c.relkind, 'r'), "+
		"coalesce(c.relpersistence, 'p'), left(pg_walfile_name(l.lsn), 8), l.lsn - '0/0', "+
		"current_setting('transaction_read_only'), set_config('synchronous_commit', "+
		"CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true), "+
		"pg_snapshot_xmax(pg_current_snapshot()) "+
		"FROM pg_control_system() s CROSS JOIN (SELECT pg_current_wal_insert_lsn() AS lsn) l "+
		"JOIN pg_database d ON d.datname = current_database() "+
		"LEFT JOIN pg_namespace n ON n.nspname = %s LEFT JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = %s; ",
		milli, milli*3/4, literal(s.schema), literal(s.table))
}

// errReadOnly means that the server did not execute the statements.
var errReadOnly = errors.New("it accepts no writes")

// post sends statements to a host, as one transaction.
func (s *Store) post(ctx context.Context, h host, statements string) (got answer, sent bool, err error) {
	c, err := connect(ctx, h)
	if err != nil {
		return answer{}, false, err
	}
	defer c.close()
	until, _ := ctx.Deadline()
	got, err = c.ask(s.begin(time.Until(until)) + statements)
	var p *pgconn.PgError
	if errors.As(err, &p) && (p.Code == "55000" || p.Code == "25006") {
		return answer{}, false, fmt.Errorf("%w: %w", errReadOnly, err)
	}
	if got.first[0] == "" {
		if err == nil {
			err = errors.New("an answer that is not PostgreSQL's")
		}
		return answer{}, true, err
	}
	var timeline string
	f := got.first
	n, _ := fmt.Sscan(strings.Join([]string{f[0], f[1], f[2], f[5], f[6], f[9]}, " "),
		&got.place.system, &got.place.database, &got.place.table, &timeline, &got.ends.lsn, &got.ends.xid)
	t, _ := fmt.Sscanf(timeline, "%x", &got.place.timeline)
	if got.table > 0 { // another than begin saw, if the table was made anew while the statement waited for its lock
		got.place.table = got.table
	}
	relkind, persistence, readOnly := f[3], f[4], f[7]
	switch {
	case n+t != 7:
		return answer{}, true, fmt.Errorf("an answer that is not PostgreSQL's: %.*q", shownBytes, f)
	case readOnly == "on":
		return answer{}, false, fmt.Errorf("%w: default_transaction_read_only is on", errReadOnly)
	case relkind != "r", persistence != "p":
		return answer{}, true, fmt.Errorf("%w: %s is not a table that survives a crash: make it as the manual says",
			workers.ErrRefused, s.config.Table)
	case errors.As(err, &p) && p.Code == "42501":
		err = s.lacks(ctx, h, err)
	}
	return got, true, err
}

// lacks adds the missing grants to an error.
func (s *Store) lacks(ctx context.Context, h host, err error) error {
	c, failed := connect(ctx, h)
	if failed != nil {
		return err
	}
	defer c.close()
	got, _ := c.ask("SET LOCAL search_path = pg_catalog; SELECT quote_ident(current_user), concat_ws(', ', " +
		"CASE WHEN NOT has_schema_privilege(n.oid, 'USAGE') THEN 'USAGE' END, " +
		"CASE WHEN c.oid IS NULL AND NOT has_schema_privilege(n.oid, 'CREATE') THEN 'CREATE' END), concat_ws(', ', " +
		"CASE WHEN NOT has_table_privilege(c.oid, 'SELECT') THEN 'SELECT' END, " +
		"CASE WHEN NOT has_table_privilege(c.oid, 'INSERT') THEN 'INSERT' END, " +
		"CASE WHEN NOT has_table_privilege(c.oid, 'UPDATE') THEN 'UPDATE' END) " +
		"FROM pg_namespace n LEFT JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = " + literal(s.table) +
		" WHERE n.nspname = " + literal(s.schema))
	role, schema, table := got.first[0], got.first[1], got.first[2]
	var grants []string
	if schema != "" {
		grants = append(grants, fmt.Sprintf("GRANT %s ON SCHEMA %s TO %s", schema, identifier(s.schema), role))
	}
	if table != "" {
		grants = append(grants, fmt.Sprintf("GRANT %s ON %s TO %s", table, s.name(), role))
	}
	switch {
	case grants == nil:
		return err
	case strings.HasSuffix(schema, "CREATE"):
		err = fmt.Errorf("%w; the table is missing: make it as the manual says, or let the role make it", err)
	}
	return fmt.Errorf("%w; what is missing: %.*s", err, shownBytes, strings.Join(grants, "; "))
}

// refusal returns the error for what a server says.
func refusal(p *pgconn.PgError) error {
	said := fmt.Errorf("%w", shown{p})
	switch {
	case strings.HasPrefix(p.Code, "28"), // the password, the role, or pg_hba.conf
		p.Code == "3D000", p.Code == "3F000", // no such database, no such schema
		p.Code == "42501",                                       // a missing grant
		p.Code == "42703", p.Code == "42P10", p.Code == "42804", // another table
		p.Code == "22P05": // the database's encoding lacks a character
		return fmt.Errorf("%w: %w", workers.ErrRefused, said)
	}
	return said
}

// shown limits the text of a server's error.
type shown struct{ *pgconn.PgError }

func (s shown) Error() string {
	text := fmt.Sprintf("%.*s (SQLSTATE %.5s)", shownBytes, s.Message, s.Code)
	for _, more := range []string{s.Detail, s.Hint} {
		if more != "" {
			text += fmt.Sprintf("; %.*s", shownBytes, more)
		}
	}
	return text
}
func (s shown) Unwrap() error { return s.PgError }

// explain rewords an error of a connection to name the cause.
func explain(ctx context.Context, err error, late string) error {
	var untrusted *tls.CertificateVerificationError
	var p *pgconn.PgError
	var long *pgproto3.ExceededMaxBodyLenErr
	switch {
	case errors.As(err, &p):
		return refusal(p)
	case errors.As(err, &untrusted):
		return fmt.Errorf("%w: %w", workers.ErrRefused, untrusted)
	case errors.As(err, &long), errors.Is(err, errLong):
		return errLong
	case ctx.Err() != nil:
		return errors.New(late)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return fmt.Errorf("it closed the connection: %w", err)
	}
	var op *net.OpError
	if errors.As(err, &op) {
		return op
	}
	return err
}
