// Package helm compares the chart in rel/helm with rel/kubernetes, and checks it with package deploy.
// It is separate because Helm is slow to build.
package helm

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/scripts/deploy"
)

// render returns what helm template prints for values, which are in YAML, and the notes.
func render(t *testing.T, values string) (manifests, notes string, err error) {
	t.Helper()
	chart, err := loader.Load("../../../rel/helm/flake")
	if err != nil {
		t.Fatal(err)
	}
	given := map[string]any{}
	if err := yaml.Unmarshal([]byte(values), &given); err != nil {
		t.Fatal(err)
	}
	release := chartutil.ReleaseOptions{Name: "flake", Namespace: "ids", IsInstall: true}
	all, err := chartutil.ToRenderValues(chart, given, release, chartutil.DefaultCapabilities)
	if err != nil {
		return "", "", err
	}
	files, err := engine.Render(chart, all)
	for name, text := range files {
		switch {
		case strings.HasSuffix(name, "NOTES.txt"):
			notes = text
		case strings.TrimSpace(text) != "":
			manifests += "---\n" + text + "\n"
		}
	}
	return manifests, notes, err
}

const etcd = "workload: Deployment\nnumbers: etcd\netcd: {endpoints: ['etcd.etcd.svc.cluster.local:2379']}\n"

// The chart and kustomize make the same objects.
func TestSame(t *testing.T) {
	for dir, values := range map[string]string{"base": "", "deployment": "workload: Deployment", "etcd": etcd} {
		all, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(),
			"../../../rel/kubernetes/"+dir)
		if err != nil {
			t.Fatal(err)
		}
		want, err := all.AsYaml()
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := render(t, values)
		if err != nil {
			t.Fatal(err)
		}
		g, w := strings.Split(plain(t, got), "\n"), strings.Split(plain(t, string(want)), "\n")
		for i := range min(len(g), len(w)) {
			if g[i] != w[i] {
				t.Fatalf("%s: the chart makes\n%s\nkustomize\n%s", dir, strings.Join(g[max(0, i-9):i+1], "\n"), w[i])
			}
		}
		if len(g) != len(w) {
			t.Errorf("%s: the chart makes %d lines, kustomize %d", dir, len(g), len(w))
		}
	}
}

