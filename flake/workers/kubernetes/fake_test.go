package kubernetes

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// fake is an API server that does what the store needs, as a real one was seen to do it: scripts/kubernetes
// compares the two, and runs the same tests on the real one.
type fake struct {
	mu      sync.Mutex
	version int
	uids    int
	objects map[string]*stored                   // by path
	before  func(*http.Request) http.HandlerFunc // unless nil, may return a handler for the request
}

type stored struct {
	Kind     string            `json:"kind"`
	Metadata map[string]any    `json:"metadata"`
	Data     map[string]string `json:"data,omitempty"`
	Spec     any               `json:"spec,omitempty"`
}

const namespace = "ids"

func startFake(t testing.TB) (*fake, *httptest.Server) {
	f := &fake{version: 100, objects: map[string]*stored{}}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return f, server
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.before != nil {
		if h := f.before(r); h != nil {
			h(w, r)
			return
		}
	}
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	defer f.mu.Unlock()
	code, answer := f.answer(r, body)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(answer)
}

func (f *fake) answer(r *http.Request, body []byte) (int, any) {
	path := r.URL.Path
	for _, kind := range []resource{configMaps, leases} {
		all := kind.path + "/namespaces/" + namespace + "/" + kind.name
		name, one := strings.CutPrefix(path, all+"/")
		if none, ok := strings.CutPrefix(path, kind.path+"/namespaces/none/"+kind.name); ok {
			if r.Method == http.MethodPost {
				return failure(404, "NotFound", `namespaces "none" not found`, "none", "namespaces")
			}
			return failure(404, "NotFound", "not found", strings.TrimPrefix(none, "/"), kind.name)
		}
		o := f.objects[path]
		switch {
		case path == all && r.Method == http.MethodPost:
			o = &stored{}
			if json.Unmarshal(body, o) != nil {
				return failure(400, "BadRequest", "bad JSON", "", "")
			}
			name, _ := o.Metadata["name"].(string)
			if f.objects[all+"/"+name] != nil {
				return failure(409, "AlreadyExists", fmt.Sprintf("%s %q already exists", kind.name, name), name, kind.name)
			}
			f.uids++
			o.Metadata["uid"] = fmt.Sprintf("00000000-0000-0000-0000-%012d", f.uids)
			f.objects[all+"/"+name] = o
			f.wrote(o)
			return 201, o
		case !one:
			continue
		case o == nil:
			return failure(404, "NotFound", fmt.Sprintf("%s %q not found", kind.name, name), name, kind.name)
		case r.Method == http.MethodGet:
			return 200, o
		case r.Method == http.MethodDelete:
			delete(f.objects, path)
			f.version++
			return failure(200, "", "", name, kind.name)
		case r.Method == http.MethodPatch && r.Header.Get("Content-Type") == "application/json-patch+json":
			changed, ok := o.patch(body)
			if !ok {
				return failure(422, "Invalid", "the server rejected our request due to an error in our request", "", "")
			}
			size := 0
			for _, text := range changed.Data {
				size += len(text)
			}
			if size > 1<<20 {
				return failure(422, "Invalid", `ConfigMap "x" is invalid: []: Too long: may not be more than 1048576 bytes`, name,
					kind.kind)
			}
			f.objects[path] = changed
			f.wrote(changed)
			if r.Header.Get("Accept") == onlyMetadata {
				return 200, stored{Kind: "PartialObjectMetadata", Metadata: changed.Metadata}
			}
			return 200, changed
		}
	}
	return failure(404, "NotFound", "the server could not find the requested resource", "", "")
}

func (f *fake) wrote(o *stored) {
	f.version++
	o.Metadata["resourceVersion"] = fmt.Sprint(f.version)
}

// patch applies a JSON Patch with the operations that the store uses.
func (o *stored) patch(body []byte) (*stored, bool) {
	text, _ := json.Marshal(o)
	tree := map[string]any{}
	var ops []operation
	if json.Unmarshal(text, &tree) != nil || json.Unmarshal(body, &ops) != nil {
		return nil, false
	}
	for _, op := range ops {
		at := strings.Split(op.Path, "/")[1:]
		into := tree
		for _, name := range at[:len(at)-1] {
			if into, _ = into[name].(map[string]any); into == nil {
				return nil, false
			}
		}
		last := at[len(at)-1]
		switch op.Op {
		case "test":
			if is, want := fmt.Sprint(into[last]), fmt.Sprint(op.Value); is != want {
				return nil, false
			}
		case "add":
			into[last] = op.Value
		case "remove":
			delete(into, last)
		default:
			return nil, false
		}
	}
	delete(tree["metadata"].(map[string]any), "managedFields")
	changed := &stored{}
	text, _ = json.Marshal(tree)
	return changed, json.Unmarshal(text, changed) == nil
}

func failure(code int, reason, message, name, kind string) (int, any) {
	d := map[string]any{}
	if name != "" {
		d = map[string]any{"name": name, "kind": kind}
	}
	return code, map[string]any{"kind": "Status", "reason": reason, "message": message, "details": d, "code": code}
}

// answerTo writes the answer to a request without a body.
func (f *fake) answerTo(t *testing.T, method, path string, w http.ResponseWriter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	code, answer := f.answer(httptest.NewRequest(method, path, nil), nil)
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		t.Error(err)
	}
}
