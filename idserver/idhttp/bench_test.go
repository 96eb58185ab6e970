package idhttp_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/flake-go/flake/idserver/idhttp/idhttptest"
)

// nobody is a ResponseWriter that discards the answer.
type nobody http.Header

func (n nobody) Header() http.Header       { return http.Header(n) }
func (nobody) Write(b []byte) (int, error) { return len(b), nil }
func (nobody) WriteHeader(int)             {}

func BenchmarkIDs(b *testing.B) {
	s := idhttptest.Door(b, "up")
	r := httptest.NewRequest(http.MethodGet, "/v1/ids", nil)
	r.Host = "127.0.0.1:8465"
	w := nobody{}
	b.ReportAllocs()
	for b.Loop() {
		clear(w)
		s.ServeHTTP(w, r)
	}
}
