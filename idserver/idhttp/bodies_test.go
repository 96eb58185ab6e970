package idhttp_test

import (
	"context"
	"errors"
	"math"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/idserver/idhttp"
	"github.com/flake-go/flake/idserver/idhttp/idhttptest"
)

// hundreds is a source that always returns the same ids: runs of 100, with one id left out after
// each.
type hundreds struct {
	formats.Source
	next formats.Number
}

func (s *hundreds) Reserve(_ context.Context, n int, _ uint8) (formats.Run, error) {
	run := formats.Run{First: s.next, Count: min(n, 100)}
	s.next = s.next.Plus(run.Count + 1)
	return run, nil
}

func (*hundreds) PerTick() int           { return 1 << 16 }
func (*hundreds) Last() (uint64, uint32) { return 1795208692979, 0 }
func (*hundreds) Waits() uint64          { return 7 }
func (*hundreds) Ready() error           { return nil }

// ofHundreds returns the i-th id of hundreds.
func ofHundreds(milli uint64, i int) flake.ID {
	return flake.Make(milli, idhttptest.Worker, uint16(i+i/100))
}

func newHundreds(t *testing.T, milli uint64) *idhttp.Door {
	t.Helper()
	generator, err := flake.NewGenerator(idhttptest.Worker, flake.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ids := &hundreds{formats.Flake(generator), formats.Number{Hi: milli, Lo: uint64(idhttptest.Worker) << 16}}
	return idhttp.New(idhttp.Options{Generators: []idhttp.Generator{{Name: "flake", Server: &idserver.Server{IDs: ids}}}})
}

func idsRequest(url, accept string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, url, nil)
	r.Host = "localhost"
	r.Header.Set("Accept", accept)
	return r
}

// Each form of an answer contains each id once, and nothing else.
func TestBodies(t *testing.T) {
	const milli = 1795208692979
	id := func(i int) string { return ofHundreds(milli, i).String() }
	raw := func(i int) string { b := ofHundreds(milli, i); return string(b[:]) }
	lowest, highest := flake.Make(1, 0, 0), flake.Make(2, flake.MaxWorker, math.MaxUint16)
	for _, tt := range []struct{ url, accept, want string }{
		{"/v1/ids", "text/plain", id(0) + "\n"},
		{"/v1/ids", "application/json", `{"ids":["` + id(0) + `"]}` + "\n"},
		{"/v1/ids", "application/octet-stream", raw(0)},
		{"/v1/ids?n=2", "text/plain", id(0) + "\n" + id(1) + "\n"},
		{"/v1/ids?n=2", "application/json", `{"ids":["` + id(0) + `","` + id(1) + `"]}` + "\n"},
		{"/v1/ids?n=2", "application/octet-stream", raw(0) + raw(1)},
		{"/v1/leases", "text/plain", id(0) + " 1\n"},
		{"/v1/leases?n=150", "text/plain", id(0) + " 100\n" + id(100) + " 50\n"},
		{"/v1/leases?n=150", "application/json",
			`{"leases":[{"first":"` + id(0) + `","count":100},{"first":"` + id(100) + `","count":50}]}` + "\n"},
		{"/v1/leases?n=150", "application/octet-stream", raw(0) + "\x00\x00\x00\x64" + raw(100) + "\x00\x00\x00\x32"},
		{"/v1/notional?from=1", "text/plain", flake.Make(1, 0, 0).String() + "\n"},
		{"/v1/notional?from=1&to=2", "text/plain", lowest.String() + "\n" + highest.String() + "\n"},
		{"/v1/notional?from=1&to=1", "text/plain",
			lowest.String() + "\n" + flake.Make(1, flake.MaxWorker, math.MaxUint16).String() + "\n"},
		{"/v1/notional?from=1&to=2", "application/octet-stream", string(lowest[:]) + string(highest[:])},
		{"/v1/notional?from=1", "application/json", `{"id":"` + lowest.String() + `"}` + "\n"},
		{"/v1/notional?from=1&to=2", "application/json",
			`{"lowest":"` + lowest.String() + `","highest":"` + highest.String() + `"}` + "\n"},
	} {
		w := httptest.NewRecorder()
		newHundreds(t, milli).ServeHTTP(w, idsRequest(tt.url, tt.accept))
		if got := w.Body.String(); got != tt.want {
			t.Errorf("%s, %s: %q, want %q", tt.url, tt.accept, got, tt.want)
		}
		if media := w.Header().Get("Content-Type"); !strings.HasPrefix(media, tt.accept) {
			t.Errorf("%s, %s: %s", tt.url, tt.accept, media)
		}
	}
}

