// Package deploy checks the manifests of rel/kubernetes and rel/helm against the types of the
// Kubernetes API, the security standard "restricted" for pods, and the node's configuration.
// Start at [Check].
package deploy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/yaml"
	security "k8s.io/pod-security-admission/api"
	restricted "k8s.io/pod-security-admission/policy"
	strict "sigs.k8s.io/yaml"

	"github.com/flake-go/flake/config"
)

// Objects are the objects in a set of manifests.
type Objects struct {
	StatefulSets    []apps.StatefulSet
	Deployments     []apps.Deployment
	Services        []core.Service
	Budgets         []policy.PodDisruptionBudget
	NetworkPolicies []networking.NetworkPolicy
	Monitors        []monitoring.ServiceMonitor
	Accounts        []core.ServiceAccount
	Roles           []rbac.Role
	Bindings        []rbac.RoleBinding
}

// Decode reads manifests. Unknown fields, and fields of the wrong type, are errors.
func Decode(manifests []byte) (o Objects, err error) {
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifests)))
	for {
		text, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return o, nil
		}
		if err != nil {
			return o, err
		}
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		var kind meta.TypeMeta
		if err := strict.Unmarshal(text, &kind); err != nil {
			return o, err
		}
		if err := o.add(kind, text); err != nil {
			return o, fmt.Errorf("%s: %w", kind.Kind, err)
		}
	}
}

func (o *Objects) add(kind meta.TypeMeta, text []byte) error {
	switch kind.APIVersion + " " + kind.Kind {
	case "apps/v1 StatefulSet":
		return appendTo(&o.StatefulSets, text)
	case "apps/v1 Deployment":
		return appendTo(&o.Deployments, text)
	case "v1 Service":
		return appendTo(&o.Services, text)
	case "policy/v1 PodDisruptionBudget":
		return appendTo(&o.Budgets, text)
	case "networking.k8s.io/v1 NetworkPolicy":
		return appendTo(&o.NetworkPolicies, text)
	case "v1 ServiceAccount":
		return appendTo(&o.Accounts, text)
	case "rbac.authorization.k8s.io/v1 Role":
		return appendTo(&o.Roles, text)
	case "rbac.authorization.k8s.io/v1 RoleBinding":
		return appendTo(&o.Bindings, text)
	case "monitoring.coreos.com/v1 ServiceMonitor":
		return appendTo(&o.Monitors, text)
	}
	return fmt.Errorf("unknown, of %s", kind.APIVersion)
}

func appendTo[T any](all *[]T, text []byte) error {
	var one T
	err := strict.UnmarshalStrict(text, &one)
	*all = append(*all, one)
	return err
}

// Check returns an error that lists the faults in manifests.
func Check(manifests []byte) error {
	o, err := Decode(manifests)
	if err != nil {
		return err
	}
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	w, err := o.workload()
	if err != nil {
		return err
	}
	w.secure(fault)
	w.configured(fault)
	o.selects(w, fault)
	o.entitled(w, fault)
	return errors.Join(faults...)
}

// A workload is a StatefulSet or a Deployment.
type workload struct {
	selector *meta.LabelSelector
	template *core.PodTemplateSpec
	pod      *core.PodSpec
	service  string // the service of a StatefulSet, which names its pods
	claims   []string
}

func (o *Objects) workload() (w workload, err error) {
	switch {
	case len(o.StatefulSets) == 1 && len(o.Deployments) == 0:
		s := &o.StatefulSets[0].Spec
		w = workload{selector: s.Selector, template: &s.Template, service: s.ServiceName}
		for _, c := range s.VolumeClaimTemplates {
			w.claims = append(w.claims, c.Name)
		}
	case len(o.StatefulSets) == 0 && len(o.Deployments) == 1:
		s := &o.Deployments[0].Spec
		w = workload{selector: s.Selector, template: &s.Template}
	default:
		return w, fmt.Errorf("%d StatefulSets and %d Deployments: must be one of one kind",
			len(o.StatefulSets), len(o.Deployments))
	}
	w.pod = &w.template.Spec
	if len(w.pod.Containers) != 1 {
		return w, fmt.Errorf("%d containers: must be 1", len(w.pod.Containers))
	}
	return w, nil
}

