//go:build kubernetes

// These tests need a real API server: scripts/kubernetes builds it and runs them.

package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/kubernetes/kubernetestest"
	"github.com/flake-go/flake/flake/workers/storetest"
)

// rules are the least rights of a node.
const rules = `[
	{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]},
	{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["flake-numbers"], "verbs": ["get", "patch"]},
	{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
	{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": ["flake-numbers"], "verbs": ["get"]}]`

// start starts a real API server. Stores have the least rights.
func start(t *testing.T, args ...string) (*kubernetestest.Server, Config) {
	k := kubernetestest.Start(t, args...)
	k.Namespace(namespace)
	return k, Config{URL: k.URL, CAFile: k.CAFile, TokenFile: k.Account(namespace, "flake", rules)}
}

// await waits until check returns no error.
func await(t *testing.T, check func() error) {
	t.Helper()
	var err error
	for start := time.Now(); time.Since(start) < 5*time.Minute; time.Sleep(20 * time.Millisecond) {
		if err = check(); err == nil {
			return
		}
	}
	t.Fatal(err)
}

func TestRealContract(t *testing.T) {
	k, c := start(t)
	saved := filepath.Join(t.TempDir(), "saved")
	await(t, func() error { return cluster(open(t, c)) }) // the API server has read the role
	testContract(t, storetest.Config{
		Kill: func() {
			k.Kill()
			k.Start()
		},
		Restore: func(change func()) {
			k.Copy(saved)
			change()
			k.Restore(saved)
		},
	}, c)
}

func TestRealStore(t *testing.T) {
	k, c := start(t)
	await(t, func() error { return list(open(t, c)) })
	testStore(t, open(t, c))
	text := k.Must(http.MethodGet, mapPath, "")
	if strings.Contains(text, "managedFields") || strings.Contains(text, "ownerReferences") {
		t.Error(text)
	}
}

// The fake answers as the real API server does.
func TestRealFake(t *testing.T) {
	k, _ := start(t)
	_, fake := startFake(t)
	maps, none := strings.TrimSuffix(mapPath, "/"+DefaultName), "/api/v1/namespaces/none/configmaps"
	locks := strings.TrimSuffix(leasePath, "/"+DefaultName)
	const patch = "application/json-patch+json"
	for _, tt := range []struct{ method, path, kind, body string }{
		{"GET", mapPath, "", ""},
		{"PATCH", mapPath, patch, `[]`},
		{"POST", none, "", `{"metadata":{"name":"a"}}`},
		{"GET", none + "/a", "", ""},
		{"POST", maps, "", `{"metadata":{"name":"flake-numbers"},"data":{"_note":"a"}}`},
		{"POST", maps, "", `{"metadata":{"name":"flake-numbers"},"data":{"_note":"a"}}`},
		{"POST", maps, "", `{`},
		{"GET", leasePath, "", ""},
		{"POST", locks, "", `{"metadata":{"name":"flake-numbers"},"spec":{"holderIdentity":"a"}}`},
		{"POST", locks, "", `{"metadata":{"name":"flake-numbers"},"spec":{"holderIdentity":"a"}}`},
		{"GET", leasePath, "", ""},
		{"PATCH", mapPath, patch, `[{"op":"test","path":"/data/a","value":null},{"op":"add","path":"/data/a","value":"1"}]`},
		{"PATCH", mapPath, patch, `[{"op":"test","path":"/data/a","value":null},{"op":"add","path":"/data/a","value":"2"}]`},
		{"PATCH", mapPath, patch, `[{"op":"test","path":"/data/b","value":"1"},{"op":"add","path":"/data/a","value":"2"}]`},
		{"PATCH", mapPath, patch, `[{"op":"test","path":"/metadata/uid","value":"x"},
			{"op":"add","path":"/data/a","value":"2"}]`},
		{"PATCH", mapPath, patch, `[{"op":"test","path":"/data/a","value":"1"},{"op":"add","path":"/data/a","value":"2"},
			{"op":"add","path":"/metadata/managedFields","value":[{}]}]`},
		{"PATCH", mapPath, patch, `[{"op":"add","path":"/data/a","value":"` + strings.Repeat("a", 1<<20) + `"}]`},
		{"GET", mapPath, "", ""},
		{"PATCH", mapPath, patch, `[{"op":"remove","path":"/data"}]`},
		{"GET", mapPath, "", ""},
		{"PATCH", mapPath, patch, `[{"op":"add","path":"/data/a","value":"1"}]`},
		{"PATCH", mapPath, patch, `[{"op":"test","path":"/data/a","value":null},{"op":"test","path":"/data","value":null},
			{"op":"add","path":"/data","value":{"a":"3"}}]`},
		{"PATCH", mapPath, patch, `[{"op":"test","path":"/data/a","value":null},{"op":"test","path":"/data","value":null},
			{"op":"add","path":"/data","value":{"a":"3"}}]`},
		{"GET", mapPath, "", ""},
		{"DELETE", mapPath, "", ""},
		{"GET", mapPath, "", ""},
	} {
		type shown struct {
			code    int
			reason  string
			details details
			data    string
		}
		show := func(code int, text string) shown {
			var o object
			if err := json.Unmarshal([]byte(text), &o); err != nil {
				t.Errorf("%s %s: %v: %.200s", tt.method, tt.path, err, text)
			}
			if code < 300 && o.Kind == "Status" { // the answer to a deletion has other details
				o.Details = details{}
			}
			if code == http.StatusBadRequest {
				o.Details = details{}
			}
			return shown{code, o.Reason, o.Details, fmt.Sprint(o.Data, o.Spec != nil)}
		}
		real := show(k.Call(tt.method, tt.path, "", tt.kind, tt.body))
		request, err := http.NewRequest(tt.method, fake.URL+tt.path, strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", tt.kind)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if got := show(response.StatusCode, string(body)); got != real {
			t.Errorf("%s %s %.200s: the real one answers %v, the fake %v", tt.method, tt.path, tt.body, real, got)
		}
	}
}