// few is a source with few ids per tick.
type few struct {
	formats.Source
	perTick int
}

func (s few) PerTick() int { return s.perTick }

// A request for more ids than 1,024 ticks have is refused, and the problem names the maximum.
func TestMostIDs(t *testing.T) {
	for _, tt := range []struct {
		perTick int
		url     string
		status  int
		allowed string
	}{
		{1, "/v1/ids?n=1024", http.StatusOK, ""},
		{1, "/v1/ids?n=1025", http.StatusBadRequest, "an integer from 1 to 1024"},
		{1, "/v1/leases?n=1025", http.StatusBadRequest, "an integer from 1 to 1024"},
		{64, "/v1/ids?n=65537", http.StatusBadRequest, "an integer from 1 to 65536"},
		{64, "/v1/leases?n=65537", http.StatusBadRequest, "an integer from 1 to 65536"},
	} {
		s := newHundreds(t, 1)
		s.Generators[0].Server.IDs = few{s.Generators[0].Server.IDs, tt.perTick}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, idsRequest(tt.url, "*/*"))
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.allowed) {
			t.Errorf("%d ids a tick, %s: %d, %.200s", tt.perTick, tt.url, w.Code, w.Body)
		}
	}
}

// pieces records the writes of an answer. If failing is set, every write fails.
type pieces struct {
	http.ResponseWriter
	all     []string
	failing bool
}

func (p *pieces) Write(b []byte) (int, error) {
	p.all = append(p.all, string(b))
	if p.failing {
		return 0, errors.New("the caller has gone")
	}
	return len(b), nil
}

// An answer with many long ids is complete, and is written in pieces that take little memory. It
// ends at the first write that fails.
func TestManyIDs(t *testing.T) {
	const n, maxPiece = 60000, 16 << 10
	for _, tt := range []struct {
		url, between string
		step         int
	}{
		{"/v1/ids?base=2&n=60000", "\n", 1},
		{"/v1/leases?base=2&n=60000", " 100\n", 100},
	} {
		w := &pieces{ResponseWriter: httptest.NewRecorder()}
		newHundreds(t, math.MaxUint64).ServeHTTP(w, idsRequest(tt.url, "text/plain"))
		var want strings.Builder
		number := new(big.Int)
		for i := 0; i < n; i += tt.step {
			id := ofHundreds(math.MaxUint64, i)
			want.WriteString(number.SetBytes(id[:]).Text(2) + tt.between)
		}
		if strings.Join(w.all, "") != want.String() {
			t.Errorf("%s: the answer has other ids", tt.url)
		}
		if few := 2 + 2*want.Len()/maxPiece; len(w.all) > few {
			t.Errorf("%s: %d pieces for %d bytes", tt.url, len(w.all), want.Len())
		}
		for _, piece := range w.all {
			if len(piece) > maxPiece {
				t.Errorf("%s: a piece of %d bytes", tt.url, len(piece))
			}
		}
		w = &pieces{ResponseWriter: w.ResponseWriter, failing: true}
		if newHundreds(t, 0).ServeHTTP(w, idsRequest(tt.url, "text/plain")); len(w.all) != 1 {
			t.Errorf("%s: %d writes after the first one failed", tt.url, len(w.all)-1)
		}
	}
}