// secure checks that the pod meets the strictest standard, and can write only to volumes.
func (w *workload) secure(fault func(string, ...any)) {
	standard, err := restricted.NewEvaluator(restricted.DefaultChecks(), nil)
	if err != nil {
		fault("%w", err)
		return
	}
	strictest := security.LevelVersion{Level: security.LevelRestricted, Version: security.LatestVersion()}
	for _, r := range standard.EvaluatePod(strictest, &w.template.ObjectMeta, w.pod) {
		if !r.Allowed {
			fault("pod: %s: %s", r.ForbiddenReason, r.ForbiddenDetail)
		}
	}
	if c := w.pod.Containers[0].SecurityContext; c == nil || c.ReadOnlyRootFilesystem == nil ||
		!*c.ReadOnlyRootFilesystem {
		fault("pod: the root file system can be written to")
	}
}

// least returns the least rights of a node whose numbers are in the ConfigMap with that name.
func least(name string) (rules []rbac.PolicyRule) {
	for _, r := range []struct {
		group, resource string
		verbs           []string
	}{{"", "configmaps", []string{"get", "patch"}}, {"coordination.k8s.io", "leases", []string{"get"}}} {
		all := rbac.PolicyRule{APIGroups: []string{r.group}, Resources: []string{r.resource}, Verbs: []string{"create"}}
		one := all
		one.ResourceNames, one.Verbs = []string{name}, r.verbs
		rules = append(rules, all, one)
	}
	return rules
}

// entitled checks that the pod has the least rights that it needs, and otherwise none.
func (o *Objects) entitled(w workload, fault func(string, ...any)) {
	of := map[string]string{}
	for _, v := range w.pod.Containers[0].Env {
		of[v.Name] = v.Value
	}
	token := w.pod.AutomountServiceAccountToken
	if of["FLAKE_NUMBERS_STORE"] != "kubernetes" {
		if token == nil || *token {
			fault("pod: it has a token for the API")
		}
		if len(o.Roles)+len(o.Bindings)+len(o.Accounts) > 0 {
			fault("the pod needs no rights")
		}
		return
	}
	if token == nil || !*token {
		fault("pod: it has no token for the API")
	}
	if len(o.Roles) != 1 || len(o.Bindings) != 1 || len(o.Accounts) != 1 {
		fault("%d Roles, %d RoleBindings, %d ServiceAccounts: must be one each",
			len(o.Roles), len(o.Bindings), len(o.Accounts))
		return
	}
	role, binding, account := o.Roles[0], o.Bindings[0], o.Accounts[0].Name
	if want := least(of["FLAKE_KUBERNETES_NAME"]); !reflect.DeepEqual(role.Rules, want) {
		fault("Role: its rules are %v: must be %v", role.Rules, want)
	}
	if s := binding.Subjects; w.pod.ServiceAccountName != account || len(s) != 1 || s[0].Kind != "ServiceAccount" ||
		s[0].Name != account || binding.RoleRef != (rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "Role", Name: role.Name}) {
		fault("RoleBinding: it does not give the pod's service account the role")
	}
}

// selects checks that all pod selectors match these pods, and that the ports exist.
func (o *Objects) selects(w workload, fault func(string, ...any)) {
	pod := labels.Set(w.template.Labels)
	matches := func(what string, s *meta.LabelSelector, set labels.Set) {
		selector, err := meta.LabelSelectorAsSelector(s)
		if err != nil || selector.Empty() || !selector.Matches(set) {
			fault("%s: its selector, %v, does not match %v: %v", what, selector, set, err)
		}
	}
	c := w.pod.Containers[0]
	port := func(what, name string) {
		if !slices.ContainsFunc(c.Ports, func(p core.ContainerPort) bool { return p.Name == name }) {
			fault("%s: the pod has no port %q", what, name)
		}
	}
	matches("workload", w.selector, pod)
	for _, t := range w.pod.TopologySpreadConstraints {
		matches("topologySpreadConstraints", t.LabelSelector, pod)
	}
	for _, p := range []*core.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		if p == nil || p.HTTPGet == nil {
			fault("a probe over HTTP is missing")
			continue
		}
		port("probe", p.HTTPGet.Port.StrVal)
	}
	services := map[string]core.Service{}
	for _, s := range o.Services {
		services[s.Name] = s
		matches("Service "+s.Name, meta.SetAsLabelSelector(s.Spec.Selector), pod)
		for _, p := range s.Spec.Ports {
			port("Service "+s.Name, p.TargetPort.StrVal)
		}
	}
	if s := services[w.service]; w.service != "" && s.Spec.ClusterIP != core.ClusterIPNone {
		fault("Service %q of the StatefulSet is not headless", w.service)
	}
	for _, b := range o.Budgets {
		matches("PodDisruptionBudget", b.Spec.Selector, pod)
	}
	for _, n := range o.NetworkPolicies {
		matches("NetworkPolicy", &n.Spec.PodSelector, pod)
		for _, rule := range n.Spec.Ingress {
			if len(rule.From) == 0 {
				fault("NetworkPolicy: a rule admits everybody")
			}
			for _, p := range rule.Ports {
				if p.Port.Type == intstr.String {
					port("NetworkPolicy", p.Port.StrVal)
				}
			}
		}
	}
	for _, m := range o.Monitors {
		for _, e := range m.Spec.Endpoints {
			found := slices.ContainsFunc(o.Services, func(s core.Service) bool {
				selector, err := meta.LabelSelectorAsSelector(&m.Spec.Selector)
				return err == nil && selector.Matches(labels.Set(s.Labels)) &&
					slices.ContainsFunc(s.Spec.Ports, func(p core.ServicePort) bool { return p.Name == e.Port })
			})
			if !found {
				fault("ServiceMonitor: no Service that it selects has a port %q", e.Port)
			}
		}
	}
}

