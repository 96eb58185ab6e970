package idhttp_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/flake-go/flake/idserver/idhttp/idhttptest"
)

// FuzzRequest checks that every request is answered with what it asks for, or with a problem that
// says what is wrong.
func FuzzRequest(f *testing.F) {
	for _, c := range idhttptest.Cases(f) {
		if u, err := url.Parse(c.URL); err == nil && len(c.Body) < 100 {
			f.Add(c.Method, u.EscapedPath(), u.RawQuery, c.Header.Get("Accept"), c.Header.Get("Content-Type"), c.Body)
		}
	}
	server := idhttptest.Door(f, "up")
	f.Fuzz(func(t *testing.T, method, path, query, accept, media, body string) {
		if path == "/events" || path == "/metrics" {
			return // /events does not end; /metrics is slow, and another module writes its answer
		}
		r := &http.Request{
			Method: method, URL: &url.URL{Path: path, RawQuery: query}, Host: "localhost",
			Header: http.Header{"Accept": {accept}, "Content-Type": {media}},
		}
		r.Body, r.ContentLength = http.NoBody, 0
		if body != "" {
			r = r.WithContext(t.Context())
			r.Body, r.ContentLength = readCloser{strings.NewReader(body)}, int64(len(body))
		}
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		got, media := w.Body.String(), w.Header().Get("Content-Type")
		switch {
		case w.Code/100 == 3 && w.Header().Get("Location") != "":
		case w.Code == http.StatusOK:
			if media == "application/json" && !json.Valid(w.Body.Bytes()) {
				t.Errorf("not JSON: %q", got)
			}
		case w.Code == http.StatusBadRequest && strings.HasPrefix(media, "text/html"):
			if strings.Contains(got, "<script>") {
				t.Errorf("the request is in the page unescaped: %q", got)
			}
		case media == "application/problem+json":
			var p struct{ Detail string }
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Detail == "" || w.Code >= 500 {
				t.Errorf("%d, %q: %v", w.Code, got, err)
			}
		default:
			t.Errorf("%d, %s, %q", w.Code, media, got)
		}
	})
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }
