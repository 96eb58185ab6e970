// Package idhttptest provides servers of package idhttp in various conditions, and requests
// with the expected answers, for that package's tests and those of peers.
package idhttptest

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/idserver/idhttp"
	"github.com/flake-go/flake/node/traffic"
)

// Token is the token of the server "token".
const Token = "0123456789abcdef"

// Worker is the worker of the generators.
const Worker flake.Worker = 0x02fc00000001

// Door returns a door in one of these conditions:
//
//	up       all is well; there are the generators flake and orders
//	token    callers must send the token
//	any      any host may be named
//	behind   the clock is an hour behind the last id
//	unsaved  the time cannot be saved
//	closed   the node is shutting down
//	formats  there are the generators flake, orders of snowflake and events of sno
//	wide     there are the generators flake, uuids of uuidv7 and ulids of ulid
//	many     there are 21 generators
func Door(t testing.TB, condition string) *idhttp.Door {
	o := idhttp.Options{
		Node: idhttp.Node{
			Name: "flake@127.0.0.1", Address: "127.0.0.1:46073", Version: "0.1.0", Commit: "0123456",
			Traffic: counts, Peers: peers,
		},
		Recent: new(idhttp.Recent),
	}
	o.Log = slog.New(o.Recent.Handler())
	clock, ahead := flake.SystemClock(), uint64(0)
	ids := open(t, "flake", formats.Options{"worker_id": int64(Worker)}, func() uint64 { return clock() + ahead })
	events := func(partition int64) formats.Source {
		return open(t, "sno", formats.Options{"partition": partition}, nil)
	}
	var trouble error // in extending the mark in the store
	from := func() idserver.Origin {
		return idserver.Origin{From: "store", Until: time.Now().Add(9*time.Minute + 30*time.Second), Err: trouble}
	}
	add := func(name string, ids formats.Source) {
		o.Generators = append(o.Generators, idhttp.Generator{Name: name, Server: &idserver.Server{IDs: ids, From: from}})
	}
	switch condition {
	case "up":
	case "token":
		o.Access.Token = Token
	case "any":
		o.Access.AnyHost = true
	case "behind":
		ahead = 3600_000
		if _, err := ids.Reserve(t.Context(), 1, 0); err != nil {
			t.Fatal(err)
		}
		ahead = 0
	case "unsaved":
		ids = failing{ids, flake.ErrTimestampNotSaved}
		trouble = errors.New("the store at 127.0.0.1: no answer in time")
	case "closed":
		ids = failing{ids, flake.ErrClosed}
	case "formats":
		from = nil
		add("flake", ids)
		add("orders", open(t, "snowflake", formats.Options{"epoch": 1577836800000, "datacenter": 9, "worker": 23}, nil))
		add("events", events(7))
	case "wide":
		from = nil
		worker := formats.Options{"worker_id": int64(Worker)}
		add("flake", ids)
		add("uuids", open(t, "uuidv7", worker, nil))
		add("ulids", open(t, "ulid", worker, nil))
	case "many":
		add("flake", ids)
		for i := range int64(20) {
			add(fmt.Sprintf("events_%d", i), events(i))
		}
	default:
		t.Fatalf("no server %q", condition)
	}
	if len(o.Generators) == 0 {
		add("flake", ids)
		add("orders", ids)
	}
	return idhttp.New(o)
}

// open returns a source of ids of a format, with a mark.
func open(t testing.TB, format string, o formats.Options, clock func() uint64) formats.Source {
	plan, err := formats.KindOf(format).Plan(o)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := plan.Open(t.Context(), "", flake.Options{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	return marked{ids}
}

// counts returns some traffic of a node.
func counts() traffic.Counts {
	t := traffic.Counts{
		Connections: 2, Connected: 3, Received: 4, Sent: 5,
		HandshakeFailures: map[string]uint64{"wrong_cookie": 6}, Closes: map[string]uint64{"frame_too_long": 7},
	}
	t.Latency.Calls[2], t.Latency.Sum = 8, 0.009
	return t
}

// peers returns two nodes. The second takes more ids: 1,000 a second, averaged over so long a
// time that delays in a test do not change the rate.
func peers() []traffic.Peer {
	now := time.Now()
	at := func(port int) net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port} }
	return []traffic.Peer{
		{Name: "orders@127.0.0.1", Address: at(39932), Since: now.Add(-time.Hour)},
		{Name: "payments@127.0.0.1", Address: at(39920), Since: now.Add(-1000 * time.Hour), IDs: 3_600_000_000},
	}
}

// marked is a source with a mark, which moves with the clock.
type marked struct{ formats.Source }

func (marked) Mark() time.Time { return time.Now().Add(2500 * time.Millisecond) }

// failing is a source that cannot return ids.
type failing struct {
	formats.Source
	err error
}

func (f failing) Reserve(context.Context, int, uint8) (formats.Run, error) {
	return formats.Run{}, f.err
}

func (f failing) Ready() error { return f.err }

func (f failing) LastSaved() (time.Time, error) { return time.Unix(1000, 0), f.err }
func (f failing) Mark() time.Time               { return time.Now().Add(-10 * time.Second) }

// Case is a request and the expected answer.
type Case struct {
	Line      int
	Server    string
	Method    string
	URL       string
	Header    http.Header
	Body      string
	Status    int
	Answer    string // the media type, or the problem's parameter
	Contains  string
	Described bool // whether openapi.yaml shows that the request is wrong
}

func (c Case) String() string { return fmt.Sprintf("cases.tsv:%d: %s %s", c.Line, c.Method, c.URL) }

// Request returns the request.
func (c Case) Request() *http.Request {
	r := httptest.NewRequest(c.Method, c.URL, strings.NewReader(c.Body))
	r.Host = "127.0.0.1:8465"
	for name, values := range c.Header {
		r.Header[name] = values
	}
	if host := r.Header.Get("Host"); host != "" {
		r.Host = host
	}
	return r
}

//go:embed cases.tsv
var cases string

// Cases reads cases.tsv.
func Cases(t testing.TB) []Case {
	var all []Case
	lines := bufio.NewScanner(strings.NewReader(cases))
	for n := 1; lines.Scan(); n++ {
		if line := lines.Text(); line != "" && line[0] != '#' {
			all = append(all, parse(t, n, line))
		}
	}
	if len(all) == 0 {
		t.Fatal("cases.tsv is empty")
	}
	return all
}

func parse(t testing.TB, n int, line string) Case {
	columns := strings.Split(line, "\t")
	if len(columns) != 8 {
		t.Fatalf("cases.tsv:%d: %d columns, want 8", n, len(columns))
	}
	for i := range columns {
		if columns[i] == "-" {
			columns[i] = ""
		}
	}
	c := Case{Line: n, Server: columns[0], Header: http.Header{}, Body: columns[3], Answer: columns[5],
		Contains: columns[6], Described: columns[7] == "described"}
	c.Method, c.URL, _ = strings.Cut(columns[1], " ")
	for header := range strings.SplitSeq(columns[2], "|") {
		if name, value, ok := strings.Cut(header, ": "); ok {
			c.Header.Add(name, value)
		}
	}
	var err error
	if c.Status, err = strconv.Atoi(columns[4]); err != nil {
		t.Fatalf("cases.tsv:%d: %v", n, err)
	}
	return c
}