// fields holds example values for the fields of a pod that the kubelet provides.
var fields = map[string]string{
	"metadata.name":      "flake-2",
	"metadata.namespace": "ids",
	"metadata.labels['apps.kubernetes.io/pod-index']": "2",
	"status.podIP": "10.0.0.7",
}

// environ returns the container's environment as the kubelet sets it: a variable may refer to
// an earlier variable as $(NAME).
func (w *workload) environ(fault func(string, ...any)) (environ []string) {
	known := []string{}
	for _, v := range w.pod.Containers[0].Env {
		value := strings.NewReplacer(known...).Replace(v.Value)
		if v.ValueFrom != nil {
			switch from := v.ValueFrom; {
			case v.Value != "":
				fault("%s has two values", v.Name)
			case from.FieldRef != nil && fields[from.FieldRef.FieldPath] != "":
				value = fields[from.FieldRef.FieldPath]
			default:
				fault("%s refers to an unknown field", v.Name)
			}
		}
		if strings.Contains(value, "$(") {
			fault("%s: %s refers to a variable that is not set before it", v.Name, value)
		}
		known = append(known, "$("+v.Name+")", value)
		environ = append(environ, v.Name+"="+value)
	}
	return environ
}

// configured checks that the node accepts its configuration, listens on the container's ports, and
// finds its files on volumes.
func (w *workload) configured(fault func(string, ...any)) {
	flags, err := config.Environ(w.environ(fault))
	if err != nil {
		fault("environment: %w", err)
		return
	}
	var files []string
	for i, f := range flags {
		if f.Key == "node.cookie_file" { // config would read the file
			files = append(files, f.Value)
			flags[i].Key, flags[i].Value = "node.cookie", "of the secret"
		}
	}
	cfg, err := config.Load("", flags...)
	if err != nil {
		fault("environment: %w", err)
		return
	}
	_, host, _ := strings.Cut(cfg.Node.Name, "@")
	if want := "flake-2." + w.service + ".ids.svc.cluster.local"; w.service != "" && host != want {
		fault("node.name: the host is %s: must be the pod's name, %s", host, want)
	}
	if w.service == "" && host != fields["status.podIP"] {
		fault("node.name: the host is %s: must be the pod's address", host)
	}
	listens := map[string]string{
		"dist": cfg.Node.Listen, "http": cfg.HTTP.Listen, "metrics": cfg.HTTP.Metrics, "epmd": ":4369",
	}
	if cfg.Node.EPMD == "off" {
		delete(listens, "epmd")
	}
	for _, p := range w.pod.Containers[0].Ports {
		if _, port, _ := net.SplitHostPort(listens[p.Name]); port != strconv.Itoa(int(p.ContainerPort)) {
			fault("port %s is %d, but the node listens at %q", p.Name, p.ContainerPort, listens[p.Name])
		}
		delete(listens, p.Name)
	}
	if len(listens) > 0 {
		fault("ports of the container are missing: %v", listens)
	}
	for _, file := range append(files, cfg.Flake.TimestampPath, cfg.HTTP.TokenFile) {
		if !w.onVolume(file) {
			fault("%s is not on a volume", file)
		}
	}
}

// onVolume reports whether a file is on a mounted volume that exists.
func (w *workload) onVolume(file string) bool {
	return slices.ContainsFunc(w.pod.Containers[0].VolumeMounts, func(m core.VolumeMount) bool {
		return m.MountPath == path.Dir(file) && (slices.Contains(w.claims, m.Name) ||
			slices.ContainsFunc(w.pod.Volumes, func(v core.Volume) bool { return v.Name == m.Name }))
	})
}
