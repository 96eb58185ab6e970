package peertest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers/legacy"
	_ "github.com/oapi-codegen/runtime" // imported by the code that oapi-codegen generates

	"github.com/flake-go/flake/idserver/idhttp/idhttptest"
)

const document = "../openapi.yaml"

// TestGeneratedGo generates a client from the document with oapi-codegen, and calls every
// operation.
func TestGeneratedGo(t *testing.T) {
	dir := t.TempDir()
	api, overlay := filepath.Join(dir, "api.go"), filepath.Join(dir, "overlay.json")
	run(t, "go", "tool", "oapi-codegen", "-generate", "types,client", "-package", "main", "-o", api, document)
	place, err := filepath.Abs("testdata/go/api.go")
	if err != nil {
		t.Fatal(err)
	}
	replace := fmt.Sprintf(`{"Replace": {%q: %q}}`, place, api)
	if err := os.WriteFile(overlay, []byte(replace), 0o600); err != nil {
		t.Fatal(err)
	}
	everyOperation(t, "go", "run", "-overlay", overlay, "./testdata/go")
}

// TestGeneratedTypeScript is like TestGeneratedGo, with openapi-typescript and openapi-fetch.
func TestGeneratedTypeScript(t *testing.T) {
	if _, err := os.Stat("testdata/npm/node_modules"); err != nil {
		t.Fatal("install its packages: npm install --prefix idserver/idhttp/peertest/testdata/npm --no-save " +
			"--no-package-lock")
	}
	dir, err := os.MkdirTemp("testdata/npm", "made-") // where the packages are found
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	const bin = "testdata/npm/node_modules/.bin/"
	run(t, bin+"openapi-typescript", document, "-o", filepath.Join(dir, "api.d.ts"))
	calls, err := os.ReadFile("testdata/npm/calls.ts")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "calls.ts"), calls, 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, bin+"tsc", "--strict", "--target", "es2022", "--module", "nodenext", filepath.Join(dir, "calls.ts"))
	everyOperation(t, "node", filepath.Join(dir, "calls.js"))
}

// everyOperation runs a program with the URL of a server as its last argument. It must
// call every operation of the document, and exit with status 0.
func everyOperation(t *testing.T, program ...string) {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile(document)
	if err != nil {
		t.Fatal(err)
	}
	router, err := legacy.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	ids := idhttptest.Door(t, "formats")
	var mu sync.Mutex
	called := make(map[string]bool)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		route, _, err := router.FindRoute(r)
		mu.Lock()
		if err == nil {
			called[route.Operation.OperationID] = true
		}
		mu.Unlock()
		ids.ServeHTTP(w, r)
	}))
	defer server.Close()
	run(t, append(program, server.URL)...)
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			if id := operation.OperationID; id == "" || !called[id] {
				t.Errorf("%s %s, operation %q, was not called", method, path, id)
			}
		}
	}
}

func run(t *testing.T, program ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), program[0], program[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", program, err, out)
	}
}
