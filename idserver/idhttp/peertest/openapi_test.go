// Package peertest compares idhttp with its OpenAPI document, using a validator from another
// project. It is a separate module, so that flake does not depend on the validator.
package peertest

import (
	"bytes"
	"io"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"

	"github.com/flake-go/flake/idserver/idhttp"
	"github.com/flake-go/flake/idserver/idhttp/idhttptest"
)

// TestOpenAPI sends the requests of all cases. The document must describe every answer, and every
// response in the document must have been sent. The document must allow the requests that idhttp
// accepts, and refuse those that idhttp refuses, if a document can express that.
func TestOpenAPI(t *testing.T) {
	for _, media := range []string{"text/plain", "application/octet-stream"} {
		openapi3filter.RegisterBodyDecoder(media, openapi3filter.FileBodyDecoder)
	}
	doc, err := openapi3.NewLoader().LoadFromFile(document)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	router, err := legacy.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	servers := make(map[string]*idhttp.Door)
	seen := make(map[string]bool)
	for _, c := range idhttptest.Cases(t) {
		if servers[c.Server] == nil {
			servers[c.Server] = idhttptest.Door(t, c.Server)
		}
		w := httptest.NewRecorder()
		servers[c.Server].ServeHTTP(w, c.Request())
		route, params, err := router.FindRoute(c.Request())
		if err != nil {
			continue // not in the document: the page, or a path or method that does not exist
		}
		seen[route.Method+" "+route.Path+" "+strconv.Itoa(w.Code)] = true
		check(t, c, w, route, params)
	}
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			for code := range operation.Responses.Map() {
				if what := method + " " + path + " " + code; !seen[what] && !slices.Contains(untried, what) {
					t.Errorf("%s is in the document, but no case causes it", what)
				}
			}
		}
	}
}

// untried lists the answers in the document that no case causes.
var untried = []string{
	"GET /metrics 503",    // only concurrent requests get it
	"GET /v1/ids 413",     // the document has one list of responses for GET and POST
	"GET /v1/ids 415",     //
	"GET /v1/leases 413",  //
	"GET /v1/leases 415",  //
	"POST /v1/ids 401",    // tried with GET
	"POST /v1/ids 406",    //
	"POST /v1/ids 421",    //
	"POST /v1/leases 401", //
	"POST /v1/leases 406", //
	"POST /v1/leases 421", //
}

func check(t *testing.T, c idhttptest.Case, w *httptest.ResponseRecorder, route *routers.Route,
	params map[string]string) {
	t.Helper()
	input := &openapi3filter.RequestValidationInput{
		Request: c.Request(), PathParams: params, Route: route,
		Options: &openapi3filter.Options{
			AuthenticationFunc:    openapi3filter.NoopAuthenticationFunc,
			IncludeResponseStatus: true,
		},
	}
	err := openapi3filter.ValidateRequest(t.Context(), input)
	switch {
	case err != nil && w.Code/100 == 2:
		t.Errorf("%v: answered, although the document does not allow it: %v", c, err)
	case err == nil && c.Described:
		t.Errorf("%v: refused, although the document allows it", c)
	}
	if err := openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: w.Code, Header: w.Header(), Options: input.Options,
		Body: io.NopCloser(bytes.NewReader(w.Body.Bytes())),
	}); err != nil {
		t.Errorf("%v: %v", c, strings.ReplaceAll(err.Error(), "\n", " "))
	}
}