// plain returns manifests in order, without the labels that only Helm sets.
func plain(t *testing.T, manifests string) string {
	o, err := deploy.Decode([]byte(manifests))
	if err != nil {
		t.Fatal(err)
	}
	unlabelled := func(m *meta.ObjectMeta) {
		for _, label := range []string{"app.kubernetes.io/version", "app.kubernetes.io/managed-by", "helm.sh/chart"} {
			delete(m.Labels, label)
		}
	}
	pod := func(p *core.PodSpec) {
		c := &p.Containers[0]
		c.ImagePullPolicy = core.PullIfNotPresent // the default
		slices.SortFunc(c.Env, func(a, b core.EnvVar) int { return cmp.Compare(a.Name, b.Name) })
		slices.SortFunc(p.Volumes, func(a, b core.Volume) int { return cmp.Compare(a.Name, b.Name) })
	}
	for i := range o.StatefulSets {
		unlabelled(&o.StatefulSets[i].ObjectMeta)
		pod(&o.StatefulSets[i].Spec.Template.Spec)
	}
	for i := range o.Deployments {
		unlabelled(&o.Deployments[i].ObjectMeta)
		pod(&o.Deployments[i].Spec.Template.Spec)
	}
	for i := range o.Services {
		unlabelled(&o.Services[i].ObjectMeta)
	}
	slices.SortFunc(o.Services, func(a, b core.Service) int { return cmp.Compare(a.Name, b.Name) })
	for i := range o.Budgets {
		unlabelled(&o.Budgets[i].ObjectMeta)
	}
	for i := range o.NetworkPolicies {
		unlabelled(&o.NetworkPolicies[i].ObjectMeta)
	}
	for i := range o.Accounts {
		unlabelled(&o.Accounts[i].ObjectMeta)
	}
	for i := range o.Roles {
		unlabelled(&o.Roles[i].ObjectMeta)
	}
	for i := range o.Bindings {
		unlabelled(&o.Bindings[i].ObjectMeta)
	}
	text, err := json.MarshalIndent(o, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Each value results in valid manifests that contain it.
func TestValues(t *testing.T) {
	for _, tt := range []struct{ values, want string }{
		{"serviceMonitor: {enabled: true, labels: {release: p}}", "release: p"},
		{"serviceMonitor: {enabled: true}\ntls: {http: cert}", "scheme: https"},
		{"tls: {http: cert}", "scheme: HTTPS"},
		{"tls: {nodes: cert}", "value: /etc/flake-tls/nodes/ca.crt"},
		{"epmd: false", `value: "off"`},
		{"clusterDomain: cluster.local", "flake@$(POD_NAME).flake.$(POD_NAMESPACE).svc.cluster.local"},
		{"numbers: ordinal\nordinalsStart: 32\nreplicas: 5", "start: 32"},
		{"numbers: ordinal", "pod-index"},
		{"numbers: etcd\netcd: {endpoints: [a:1]}", "kind: StatefulSet"},
		{"generators: []", "automountServiceAccountToken: false"},
		{"kubernetes: {ports: [8443]}", "port: 8443"},
		{"generators: []", "FLAKE_NODE_NAME"},
		{"numbers: ordinal\ngenerators: [{name: a, format: sno, partition: number}, " +
			"{name: b, format: flake-idgen, datacenter: 3, worker: number, epoch: '2020-01-01T00:00:00Z'}]",
			"FLAKE_GENERATOR_2_WORKER"},
		{etcd + "generators: [{name: a, format: snowflake, machine_bits: 12, id: number}]", `value: "12"`},
		{"numbers: ordinal\nsettings: {numbers.store: etcd, node.max_connections: 1000000, http.open: false, " +
			"etcd.endpoints: [a:1]}", `value: "1000000"`},
		{"persistence: {storageClass: fast, accessModes: [ReadWriteOncePod]}", "storageClassName: fast"},
		{"settings: {log.level: debug, log.format: json}", "FLAKE_LOG_FORMAT"},
		{"networkPolicy: {clients: []}", "kubernetes.io/metadata.name: monitoring"},
		{"networkPolicy: {clients: [], monitoring: []}", "policyTypes: [Ingress, Egress]"},
		{"networkPolicy: {enabled: false}\npodDisruptionBudget: {enabled: false}", "FLAKE_NODE_NAME"},
		{"networkPolicy: {egress: [{ports: [{port: 4370}]}]}", "port: 4370"},
		{"podLabels: {a: b}\npodAnnotations: {c: d}\nnodeSelector: {e: f}\npriorityClassName: g", "priorityClassName: g"},
		{"readinessGenerators: [flake, orders]", "path: /readyz?generators=flake,orders"},
		{"service: {type: LoadBalancer, annotations: {a: b}}", "type: LoadBalancer"},
		{"extraVolumes: [{name: own, emptyDir: {}}]\nextraVolumeMounts: [{name: own, mountPath: /own}]", "mountPath: /own"},
		{"imagePullSecrets: [{name: a}]\nimage: {tag: '2'}", "ghcr.io/flake-go/flake:2"},
		{"tolerations: [{operator: Exists}]\naffinity: {nodeAffinity: {}}", "operator: Exists"},
	} {
		manifests, notes, err := render(t, tt.values)
		if err == nil {
			err = deploy.Check([]byte(manifests))
		}
		if err != nil || !strings.Contains(manifests, tt.want) {
			t.Errorf("%s: got error %v, or no %s in the manifests", tt.values, err, tt.want)
		}
		if !strings.Contains(notes, "svc.cluster.local:8465/v1/ids") || strings.Contains(notes, "{{") {
			t.Errorf("%s: the notes lack the URL, or contain a template:\n%s", tt.values, notes)
		}
	}
}

// schema is the part of values.schema.json that says where numbers are.
type schema struct {
	Type       any
	Maximum    float64
	Properties map[string]schema
	Items      *schema
}

// largest returns values with the largest integers, but up to a million, or nil if there are none.
func (s schema) largest() any {
	if strings.Contains(fmt.Sprint(s.Type), "integer") {
		return min(cmp.Or(s.Maximum, 1e6), 1e6)
	}
	if s.Items != nil && s.Items.largest() != nil {
		return []any{s.Items.largest()}
	}
	all := map[string]any{}
	for name, property := range s.Properties {
		if v := property.largest(); v != nil {
			all[name] = v
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// Integers have no exponent.
func TestIntegers(t *testing.T) {
	text, err := os.ReadFile("../../../rel/helm/flake/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var s schema
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	values, err := yaml.Marshal(s.largest())
	if err != nil {
		t.Fatal(err)
	}
	manifests, notes, err := render(t, string(values)+"settings: {node.max_connections: 10000000000000000000}\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"replicas: 1000000\n", `"10000000000000000000"`} {
		if !strings.Contains(manifests, want) {
			t.Errorf("no %s in the manifests", want)
		}
	}
	if found := regexp.MustCompile(`.*[0-9]e[+-]?[0-9].*`).FindAllString(manifests+notes, -1); found != nil {
		t.Errorf("with the values\n%sthe chart prints %q", values, found)
	}
}

// A generator can have any format.
func TestFormats(t *testing.T) {
	for _, kind := range formats.Kinds {
		generator := "{name: a, format: " + kind.Name
		if number := kind.Key(kind.Numbers[0][0]); number.Type == formats.Integer {
			generator += ", " + number.Name + ": number"
		}
		manifests, _, err := render(t, "generators: ["+generator+"}]")
		if err == nil {
			err = deploy.Check([]byte(manifests))
		}
		if err != nil {
			t.Errorf("%s}: %v", generator, err)
		}
	}
}

func TestBadValues(t *testing.T) {
	for _, tt := range []struct{ values, want string }{
		{"numbers: etcd", "etcd.endpoints must be set"},
		{"numbers: mac", "numbers"},
		{"workload: DaemonSet", "workload"},
		{"workload: Deployment\nnumbers: ordinal", "have no ordinals"},
		{"replica: 3", "replica"},
		{"settings: {nodes.name: a}", "nodes.name"},
		{"generators: [{name: a}]", "format"},
		{"generators: [{name: a, format: snowflakes}]", "/generators/0/format"},
		{"generators: [{name: a, format: flake-idgen, id: 1, seq_mask: number}]", `seq_mask = "number"`}, // by the node
		{"settings: {node.net_ticktime: 7.5}", `"7.5"`},
		{"generators: [{name: a, format: snowflake, id: 1.5}]", `"1.5"`},
		{"ordinalsStart: -1", "ordinalsStart"},
		{"service: {type: Other}", "service"},
		{"readinessGenerators: ['a&b']", "readinessGenerators"},
		{"drainTime: 30", "must be greater than drainTime"},
	} {
		manifests, _, err := render(t, tt.values)
		if err == nil {
			err = deploy.Check([]byte(manifests))
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s", tt.values, err, tt.want)
		}
	}
}
