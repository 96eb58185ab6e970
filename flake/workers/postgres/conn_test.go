//go:build unix

package postgres

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/flake-go/flake/flake/workers"
)

// A host has several ways to connect if sslmode allows both, and keeps what its URL sets.
func TestHostsOf(t *testing.T) {
	for _, tt := range []struct {
		url      string
		password func() (string, error)
		want     string // the hosts with the modes of each, in order, the password and the name of the application
	}{
		{"postgres://u:p@a:1/d?sslmode=disable", nil, "a:1 plain; p flake"},
		{"postgres://u:p@a:1,b:2/d?sslmode=prefer", nil, "a:1 TLS plain; b:2 TLS plain; p flake"},
		{"postgres://u@a:1,b:2/d?sslmode=require&application_name=x&target_session_attrs=primary", nil,
			"a:1 TLS; b:2 TLS;  x"},
		{"postgres://u:p@a:1,a:2/d?sslmode=allow", func() (string, error) { return "q", nil },
			"a:1 plain TLS; a:2 plain TLS; q flake"},
		{"postgres://u:p@a:1/d", func() (string, error) { return "", errLong }, errLong.Error()},
	} {
		s := open(t, Config{URL: tt.url, Password: tt.password})
		hosts, err := s.hosts()
		var got strings.Builder
		for _, h := range hosts {
			got.WriteString(h.name)
			first := &pgconn.FallbackConfig{Host: h.config.Host, TLSConfig: h.config.TLSConfig}
			for _, at := range append([]*pgconn.FallbackConfig{first}, h.config.Fallbacks...) {
				got.WriteString(map[bool]string{true: " plain", false: " TLS"}[at.TLSConfig == nil])
				if at.Host != h.name[:1] {
					t.Errorf("%s: %s of %s", tt.url, at.Host, h.name)
				}
			}
			got.WriteString("; ")
			if h.config.ValidateConnect != nil || h.config.MaxProtocolMessageBodyLen != maxAnswer ||
				h.config.RuntimeParams["client_encoding"] != "UTF8" {
				t.Errorf("%s: %+v", tt.url, h.config)
			}
		}
		if err != nil {
			got.WriteString(err.Error())
		} else {
			fmt.Fprint(&got, hosts[0].config.Password, " ", hosts[0].config.RuntimeParams["application_name"])
		}
		if got.String() != tt.want {
			t.Errorf("%s: %s, want %s", tt.url, &got, tt.want)
		}
	}
	s := open(t, Config{URL: "postgres://a:1/d"})
	t.Setenv("PGSSLMODE", "none") // read for each call
	if hosts, err := s.hosts(); err == nil {
		t.Errorf("with an invalid mode: %v", hosts)
	}
}

// A server ends the wait for a lock, and says so, before it ends the statement.
func TestTimeouts(t *testing.T) {
	begin := open(t, Config{}).begin(time.Second)
	if !strings.Contains(begin, "statement_timeout = 1000;") || !strings.Contains(begin, "lock_timeout = 750;") {
		t.Error(begin)
	}
}

// field describes a column of a table.
func field(table uint32) string {
	return message('T', "\x00\x01k\x00"+string(binary.BigEndian.AppendUint32(nil, table))+strings.Repeat("\x00", 14))
}

// Only what the statements after begin return are pairs, and only rows with two values.
func TestAnswer(t *testing.T) {
	to := pgproto3.NewFrontend(strings.NewReader(field(6)+row("1", "2")+message('C', "SELECT 1\x00")+message('I', "")+
		message('N', "SNOTICE\x00VNOTICE\x00C00000\x00Mm\x00\x00")+
		field(7)+row("a", "1")+row("b")+row("c", "3", "x")+message('C', "SELECT 3\x00")+message('Z', "I")), io.Discard)
	got, err := (&conn{ctx: t.Context(), to: to}).ask("")
	if err != nil || got.first != [10]string{"1", "2"} || !maps.Equal(got.pairs, map[string]string{"a": "1"}) ||
		got.table != 7 || got.tag != "SELECT 3" {
		t.Errorf("%+v, %v", got, err)
	}
	only := field(6) + row("1") + message('C', "SELECT 1\x00") + message('Z', "I")
	to = pgproto3.NewFrontend(strings.NewReader(only), io.Discard)
	if got, err := (&conn{ctx: t.Context(), to: to}).ask(""); got.table != 0 || err != nil {
		t.Errorf("the table of what begin returns is %d, %v", got.table, err)
	}
	long := strings.Repeat(message('I', ""), maxMessages-1) + message('Z', "I")
	for more, want := range map[string]error{"": nil, message('I', ""): errLong} {
		to := pgproto3.NewFrontend(strings.NewReader(more+long), io.Discard)
		if _, err := (&conn{ctx: t.Context(), to: to}).ask(""); !errors.Is(err, want) {
			t.Errorf("%d more messages than allowed: %v", len(more)/5, err)
		}
	}
}

// A connection that is counted ends after its bytes, or earlier if each read returns few. Their number may change
// while pgconn reads.
func TestCounted(t *testing.T) {
	here, there := net.Pipe()
	defer here.Close()
	c := &counted{Conn: here}
	c.left.Store(1)
	var first [1]byte
	read := make(chan error)
	go func() {
		_, err := c.Read(first[:])
		read <- err
	}()
	c.left.Store(3*leastRead + 4)
	go func() {
		defer there.Close()
		for _, text := range []string{"a", "b", strings.Repeat("c", 2*leastRead)} {
			io.WriteString(there, text)
		}
	}()
	if err := <-read; err != nil {
		t.Fatal(err)
	}
	got, b := string(first[:]), make([]byte, 4*leastRead)
	n, err := c.Read(b)
	for ; err == nil; n, err = c.Read(b) {
		got += string(b[:n])
	}
	if got != "ab"+strings.Repeat("c", leastRead+4) || !errors.Is(err, errLong) {
		t.Errorf("%d bytes, %q, %v", len(got), got, err)
	}
}

// What an operator must correct is refused. An error says what the server says, or why there is no answer.
func TestExplain(t *testing.T) {
	for code, refused := range map[string]bool{"28P01": true, "3D000": true, "3F000": true, "42501": true, "42703": true,
		"42P10": true, "42804": true, "22P05": true, "53300": false} {
		err := explain(t.Context(), &pgconn.PgError{Code: code, Message: "m", Detail: "d", Hint: "h"}, "late")
		if errors.Is(err, workers.ErrRefused) != refused || !strings.HasSuffix(err.Error(), "m (SQLSTATE "+code+"); d; h") {
			t.Errorf("%s: %v", code, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	op := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	untrusted := &tls.CertificateVerificationError{Err: errors.New("untrusted")}
	for _, tt := range []struct {
		ctx  context.Context
		err  error
		want string
	}{
		{ended, &pgconn.PgError{Code: "40001", Message: strings.Repeat("é", 500)},
			strings.Repeat("é", shownBytes) + " (SQLSTATE 40001)"},
		{ended, untrusted, fmt.Sprintf("%v: %v", workers.ErrRefused, untrusted)},
		{ended, &pgproto3.ExceededMaxBodyLenErr{}, errLong.Error()},
		{ended, fmt.Errorf("x: %w", errLong), errLong.Error()},
		{ended, io.EOF, "late"},
		{t.Context(), io.EOF, "it closed the connection: EOF"},
		{t.Context(), io.ErrUnexpectedEOF, "it closed the connection: unexpected EOF"},
		{t.Context(), syscall.ECONNRESET, "it closed the connection: connection reset by peer"},
		{t.Context(), fmt.Errorf("x: %w", op), op.Error()},
		{t.Context(), errors.New("other"), "other"},
	} {
		err := explain(tt.ctx, tt.err, "late")
		if err.Error() != tt.want || errors.Is(err, workers.ErrRefused) != (tt.err == error(untrusted)) {
			t.Errorf("%v: %v, want %s", tt.err, err, tt.want)
		}
	}
}

// A table that does not survive a crash is refused; a server that does not write is not. In any case the connection
// is closed.
func TestPost(t *testing.T) {
	const ready = "\x00\x00\x00\x00"
	done := message('C', "INSERT 0 1\x00") + message('Z', "I")
	of := func(values ...string) string { return described + row(values...) + done }
	failed := func(code string) string {
		return message('E', "SERROR\x00C"+code+"\x00Mwoe\x00\x00") + message('Z', "I")
	}
	for name, tt := range map[string]struct {
		answer  string
		ok      bool
		sent    bool
		refused bool
		only    bool // it accepts no writes
		place   place
	}{
		"a table": {answer: of("1", "2", "3", "r", "p", "0000000A", "7", "off", "on", "8"), ok: true, sent: true,
			place: place{1, 2, 3, 10}},
		"made anew": {answer: described + row("1", "2", "3", "r", "p", "0000000A", "7", "off", "on", "8") + field(9) + done,
			ok: true, sent: true, place: place{1, 2, 9, 10}},
		"long": {answer: described + row("1", "2", "3", "r", "p", "0000000A", "7", "off", "on", "8") +
			described + strings.Repeat(row("k", strings.Repeat("v", maxText)), 2*maxAnswer/maxText) + done,
			ok: true, sent: true, place: place{1, 2, 3, 10}},
		"a view":     {answer: of("1", "2", "3", "v", "p", "0000000A", "7", "off", "on", "8"), sent: true, refused: true},
		"unlogged":   {answer: of("1", "2", "3", "r", "u", "0000000A", "7", "off", "on", "8"), sent: true, refused: true},
		"read only":  {answer: of("1", "2", "3", "r", "p", "0000000A", "7", "on", "on", "8"), only: true},
		"no number":  {answer: of("1", "x", "3", "r", "p", "0000000A", "7", "off", "on", "8"), sent: true},
		"a timeline": {answer: of("1", "2", "3", "r", "p", "x", "7", "off", "on", "8"), sent: true},
		"a standby":  {answer: failed("55000"), only: true},
		"read-only":  {answer: failed("25006"), only: true},
		"a fault":    {answer: failed("40001"), sent: true},
		"refused": {answer: strings.Replace(failed("3F000"), message('Z', "I"), message('Z', "E"), 1),
			sent: true, refused: true},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		arrived := make(chan string, 1)
		go func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Read(make([]byte, 1<<10))
			go io.WriteString(c, message('R', ready)+message('Z', "I")+tt.answer)
			all, _ := io.ReadAll(c)
			arrived <- string(all)
		}()
		s := open(t, Config{URL: url(l.Addr().String())})
		hosts, err := s.hosts()
		if err != nil {
			t.Fatal(err)
		}
		got, sent, err := s.post(limited(t, patience), hosts[0], "SELECT 5")
		if (err == nil) != tt.ok || sent != tt.sent || errors.Is(err, workers.ErrRefused) != tt.refused ||
			errors.Is(err, errReadOnly) != tt.only || got.place != tt.place || tt.ok && got.ends != (ends{7, 8}) {
			t.Errorf("%s: %+v, %t, %v", name, got, sent, err)
		}
		if all := <-arrived; !strings.HasSuffix(all, "SELECT 5\x00"+message('X', "")) {
			t.Errorf("%s: %q arrived", name, all)
		}
		l.Close()
		if _, sent, err := s.post(limited(t, patience), hosts[0], ""); sent || err == nil {
			t.Errorf("%s: after the listener has closed: %t, %v", name, sent, err)
		}
	}
}

// A call that ends while the server is silent says so.
func TestSilent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(limited(t, patience))
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		b := make([]byte, 1<<10)
		c.Read(b)
		io.WriteString(c, message('R', "\x00\x00\x00\x00")+message('Z', "I"))
		c.Read(b) // the query
		cancel()
		io.Copy(io.Discard, c)
	}()
	hosts, err := open(t, Config{URL: url(l.Addr().String())}).hosts()
	if err != nil {
		t.Fatal(err)
	}
	_, sent, err := (&Store{}).post(ctx, hosts[0], "")
	if !sent || err == nil || !strings.Contains(err.Error(), "no answer in time") {
		t.Errorf("%t, %v", sent, err)
	}
}
