package deploy

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// build returns what kubectl kustomize prints for a folder.
func build(t *testing.T, dir string, files filesys.FileSystem) string {
	t.Helper()
	all, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := all.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// all returns the manifests of rel/kubernetes by folder, each with the ServiceMonitor.
func all(t *testing.T) map[string]string {
	disk := filesys.MakeFsOnDisk()
	monitor, err := disk.ReadFile("../../rel/kubernetes/monitoring/servicemonitor.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"base":       build(t, "../../rel/kubernetes/base", disk) + "---\n" + string(monitor),
		"deployment": build(t, "../../rel/kubernetes/deployment", disk) + "---\n" + string(monitor),
		"etcd":       build(t, "../../rel/kubernetes/etcd", disk) + "---\n" + string(monitor),
	}
}

func TestKustomize(t *testing.T) {
	for name, manifests := range all(t) {
		if err := Check([]byte(manifests)); err != nil {
			t.Errorf("%s:\n%v", name, err)
		}
	}
}

// TestCheckFinds checks that Check finds each kind of fault.
func TestCheckFinds(t *testing.T) {
	base := all(t)["base"]
	for _, tt := range []struct{ old, new, want string }{
		{"terminationGracePeriodSeconds", "terminationGrace", `unknown field "terminationGrace"`},
		{"replicas: 3", "replicas: three", "cannot unmarshal string into Go struct field"},
		{"kind: PodDisruptionBudget", "kind: PodBudget", "PodBudget: unknown, of policy/v1"},
		{"runAsNonRoot: true", "runAsNonRoot: false", "runAsNonRoot != true"},
		{"readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", "can be written to"},
		{"automountServiceAccountToken: true", "automountServiceAccountToken: false", "no token for the API"},
		{"value: kubernetes\n", "value: etcd\n", "a token for the API"},
		{"  - get\n  - patch\n", "  - get\n  - patch\n  - list\n", "Role: its rules are"},
		{"resourceNames:\n  - flake-numbers", "resourceNames:\n  - other", "Role: its rules are"},
		{"kind: RoleBinding\nmetadata:\n  labels:\n    app.kubernetes.io/instance: flake\n" +
			"    app.kubernetes.io/name: flake\n  name: flake\nroleRef:\n" +
			"  apiGroup: rbac.authorization.k8s.io\n  kind: Role\n  name: flake",
			"kind: RoleBinding\nmetadata:\n  name: flake\nroleRef:\n" +
				"  apiGroup: rbac.authorization.k8s.io\n  kind: Role\n  name: admin",
			"does not give the pod's service account the role"},
		{"FLAKE_NODE_LISTEN", "FLAKE_NODE_LISTN", "the nearest known variable is FLAKE_NODE_LISTEN"},
		{"name: POD_NAMESPACE", "name: NAMESPACE",
			"$(POD_NAMESPACE).svc.cluster.local refers to a variable that is not set before it"},
		{"serviceName: flake", "serviceName: flake-http", `"flake-http" of the StatefulSet is not headless`},
		{"svc.cluster.local", "svc.example.org", "must be the pod's name"},
		{"containerPort: 4370", "containerPort: 4371", `port dist is 4371, but the node listens at "[::]:4370"`},
		{"mountPath: /var/lib/flake", "mountPath: /var/lib", "/var/lib/flake/timestamp is not on a volume"},
		{"targetPort: dist", "targetPort: node", `Service flake: the pod has no port "node"`},
		{"fieldPath: metadata.name\n", "fieldPath: metadata.names\n", "POD_NAME refers to an unknown field"},
		{"- port: http\n", "- port: web\n", `NetworkPolicy: the pod has no port "web"`},
		{"from:\n    - namespaceSelector:\n        matchLabels:\n          kubernetes.io/metadata.name: monitoring\n",
			"from: []\n", "admits everybody"},
		{"port: metrics\n    path: /metrics", "port: web\n    path: /metrics", `no Service that it selects has a port "web"`},
		{"matchLabels:\n      app.kubernetes.io/instance: flake", "matchLabels:\n      app.kubernetes.io/instance: other",
			"does not match"},
	} {
		broken := strings.ReplaceAll(base, tt.old, tt.new)
		if broken == base {
			t.Fatalf("no %q in the manifests", tt.old)
		}
		if err := Check([]byte(broken)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("with %s instead of %s:\ngot  %v\nwant %s", tt.new, tt.old, err, tt.want)
		}
	}
}

// The kustomization in docs/kubernetes.md builds valid manifests with its changes.
func TestManual(t *testing.T) {
	const top = "../../rel/kubernetes"
	manual, err := os.ReadFile("../../docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(manual), "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	example = strings.NewReplacer("https://github.com/flake-go/flake//rel/kubernetes", "..", "?ref=v0.1.0",
		"").Replace(example)
	files := filesys.MakeFsInMemory()
	if err := files.WriteFile("/mine/kustomization.yaml", []byte(example)); err != nil {
		t.Fatal(err)
	}
	err = fs.WalkDir(os.DirFS(top), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(top, name))
		return errors.Join(err, files.WriteFile("/"+name, text))
	})
	if err != nil {
		t.Fatal(err)
	}
	// Check knows only this domain.
	manifests := strings.ReplaceAll(build(t, "/mine", files), ".svc.example.org", ".svc.cluster.local")
	if err := Check([]byte(manifests)); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"replicas: 5", "kind: ServiceMonitor", "namespace: ids"} {
		if !strings.Contains(manifests, want) {
			t.Errorf("no %q in the manifests", want)
		}
	}
}

// The manifests, the chart, the manual and the READMEs name the version of the release.
func TestVersion(t *testing.T) {
	released := versionIn(t, "../../clients/elixir/mix.exs", `@version "(.*)"`)
	for file, pattern := range map[string]string{
		"../../rel/kubernetes/base/kustomization.yaml": `newTag: (.*)`,
		"../../rel/helm/flake/Chart.yaml":              `(?m)^appVersion: (.*)$`,
		"../../docs/kubernetes.md":                     `\?ref=v(.*)`,
		"../../start.sh":                               `ghcr.io/flake-go/flake:(.*)`,
		"../../clients/erlang/README.md":               `\{flake_client, "~> (.*)"`,
		"../../clients/elixir/README.md":               `\{:flake_client_elixir, "~> (.*)"`,
		"../../docs/containers.md":                     `ghcr.io/flake-go/flake:(.*)`,
	} {
		if got := versionIn(t, file, pattern); got != released {
			t.Errorf("%s names %s, want %s", file, got, released)
		}
	}
}

func versionIn(t *testing.T, file, pattern string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(pattern).FindSubmatch(text)
	if found == nil {
		t.Fatalf("%s has no %s", file, pattern)
	}
	return string(found[1])
}