// remove deletes an object, if path is not empty.
func remove(k *kubernetestest.Server, path string) {
	if path != "" {
		k.Must(http.MethodDelete, path, "")
	}
}

// wantForbidden checks that an error names a rule that is missing, and is no refusal.
func wantForbidden(t *testing.T, err error, rule string) {
	t.Helper()
	t.Log(err)
	if err == nil || errors.Is(err, workers.ErrRefused) || !strings.Contains(err.Error(), rule) {
		t.Errorf("not that of the rule %s: %v", rule, err)
	}
}

// Without one of the rights, the error names it. If it is withdrawn while a node runs, the node keeps its
// number up to the mark, and goes on when it has the right again.
func TestRealRights(t *testing.T) {
	k, c := start(t)
	await(t, func() error { return list(open(t, c)) })
	running := node(t, open(t, c), "a", nil)
	step(t, running)
	const map1 = `{"apiGroups": [""], "resources": ["configmaps"], `
	const lease1 = `{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], `
	for _, tt := range []struct {
		without, want string
		call          func(*Store) error
		remove        string // the object to delete first
	}{
		{map1 + `"verbs": ["create"]},`, "resources [configmaps], verbs [create]", cluster, mapPath},
		{map1 + `"resourceNames": ["flake-numbers"], "verbs": ["get", "patch"]},`,
			"resources [configmaps], resourceNames [flake-numbers], verbs [get]", list, ""},
		{`, "patch"`, "resources [configmaps], resourceNames [flake-numbers], verbs [patch]", swap, ""},
		{lease1 + `"verbs": ["create"]},`, "resources [leases], verbs [create]", cluster, leasePath},
		{",\n\t" + lease1 + `"resourceNames": ["flake-numbers"], "verbs": ["get"]}`,
			"resources [leases], resourceNames [flake-numbers], verbs [get]", cluster, ""},
	} {
		less := strings.Replace(rules, tt.without, "", 1)
		if less == rules {
			t.Fatalf("%s is not in the rules", tt.without)
		}
		remove(k, tt.remove)
		k.Rules(namespace, "flake", less)
		var err error
		await(t, func() error { // until the API server has read the role
			if err = tt.call(open(t, c)); err == nil {
				remove(k, tt.remove)
				return fmt.Errorf("%s is not missed", tt.without)
			}
			return nil
		})
		wantForbidden(t, err, tt.want)
		if strings.Contains(tt.without, "patch") {
			claim, _ := running.Claim()
			wantForbidden(t, running.Step(t.Context()), "verbs [")
			if now, _ := running.Claim(); now != claim || claim.IsLost() {
				t.Error("the node has lost its number")
			}
		}
		k.Rules(namespace, "flake", rules)
		await(t, func() error { return running.Step(t.Context()) })
	}
}
