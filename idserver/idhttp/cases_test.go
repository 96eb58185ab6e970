package idhttp_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/flake-go/flake/idserver/idhttp"
	"github.com/flake-go/flake/idserver/idhttp/idhttptest"
)

// TestCases sends the requests of cases.tsv, valid and invalid.
func TestCases(t *testing.T) {
	servers := make(map[string]*idhttp.Door)
	for _, c := range idhttptest.Cases(t) {
		if servers[c.Server] == nil {
			servers[c.Server] = idhttptest.Door(t, c.Server)
		}
		w := httptest.NewRecorder()
		servers[c.Server].ServeHTTP(w, c.Request())
		checkCase(t, c, w)
	}
}

func checkCase(t *testing.T, c idhttptest.Case, w *httptest.ResponseRecorder) {
	t.Helper()
	body, h := w.Body.String(), w.Header()
	media, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	if w.Code != c.Status || !strings.Contains(body, c.Contains) {
		t.Errorf("%v: %d, %.300q, want %d, %q", c, w.Code, body, c.Status, c.Contains)
		return
	}
	if media != "application/problem+json" {
		if c.Answer != "" && media != c.Answer {
			t.Errorf("%v: %s, want %s", c, media, c.Answer)
		}
		return
	}
	var p struct {
		Type, Title, Detail, Parameter, Allowed string
		Status                                  int
	}
	err := json.Unmarshal(w.Body.Bytes(), &p)
	switch {
	case err != nil, p.Type == "", p.Title == "", p.Detail == "", p.Status != w.Code:
		t.Errorf("%v: %v: not a problem of RFC 9457: %s", c, err, body)
	case strconv.Quote(p.Parameter) != `"`+c.Answer+`"`:
		t.Errorf("%v: parameter %q, want %q", c, p.Parameter, c.Answer)
	case (p.Parameter != "" || w.Code == http.StatusNotAcceptable) && p.Allowed == "":
		t.Errorf("%v: %s does not say what is allowed", c, body)
	case p.Parameter != "" && p.Type != "/openapi.yaml#bad-parameter":
		t.Errorf("%v: type %s", c, p.Type)
	case h.Get("Cache-Control") != "no-store":
		t.Errorf("%v: Cache-Control: %s", c, h["Cache-Control"])
	case (w.Code == http.StatusServiceUnavailable) != (h.Get("Retry-After") != ""):
		t.Errorf("%v: Retry-After: %s", c, h["Retry-After"])
	case c.Body == "" && c.Server != "token" && h.Get("Connection") != "":
		t.Errorf("%v: Connection: %s", c, h["Connection"])
	case w.Code == http.StatusUnauthorized && h.Get("WWW-Authenticate") == "":
		t.Errorf("%v: no WWW-Authenticate", c)
	case w.Code == http.StatusMethodNotAllowed && h.Get("Allow") == "":
		t.Errorf("%v: no Allow", c)
	}
}
