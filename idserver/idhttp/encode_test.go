package idhttp

import (
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"

	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/idserver"
)

// watched is a ResponseWriter that counts the writes before another goroutine has run.
type watched struct {
	http.ResponseWriter
	ran    chan struct{}
	writes int
}

func (w *watched) Write(b []byte) (int, error) {
	select {
	case <-w.ran:
	default:
		w.writes++
	}
	return len(b), nil
}

// A long answer lets other goroutines run.
func TestOthersFirst(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	s := New(Options{Generators: flakes(t)})
	r := httptest.NewRequest(http.MethodGet, "http://localhost/v1/ids?n=1000&base=2", nil)
	w := &watched{ResponseWriter: httptest.NewRecorder(), ran: make(chan struct{})}
	q, fault := s.ask(r, mustRead(t, r, ofIDs), idserver.MaxMany)
	if fault != nil {
		t.Fatal(fault)
	}
	runs, err := q.take(r, idserver.KindGetMany, 1000)
	if err != nil {
		t.Fatal(err)
	}
	go close(w.ran)
	q.writeIDs(w, runs)
	if w.writes > 3 { // of 8; the scheduler is not always fair
		t.Errorf("%d pieces were written before another goroutine ran", w.writes)
	}
}

// gone is a ResponseWriter whose caller has gone.
type gone struct{ http.ResponseWriter }

func (gone) Write([]byte) (int, error) { return 0, net.ErrClosed }

// Once the caller has gone, no more ids are encoded.
func TestCallerGone(*testing.T) {
	q := &question{format: formats.KindOf("flake").Format(nil), media: text, base: formats.Canonical}
	q.writeIDs(gone{httptest.NewRecorder()}, []formats.Run{{Count: math.MaxInt}}) // would take minutes or years
}

// mustRead returns the parameters of a request.
func mustRead(t *testing.T, r *http.Request, known []string) parameters {
	t.Helper()
	p, fault := readParameters(r, nil, known)
	if fault != nil {
		t.Fatal(fault)
	}
	return p
}
